package fsm

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
	"github.com/claimq/claimq/fsm/table/tabletest"
)

// hashOfRecords hashes every record that a snapshot would have, and believes
// nothing that was remembered.
func hashOfRecords(s *Snapshot) [16]byte {
	var hash stateHash
	for kind, packed := range s.records() {
		hash.add(kind, packed)
	}
	return hash.sum()
}

// mustHash ensures that the hasher says of the capture what is in it.
func mustHash(t rapid.TB, h *Hasher, s *Snapshot) {
	t.Helper()
	if hash, rotten := h.Hash(s); hash != hashOfRecords(s) || rotten != 0 {
		t.Fatalf("index %d: hash %x and %d pages rotten, want %x and none", s.Index(), hash, rotten, hashOfRecords(s))
	}
}

// TestHasher_IsTheWholeHash compares the hashes of a hasher with those of all
// records, over any commands, of captures that are old by then, and of machines
// that were restored meanwhile.
func TestHasher_IsTheWholeHash(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h, m := NewHasher(nil), newSmall()
		var kept []*Snapshot
		for _, e := range drawLog(rt, 40) {
			applyLog(rt, m, []testEntry{e})
			switch rapid.SampledFrom([]string{"hash", "go on", "keep", "hash kept", "restore"}).Draw(rt, "then") {
			case "hash":
				s := m.Snapshot()
				mustHash(rt, h, s)
				s.Release()
			case "keep":
				kept = append(kept, m.Snapshot())
			case "hash kept":
				if len(kept) > 0 {
					i := rapid.IntRange(0, len(kept)-1).Draw(rt, "kept")
					mustHash(rt, h, kept[i])
					kept[i].Release()
					kept = slices.Delete(kept, i, i+1)
				}
			case "restore":
				m = restore(rt, snapshotOf(rt, m))
			}
		}
		mustHash(rt, h, m.Snapshot())
	})
}

// TestHasher_IsTheWholeHash_LongLogs is the same for tasks on many pages, with
// and without a capture that lives while the next ones change.
func TestHasher_IsTheWholeHash_LongLogs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		h, m, dice := NewHasher(nil), newSmall(), rand.New(rand.NewPCG(seed, 2))
		before := m.Snapshot()
		for _, e := range randomLog(seed, 400) {
			applyLog(t, m, []testEntry{e})
			if dice.IntN(8) > 0 {
				continue
			}
			s := m.Snapshot()
			mustHash(t, h, s)
			before.Release()
			before = s
			if dice.IntN(2) == 0 {
				s.Release()
			}
		}
	}
}

// TestPageSums_MatchTable compares the sums of a table's pages with one over all
// its records, whatever happens to the table between views, and in whatever order
// views are looked at.
func TestPageSums_MatchTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var tab table.Table[tabletest.Record]
		if rapid.Bool().Draw(rt, "resting") {
			tab = table.New[tabletest.Record](tabletest.EvenRests{}, rapid.IntRange(0, 2).Draw(rt, "busy"))
		}
		sums := pageSums[tabletest.Record]{kind: record.KindTask, appendRecord: func(b []byte, _ uint64, r *tabletest.Record) []byte {
			return tabletest.EvenRests{}.Pack(b, 0, r)
		}}
		var views []table.View[tabletest.Record]
		look := func(rt *rapid.T, v *table.View[tabletest.Record]) {
			var got, want stateHash
			turn := hashTurn(rapid.Uint64Range(0, hashTurns-1).Draw(rt, "turn"))
			if rotten := sums.addTo(&got, v, turn, &breaks{}); rotten != 0 {
				rt.Fatalf("%d pages changed without a new epoch", rotten)
			}
			for r := range v.All() {
				packed := r.Packed
				if r.Record != nil {
					packed = tabletest.EvenRests{}.Pack(nil, 0, r.Record)
				}
				want.add(record.KindTask, packed)
			}
			if got.sum() != want.sum() {
				rt.Fatalf("the sums of %d records on %d pages are not theirs", v.Len(), len(v.Pages()))
			}
		}
		// Near ids share pages, far ones leave gaps.
		id := rapid.OneOf(rapid.Uint64Range(1, 300), rapid.Uint64Range(1, 1<<53))
		have := map[uint64]int{}
		value := rapid.IntRange(0, 1000)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				k := id.Draw(rt, "id")
				have[k] = 0
				tab.Put(k, &tabletest.Record{Value: value.Draw(rt, "value")})
			},
			"edit": func(rt *rapid.T) {
				k := tabletest.SomeID(rt, have, id)
				if r := tab.Edit(k); r != nil {
					r.Value = value.Draw(rt, "value")
				}
				if rapid.Bool().Draw(rt, "rest") {
					tab.Rest(k)
				}
			},
			"remove": func(rt *rapid.T) {
				k := tabletest.SomeID(rt, have, id)
				tab.Remove(k)
				delete(have, k)
			},
			"look": func(rt *rapid.T) {
				v := tab.View()
				look(rt, &v)
				v.Release()
			},
			"keep": func(*rapid.T) {
				if len(views) < 3 {
					views = append(views, tab.View())
				}
			},
			"look at kept": func(rt *rapid.T) {
				if len(views) > 0 {
					i := rapid.IntRange(0, len(views)-1).Draw(rt, "view")
					look(rt, &views[i])
					views[i].Release()
					views = slices.Delete(views, i, i+1)
				}
			},
		})
	})
}

// TestHasher_HashesBesideApply hashes captures in another goroutine while the
// machine goes on, with and without captures that live; the race detector looks on.
func TestHasher_HashesBesideApply(t *testing.T) {
	t.Parallel()
	type capture struct {
		state *Snapshot
		want  [16]byte
	}
	captures := make(chan capture)
	var hashing sync.WaitGroup
	hashing.Go(func() {
		h := NewHasher(nil)
		for c := range captures {
			if hash, rotten := h.Hash(c.state); hash != c.want || rotten != 0 {
				t.Errorf("index %d: hash %x and %d pages rotten, want %x and none", c.state.Index(), hash, rotten, c.want)
			}
			c.state.Release()
		}
	})
	m := newSmall()
	for i, e := range randomLog(1, 1000) {
		mustApplyTo(t, m, e)
		if i%25 == 0 {
			s := m.Snapshot()
			captures <- capture{s, hashOfRecords(s)}
		}
	}
	close(captures)
	hashing.Wait()
}

// newRotten returns a state of 32 pages of tasks, of which the first two are
// claimed and the others rest, with claim requests, removed tasks and a trail. It
// is for hashing alone.
func newRotten(t *testing.T) *Machine {
	t.Helper()
	h := newHarness(t)
	h.m.trail.ChunkBytes = smallChunk
	h.do(SetLevel{Level: record.FeatureLevel})
	h.submit(32*table.PageSize-1, record.NewTask{Type: "mail", Params: []byte(`{"to":"a@example.com"}`)})
	h.do(ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 2*table.PageSize - 1})
	for id := range uint64(2 * table.PageSize) {
		h.m.requests.Put(id+1, &record.Request{ID: "a", WorkerID: "w1", ForgetU: int64(id)})
		h.m.gone.Put(id+1, &record.Gone{Key: "a", Status: record.StatusCompleted, ForgetU: int64(id)})
	}
	return h.m
}

// rotTask flips a bit of the page's first task.
func rotTask(p *table.Page[record.Task]) {
	for task := range p.All() {
		if task.Record != nil {
			task.Record.Params[1] ^= 4
		} else {
			task.Packed[bytes.Index(task.Packed, []byte("example"))] ^= 4
		}
		return
	}
}

// TestHasher_FindsRot ensures that what changes by itself, wherever it is, is
// found once, within 16 hashes, and that the hash is of what it is then.
func TestHasher_FindsRot(t *testing.T) {
	t.Parallel()
	for name, rot := range map[string]func(m *Machine, s *Snapshot){
		"a claimed task":     func(_ *Machine, s *Snapshot) { rotTask(s.tasks.Pages()[1]) },
		"a task that rests":  func(_ *Machine, s *Snapshot) { rotTask(s.tasks.Pages()[20]) },
		"a claim request":    func(m *Machine, _ *Snapshot) { m.requests.Get(70).ForgetU ^= 1 << 40 },
		"a removed task":     func(m *Machine, _ *Snapshot) { m.gone.Get(128).Token ^= 1 },
		"a part of a trail":  func(m *Machine, _ *Snapshot) { m.trail.Chunks()[3].Events[5] ^= 1 },
		"the head of a part": func(m *Machine, _ *Snapshot) { m.trail.Chunks()[3].Base.T ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, h := newRotten(t), NewHasher(nil)
			s := m.Snapshot()
			defer s.Release()
			mustHash(t, h, s)
			was := hashOfRecords(s)
			rot(m, s)
			now := hashOfRecords(s)
			found := 0
			for range hashTurns {
				hash, rotten := h.Hash(s)
				found += rotten
				if want := [][16]byte{was, now}[found]; hash != want || was == now {
					t.Fatalf("hash %x after %d rotten pages, want %x", hash, found, want)
				}
			}
			if found != 1 {
				t.Errorf("%d pages are rotten, want 1", found)
			}
		})
	}
}

// TestHasher_ReadsASixteenth ensures that a hash reads no more of what did not
// change than its part.
func TestHasher_ReadsASixteenth(t *testing.T) {
	t.Parallel()
	m, h := newRotten(t), NewHasher(nil)
	s := m.Snapshot()
	defer s.Release()
	mustHash(t, h, s)
	pages := s.tasks.Pages()
	for _, p := range pages {
		rotTask(p)
	}
	for i := range hashTurns {
		if _, rotten := h.Hash(s); rotten != len(pages)/hashTurns {
			t.Errorf("hash %d of %d finds %d of %d rotten pages", i+1, hashTurns, rotten, len(pages))
		}
	}
	mustHash(t, h, s)
}

// A hasher rests as often as it has read so many pages, and goes on where it was.
func TestHasher_Rests(t *testing.T) {
	t.Parallel()
	m := New()
	submit := Submit{Tasks: make([]record.NewTask, 100*table.PageSize)}
	for i := range submit.Tasks {
		submit.Tasks[i] = record.NewTask{Type: "mail", Params: []byte("1")}
	}
	mustApplyTo(t, m, testEntry{Index: 1, Stamp: record.Stamp{U: 1, T: 1}, Commands: []Command{SetLevel{Level: record.FeatureLevel}, submit}})
	rests := 0
	h := NewHasher(func() { rests++ })
	s := m.Snapshot()
	defer s.Release()
	mustHash(t, h, s)
	if rests < 100/hashRun {
		t.Errorf("it rested %d times while it read more than 100 pages, want %d at least", rests, 100/hashRun)
	}
	rests = 0
	mustHash(t, h, s) // nothing changed: only those whose turn it is are read
	if rests > 100/hashRun/2 {
		t.Errorf("it rested %d times although it read next to nothing", rests)
	}
}

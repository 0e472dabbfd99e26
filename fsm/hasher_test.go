package fsm

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
	"github.com/claimq/claimq/internal/proof"
)

// hashOfRecords hashes every record that a snapshot would have, and believes
// nothing that was remembered.
func hashOfRecords(s *snapshot.Snapshot) [16]byte {
	var hash snapshot.StateHash
	for kind, packed := range s.Records() {
		hash.Add(kind, packed)
	}
	return hash.Sum()
}

// mustHash ensures that the hasher says of the capture what is in it.
func mustHash(t rapid.TB, h *snapshot.Hasher, s *snapshot.Snapshot) {
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
	proof.Check(t, func(rt *rapid.T) {
		h, m := snapshot.NewHasher(nil), newSmall()
		var kept []*snapshot.Snapshot
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
		h, m, dice := snapshot.NewHasher(nil), newSmall(), rand.New(rand.NewPCG(seed, 2))
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

// TestHasher_HashesBesideApply hashes captures in another goroutine while the
// machine goes on, with and without captures that live; the race detector looks on.
func TestHasher_HashesBesideApply(t *testing.T) {
	t.Parallel()
	type capture struct {
		state *snapshot.Snapshot
		want  [16]byte
	}
	captures := make(chan capture)
	var hashing sync.WaitGroup
	hashing.Go(func() {
		h := snapshot.NewHasher(nil)
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

// newRotten returns a state with 32 pages of tasks, two of them claimed and the others
// packed, and with claim requests, removed tasks and a trail. It is only for hashing.
func newRotten(t *testing.T) *Machine {
	t.Helper()
	h := newHarness(t)
	h.m.trail.ChunkBytes = smallChunk
	h.do(command.SetLevel{Level: record.FeatureLevel})
	h.submit(32*record.PageSize-1, record.NewTask{Type: "mail", Params: []byte(`{"to":"a@example.com"}`)})
	h.do(command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 2*record.PageSize - 1})
	for id := range uint64(2 * record.PageSize) {
		h.m.requests.table.Put(id+1, &record.Request{ID: "a", ForgetU: int64(id)})
		h.m.gone.table.Put(id+1, &record.Gone{Key: "a", Status: record.StatusCompleted, ForgetU: int64(id)})
	}
	return h.m
}

// pagesOf returns the pages of the machine's tasks, which a capture of now shares.
func pagesOf(m *Machine) []*record.Page[record.Task] {
	v := m.tasks.View()
	defer v.Release()
	return v.Pages()
}

// rotTask flips a bit of the page's first task.
func rotTask(p *record.Page[record.Task]) {
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
	for name, rot := range map[string]func(m *Machine){
		"a claimed task":     func(m *Machine) { rotTask(pagesOf(m)[1]) },
		"a task that rests":  func(m *Machine) { rotTask(pagesOf(m)[20]) },
		"a claim request":    func(m *Machine) { m.requests.table.Get(70).ForgetU ^= 1 << 40 },
		"a removed task":     func(m *Machine) { m.gone.table.Get(128).Token ^= 1 },
		"a part of a trail":  func(m *Machine) { m.trail.Chunks()[3].Events[5] ^= 1 },
		"the head of a part": func(m *Machine) { m.trail.Chunks()[3].Base.T ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, h := newRotten(t), snapshot.NewHasher(nil)
			s := m.Snapshot()
			defer s.Release()
			mustHash(t, h, s)
			was := hashOfRecords(s)
			rot(m)
			now := hashOfRecords(s)
			found := 0
			for range snapshot.HashTurns {
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

// TestHasher_ReadsASixteenth ensures that a hash rereads only its share of what has not
// changed.
func TestHasher_ReadsASixteenth(t *testing.T) {
	t.Parallel()
	m, h := newRotten(t), snapshot.NewHasher(nil)
	s := m.Snapshot()
	defer s.Release()
	mustHash(t, h, s)
	pages := pagesOf(m)
	for _, p := range pages {
		rotTask(p)
	}
	for i := range snapshot.HashTurns {
		if _, rotten := h.Hash(s); rotten != len(pages)/snapshot.HashTurns {
			t.Errorf("hash %d of %d finds %d of %d rotten pages", i+1, snapshot.HashTurns, rotten, len(pages))
		}
	}
	mustHash(t, h, s)
}

// A hasher rests after each HashRun pages and then continues.
func TestHasher_Rests(t *testing.T) {
	t.Parallel()
	m := New()
	submit := command.Submit{Tasks: make([]record.NewTask, 100*record.PageSize)}
	for i := range submit.Tasks {
		submit.Tasks[i] = record.NewTask{Type: "mail", Params: []byte("1")}
	}
	mustApplyTo(t, m, testEntry{Index: 1, Stamp: record.Stamp{U: 1, T: 1}, Commands: []command.Command{command.SetLevel{Level: record.FeatureLevel}, submit}})
	rests := 0
	h := snapshot.NewHasher(func() { rests++ })
	s := m.Snapshot()
	defer s.Release()
	mustHash(t, h, s)
	if rests < 100/snapshot.HashRun {
		t.Errorf("it rested %d times while it read more than 100 pages, want %d at least", rests, 100/snapshot.HashRun)
	}
	rests = 0
	mustHash(t, h, s) // nothing changed: only those whose turn it is are read
	if rests > 100/snapshot.HashRun/2 {
		t.Errorf("it rested %d times although it read next to nothing", rests)
	}
}

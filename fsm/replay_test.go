package fsm

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
	"github.com/claimq/claimq/internal/proof"
)

// TestMachine_SnapshotsChangeNothing applies the same encoded log to two
// machines. One captures and releases snapshots at random points; results and
// states are the same all the same, and no capture sees what came later.
func TestMachine_SnapshotsChangeNothing(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		plain, captured := New(), newRestful()
		var live []*snapshot.Snapshot
		var hashes [][16]byte
		for _, e := range drawLog(rt, 40) {
			entry := command.AppendEntry(nil, e.Stamp, e.Commands...)
			want := mustApply(rt, plain, e.Index, entry)
			got := mustApply(rt, captured, e.Index, entry)
			if diff := diffBy(want, got, plansToo); diff != "" {
				rt.Fatalf("entry %d (-plain +captured):\n%s", e.Index, diff)
			}
			switch rapid.IntRange(0, 4).Draw(rt, "capture") {
			case 0:
				s := captured.Snapshot()
				live, hashes = append(live, s), append(hashes, s.Hash())
			case 1:
				if len(live) > 0 {
					live[0].Release()
					live, hashes = live[1:], hashes[1:]
				}
			}
			for i, s := range live {
				if s.Hash() != hashes[i] {
					rt.Fatalf("the snapshot of index %d changed at %d", s.Index(), e.Index)
				}
			}
		}
		for _, s := range live {
			s.Release()
			s.Release() // twice is once
		}
		if plain.Snapshot().Hash() != captured.Snapshot().Hash() {
			rt.Fatal("the states differ")
		}
		if v := captured.tasks.Live(); v != 1 {
			rt.Fatalf("%d views live, want the last one", v)
		}
		if err := captured.check(); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestMachine_ReplayIsApply applies the same encoded log to two machines, to one
// of them now and then by Replay: that says the same but for the results, leads to the
// same state, and does not change the results of Apply.
func TestMachine_ReplayIsApply(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		plain, replayed := New(), newRestful()
		var wants, gots []Applied
		for _, e := range drawLog(rt, 40) {
			entry := command.AppendEntry(nil, e.Stamp, e.Commands...)
			want := mustApply(rt, plain, e.Index, entry)
			if !rapid.Bool().Draw(rt, "replay") {
				wants, gots = append(wants, want), append(gots, mustApply(rt, replayed, e.Index, entry))
				continue
			}
			got, err := replayed.Replay(e.Index, entry)
			if err != nil {
				rt.Fatalf("replay entry %d: %v", e.Index, err)
			}
			if len(got.Leases) == 0 {
				got.Leases = nil
			}
			if len(got.Ended) == 0 {
				got.Ended = nil
			}
			if len(got.Results) != len(want.Results) {
				rt.Fatalf("entry %d has %d results, want %d", e.Index, len(got.Results), len(want.Results))
			}
			want.Results, got.Results = nil, nil
			if diff := diffBy(want, got, plansToo); diff != "" {
				rt.Fatalf("entry %d (-applied +replayed):\n%s", e.Index, diff)
			}
		}
		if diff := diffBy(wants, gots, plansToo); diff != "" {
			rt.Fatalf("results changed (-plain +between replays):\n%s", diff)
		}
		if plain.Snapshot().Hash() != replayed.Snapshot().Hash() {
			rt.Fatal("the states differ")
		}
		if err := replayed.check(); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestMachine_ReplayFillsTheSameAnswers ensures that a batch whose answer is full claims the
// same tasks in a Replay, which makes no answer.
func TestMachine_ReplayFillsTheSameAnswers(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 1<<20)
	claim := func(place uint32) command.ClaimNext {
		return command.ClaimNext{WorkerID: "w", Limit: 1, RequestID: "r", RequestPlace: place}
	}
	var ops [][]command.Command
	ops = append(ops, slices.Repeat([]command.Command{command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: large}}}}, 30))
	claims := make([]command.Command, 11)
	for i := range claims {
		claims[i] = claim(uint32(i))
	}
	ops = append(ops, claims)
	completes := make([]command.Command, 6)
	for i := range completes {
		next := claim(uint32(100 + i))
		completes[i] = command.Complete{Hold: command.Hold{ID: uint64(i + 1), WorkerID: "w", Token: uint64(i + 1)}, ResultPayload: large, Claim: &next}
	}
	ops = append(ops, completes, slices.Concat(completes, claims))
	applied, replayed := New(), New()
	for i, each := range ops {
		index := uint64(i + 1)
		entry := command.AppendEntry(nil, record.Stamp{U: int64(index), T: int64(index)}, command.Batch{Ops: each})
		mustApply(t, applied, index, entry)
		if _, err := replayed.Replay(index, entry); err != nil {
			t.Fatal(err)
		}
		if applied.ClaimCount() != replayed.ClaimCount() || hashOf(applied) != hashOf(replayed) {
			t.Fatalf("the states differ after entry %d: %d and %d claims", index, applied.ClaimCount(), replayed.ClaimCount())
		}
		if i == 1 && applied.ClaimCount() != 8 {
			t.Fatalf("%d claims in an answer of 8 MiB, want 8", applied.ClaimCount())
		}
	}
}

// mustApply applies an encoded entry.
func mustApply(t rapid.TB, m *Machine, index uint64, entry []byte) Applied {
	t.Helper()
	a, err := m.Apply(index, entry)
	if err != nil {
		t.Fatalf("apply entry %d: %v", index, err)
	}
	return a
}

// TestSnapshot_ReadsBesideApply reads snapshots in other goroutines while the
// machine goes on; the race detector looks on.
func TestSnapshot_ReadsBesideApply(t *testing.T) {
	t.Parallel()
	m := New()
	var readers sync.WaitGroup
	for i, e := range randomLog(1, 600) {
		mustApplyTo(t, m, e)
		if i%50 != 0 {
			continue
		}
		s := m.Snapshot()
		want := s.Hash()
		readers.Go(func() {
			defer s.Release()
			if got := s.Hash(); got != want {
				t.Errorf("the snapshot of index %d changed while it was read", s.Index())
			}
		})
	}
	readers.Wait()
}

// TestMachine_RebuildsWhatIsDerived ensures that rebuild computes from the saved records
// the same derived data as the commands did.
func TestMachine_RebuildsWhatIsDerived(t *testing.T) {
	t.Parallel()
	for seed := range seeds(10) {
		m := New()
		for i, e := range randomLog(seed, 300) {
			mustApplyTo(t, m, e)
			if i%20 != 0 {
				continue
			}
			before := m.Stats(m.Stamp())
			if err := m.rebuild(); err != nil {
				t.Fatalf("seed %d, index %d: %v", seed, e.Index, err)
			}
			mustCheck(t, m)
			if diff := cmp.Diff(before, m.Stats(m.Stamp())); diff != "" {
				t.Fatalf("seed %d, index %d (-before +rebuilt):\n%s", seed, e.Index, diff)
			}
		}
	}
}

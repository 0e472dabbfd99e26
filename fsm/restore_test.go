package fsm

import (
	"bytes"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
	"github.com/claimq/claimq/internal/proof"
)

// smallMemory makes short logs push claim requests and removed tasks out.
const smallMemory = 12

// smallChunk makes the trail have many chunks.
const smallChunk = 4 * event.EventRoom

func newSmall() *Machine {
	m := newRestful()
	m.requests.max, m.gone.max, m.trail.ChunkBytes = smallMemory, smallMemory, smallChunk
	return m
}

// applyLog applies the entries as the log has them and returns what they did.
func applyLog(t rapid.TB, m *Machine, log []testEntry) []Applied {
	t.Helper()
	all := make([]Applied, len(log))
	for i, e := range log {
		var err error
		if all[i], err = m.Apply(e.Index, command.AppendEntry(nil, e.Stamp, e.Commands...)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// snapshotOf returns the machine's snapshot in bytes.
func snapshotOf(t rapid.TB, m *Machine) []byte {
	t.Helper()
	s := m.Snapshot()
	defer s.Release()
	return written(t, s)
}

func written(t rapid.TB, s *snapshot.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d bytes, counted %d: %v", b.Len(), n, err)
	}
	return b.Bytes()
}

func hashOf(m *Machine) [16]byte {
	s := m.Snapshot()
	defer s.Release()
	return s.Hash()
}

// restore reads a snapshot that must be good.
func restore(t rapid.TB, saved []byte) *Machine {
	t.Helper()
	m, err := ReadSnapshot(bytes.NewReader(saved))
	if err != nil {
		t.Fatal(err)
	}
	m.requests.max, m.gone.max, m.trail.ChunkBytes = smallMemory, smallMemory, smallChunk
	if err := m.check(); err != nil {
		t.Fatalf("restored: %v", err)
	}
	return m
}

// replay is the result of applying a whole log.
type replay struct {
	log     []testEntry
	results []Applied
	final   []byte   // the snapshot at its end
	hash    [16]byte // and the state hash
}

func newReplay(t rapid.TB, log []testEntry) replay {
	t.Helper()
	m := newSmall()
	results := applyLog(t, m, log)
	return replay{log: log, results: results, final: snapshotOf(t, m), hash: hashOf(m)}
}

// checkRestore checks that restoring m's snapshot, after m applied the first prefix
// entries, and applying the rest gives the same as the replay.
func (r replay) checkRestore(t rapid.TB, m *Machine, prefix int) {
	t.Helper()
	saved := snapshotOf(t, m)
	other := restore(t, saved)
	if !bytes.Equal(snapshotOf(t, other), saved) || hashOf(other) != hashOf(m) {
		t.Fatalf("restored after %d entries, the snapshot or its hash differs", prefix)
	}
	rest := applyLog(t, other, r.log[prefix:])
	if !reflect.DeepEqual(r.results[prefix:], rest) {
		t.Fatalf("restored after %d entries, results differ (-replayed +restored):\n%s", prefix, cmp.Diff(r.results[prefix:], rest, plansToo))
	}
	if !bytes.Equal(snapshotOf(t, other), r.final) || hashOf(other) != r.hash {
		t.Fatalf("restored after %d of %d entries, the last snapshot or its hash differs", prefix, len(r.log))
	}
}

// apply(all) == restore(snapshot(apply(prefix))) + apply(rest) for every
// prefix: in results, hash and the bytes of snapshots.
func TestRestoreEqualsReplay(t *testing.T) {
	t.Parallel()
	for seed := range seeds(8) {
		r := newReplay(t, randomLog(seed, 100))
		m := newSmall()
		for prefix := range len(r.log) {
			r.checkRestore(t, m, prefix)
			applyLog(t, m, r.log[prefix:prefix+1])
		}
		r.checkRestore(t, m, len(r.log))
	}
}

func TestRestoreEqualsReplay_AnyLog(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		r := newReplay(t, drawLog(t, 40))
		prefix := rapid.IntRange(0, len(r.log)).Draw(t, "prefix")
		m := newSmall()
		applyLog(t, m, r.log[:prefix])
		r.checkRestore(t, m, prefix)
	})
}

// A task that was completed late after its only claim has the same log of claims, an empty one, in
// the state and restored.
func TestRestoreEqualsReplay_completedLate(t *testing.T) {
	t.Parallel()
	hold := command.Hold{ID: 1, WorkerID: "w", Token: 1}
	var log []testEntry
	for i, c := range []command.Command{
		command.Submit{Tasks: []record.NewTask{{Type: "mail", MaxAttempts: 2, Payload: make([]byte, 10_000)}}},
		command.ClaimNext{WorkerID: "w", Limit: 1},
		command.Fail{Hold: hold, Error: "no"},
		command.Complete{Hold: hold, Late: true},
		command.Complete{Hold: hold},
	} {
		log = append(log, testEntry{Index: uint64(i + 1), Stamp: record.Stamp{U: 1, T: 1}, Commands: []command.Command{c}})
	}
	r := newReplay(t, log)
	m := newSmall()
	applyLog(t, m, log[:4])
	r.checkRestore(t, m, 4)
}

// A snapshot is of the moment of its capture, however late it is written.
func TestSnapshot_IsWrittenBesideApply(t *testing.T) {
	t.Parallel()
	for seed := range seeds(10) {
		log := randomLog(seed, 300)
		m := newSmall()
		applyLog(t, m, log[:150])
		atOnce, hash := snapshotOf(t, m), hashOf(m)
		var late []byte
		var lateHash [16]byte
		s := m.Snapshot()
		var writing sync.WaitGroup
		writing.Go(func() {
			defer s.Release()
			late, lateHash = written(t, s), s.Hash()
		})
		applyLog(t, m, log[150:225])
		writing.Wait()
		later := m.Snapshot() // now without a concurrent snapshot
		first := snapshotOf(t, m)
		applyLog(t, m, log[225:])
		if !bytes.Equal(late, atOnce) || lateHash != hash {
			t.Fatalf("seed %d: written beside later entries, the snapshot differs", seed)
		}
		if !bytes.Equal(written(t, later), first) {
			t.Fatalf("seed %d: written after later entries, the snapshot differs", seed)
		}
		later.Release()
		later.Release() // twice is safe
		m2 := newSmall()
		applyLog(t, m2, log)
		if !bytes.Equal(snapshotOf(t, m), snapshotOf(t, m2)) {
			t.Fatalf("seed %d: snapshots on the way changed the state", seed)
		}
	}
}

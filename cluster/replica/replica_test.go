package replica

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/proof"
)

// newTestReplica returns a replica with an empty state, on the machine's clocks.
func newTestReplica(t testing.TB, fatal func(error)) *Replica {
	t.Helper()
	return New(Config{
		Clock: clocks.System(), Fatal: fatal, Stats: noStats{}, Logger: hclog.NewNullLogger(),
		BeforeCompact: func(uint64, int64, int64) {},
	})
}

// noStats counts nothing.
type noStats struct{}

func (noStats) Applied(*fsm.Applied, bool)     {}
func (noStats) Captured(time.Duration)         {}
func (noStats) Persisted(time.Duration, int64) {}
func (noStats) Restored()                      {}

// An entry that this binary does not know, or that is damaged, ends the node inside Apply,
// because Raft's index must not pass it.
func TestReplica_fatalNeverReturns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"unknown": {append(replicatest.Entry(1, command.Tick{})[:3], 1, 99, 0), fsm.ErrUnknownCommand},
		"corrupt": {replicatest.Entry(1, command.Delete{ID: 7})[:5], fsm.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got error
			f := newTestReplica(t, func(err error) {
				got = err
				runtime.Goexit() // in production the process ends
			})
			returned := make(chan bool, 1)
			done := make(chan struct{})
			go func() {
				defer close(done)
				f.Apply(&raft.Log{Index: 1, Data: c.data})
				returned <- true
			}()
			<-done
			if len(returned) > 0 || !errors.Is(got, c.want) {
				t.Errorf("apply returned: %v; fatal with %v, want %v", len(returned) > 0, got, c.want)
			}
			if f.applied.Load() != 0 {
				t.Errorf("the applied index went to %d", f.applied.Load())
			}
		})
	}
}

func TestReplica_snapshotAndRestore(t *testing.T) {
	t.Parallel()
	f := newTestReplica(t, func(err error) { t.Error(err) })
	f.ApplyEntry(3, 1, replicatest.Entry(5, command.Submit{Tasks: []fsm.NewTask{{Type: "t", Params: []byte("1")}}}))
	captured, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	f.ApplyEntry(4, 1, replicatest.Entry(6, command.Submit{Tasks: []fsm.NewTask{{Type: "t", Params: []byte("2")}}}))
	full := &replicatest.Sink{Fail: io.ErrShortWrite}
	if err := captured.Persist(full); !errors.Is(err, io.ErrShortWrite) || !full.Canceled {
		t.Errorf("a sink that fails: %v, cancelled %v", err, full.Canceled)
	}
	sink := &replicatest.Sink{}
	if err := captured.Persist(sink); err != nil {
		t.Fatal(err)
	}
	captured.Release()
	if f.sinceCommands.Load() != 1 {
		t.Errorf("%d commands since the snapshot, want 1", f.sinceCommands.Load())
	}

	other := newTestReplica(t, func(err error) { t.Error(err) })
	other.ApplyEntry(1, 1, replicatest.Entry(1, command.Tick{}))
	damaged := bytes.Clone(sink.Bytes())
	damaged[len(damaged)/2] ^= 1
	if err := other.Restore(io.NopCloser(bytes.NewReader(damaged))); err == nil {
		t.Error("a damaged snapshot was restored")
	}
	if other.applied.Load() != 1 {
		t.Errorf("a damaged snapshot moved the state to %d", other.applied.Load())
	}
	if err := other.Restore(io.NopCloser(bytes.NewReader(sink.Bytes()))); err != nil {
		t.Fatal(err)
	}
	if other.applied.Load() != 3 || other.Read(func(*fsm.Machine) {}) != 3 {
		t.Errorf("restored to %d, want 3", other.applied.Load())
	}
}

func TestReplica_wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTestReplica(t, func(err error) { t.Error(err) })
		done := make(chan uint64, 10)
		for _, index := range []uint64{5, 2, 9, 3} {
			go func() {
				if err := f.Wait(t.Context(), index); err != nil {
					t.Error(err)
				}
				done <- index
			}()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Wait(ctx, 4); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if f.waiting.Load() != 4 {
			t.Errorf("%d wait, want 4", f.waiting.Load())
		}
		f.ApplyEntry(3, 1, replicatest.Entry(1, command.Tick{}))
		synctest.Wait()
		if len(done) != 2 {
			t.Errorf("%d waits ended at index 3, want 2", len(done))
		}
		// A configuration entry also advances the index.
		f.StoreConfiguration(9, raft.Configuration{})
		synctest.Wait()
		if len(done) != 4 || f.waiting.Load() != 0 {
			t.Errorf("%d waits ended at index 9, %d wait", len(done), f.waiting.Load())
		}
	})
}

// Restoring snapshot after snapshot without progress ends the node, however long each
// takes; catching up does not.
func TestRestoreWatch(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		var w restoreWatch
		index, same := uint64(1), 0 // restores since the node last made progress
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				index++
				same = 0
			case 1:
				w.applied()
				same = 0
			}
			same++
			if got, want := w.restored(index), same >= restoresMax; got != want {
				t.Fatalf("restore %d in a row at index %d taken for a loop: %v", same, index, got)
			}
		}
	})
}

// TestReplica_DropsResultsNobodyAwaits ensures that only a node that may have proposed an
// entry gets its results, because the next entry reuses their memory.
func TestReplica_DropsResultsNobodyAwaits(t *testing.T) {
	t.Parallel()
	f := newTestReplica(t, func(err error) { t.Error(err) })
	submit := func(index uint64) *fsm.Applied {
		return f.ApplyEntry(index, 1, replicatest.Entry(1, command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}}))
	}
	awaited := false
	f.cfg.Awaited = func() bool { return awaited }
	if a := submit(1); a.Index != 1 || a.Results != nil {
		t.Errorf("got %+v, want no results", a)
	}
	awaited = true
	first, second := submit(2), submit(3)
	if a, b := first.Results[0].Submitted[0].Task.ID, second.Results[0].Submitted[0].Task.ID; a != 2 || b != 3 {
		t.Errorf("got tasks %d and %d, want 2 and 3", a, b)
	}
}

// A leader whose disk fails while an entry is being written neither answers nor applies it,
// or anything after it, and takes no snapshot that would hide that.
func TestReplica_leaderDiskFails(t *testing.T) {
	t.Parallel()
	f := newTestReplica(t, func(err error) { t.Errorf("fatal: %v", err) })
	failure := errors.New("the disk is gone")
	f.stored = func(index uint64) error {
		if index == 2 {
			return failure
		}
		return nil
	}
	entry := func(index uint64) *raft.Log {
		return &raft.Log{Index: index, Data: command.AppendEntry(nil, fsm.Stamp{U: int64(index)}, command.SetLevel{Level: fsm.FeatureLevel()})}
	}
	if a, ok := f.Apply(entry(1)).(*fsm.Applied); !ok || a.Index != 1 {
		t.Errorf("entry 1: %v", a)
	}
	for _, index := range []uint64{2, 3} {
		if err, ok := f.Apply(entry(index)).(error); !ok || !errors.Is(err, failure) {
			t.Errorf("entry %d: %v", index, err)
		}
	}
	f.StoreConfiguration(4, raft.Configuration{})
	if _, err := f.Snapshot(); !errors.Is(err, failure) {
		t.Errorf("snapshot: %v", err)
	}
	if applied := f.applied.Load(); applied != 1 {
		t.Errorf("applied up to %d", applied)
	}
}

package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm"
)

func newTestFSM(t *testing.T, fatal func(error)) *raftFSM {
	t.Helper()
	n, err := newNode(Config{NodeID: "n", Fatal: fatal}.withDefaults(), Parts{})
	if err != nil {
		t.Fatal(err)
	}
	n.cancel(errNodeClosed)
	return n.fsm
}

func entryOf(u int64, commands ...fsm.Command) []byte {
	return fsm.AppendEntry(nil, fsm.Stamp{U: u, T: u}, commands...)
}

// An entry that this binary does not know, or that is damaged, ends the node
// inside Apply: Raft's index must not pass it.
func TestRaftFSM_fatalNeverReturns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"unknown": {append(entryOf(1, fsm.Tick{})[:3], 1, 99, 0), fsm.ErrUnknownCommand},
		"corrupt": {entryOf(1, fsm.Delete{ID: 7})[:5], fsm.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got error
			f := newTestFSM(t, func(err error) {
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

// memorySink is a raft.SnapshotSink.
type memorySink struct {
	bytes.Buffer
	fail     error
	canceled bool
}

func (s *memorySink) Write(b []byte) (int, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	return s.Buffer.Write(b)
}
func (s *memorySink) Close() error  { return nil }
func (s *memorySink) Cancel() error { s.canceled = true; return nil }
func (s *memorySink) ID() string    { return "memory" }

func TestRaftFSM_snapshotAndRestore(t *testing.T) {
	t.Parallel()
	f := newTestFSM(t, func(err error) { t.Error(err) })
	f.apply(3, 1, entryOf(5, fsm.Submit{Tasks: []fsm.NewTask{{Type: "t", Params: []byte("1")}}}))
	captured, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	f.apply(4, 1, entryOf(6, fsm.Submit{Tasks: []fsm.NewTask{{Type: "t", Params: []byte("2")}}}))
	full := &memorySink{fail: io.ErrShortWrite}
	if err := captured.Persist(full); !errors.Is(err, io.ErrShortWrite) || !full.canceled {
		t.Errorf("a sink that fails: %v, cancelled %v", err, full.canceled)
	}
	sink := &memorySink{}
	if err := captured.Persist(sink); err != nil {
		t.Fatal(err)
	}
	captured.Release()
	if f.sinceCommands.Load() != 1 {
		t.Errorf("%d commands since the snapshot, want 1", f.sinceCommands.Load())
	}

	other := newTestFSM(t, func(err error) { t.Error(err) })
	other.apply(1, 1, entryOf(1, fsm.Tick{}))
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
	if other.applied.Load() != 3 || other.read(func(*fsm.Machine) {}) != 3 {
		t.Errorf("restored to %d, want 3", other.applied.Load())
	}
}

// A node whose newest snapshot cannot be restored does not start with an older
// state.
func TestOpenParts_badSnapshot(t *testing.T) {
	t.Parallel()
	snapshots := raft.NewInmemSnapshotStore()
	_, transport := raft.NewInmemTransport("n")
	defer transport.Close()
	server := raft.Server{ID: "uuid", Address: "n"}
	sink, err := snapshots.Create(1, 5, 1, raft.Configuration{Servers: []raft.Server{server}}, 1, transport)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("no snapshot of ours")); err != nil {
		t.Fatal(err)
	}
	logs := raft.NewInmemStore()
	n, err := OpenParts(Config{NodeID: "n"}, Parts{UUID: "uuid", Logs: logs, Stable: logs, Snapshots: snapshots, Transport: transport})
	if err == nil {
		closeNode(t, n)
	}
	if !errors.Is(err, fsm.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestRaftFSM_wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTestFSM(t, func(err error) { t.Error(err) })
		done := make(chan uint64, 10)
		for _, index := range []uint64{5, 2, 9, 3} {
			go func() {
				if err := f.wait(t.Context(), index); err != nil {
					t.Error(err)
				}
				done <- index
			}()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.wait(ctx, 4); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if f.waiting.Load() != 4 {
			t.Errorf("%d wait, want 4", f.waiting.Load())
		}
		f.apply(3, 1, entryOf(1, fsm.Tick{}))
		synctest.Wait()
		if len(done) != 2 {
			t.Errorf("%d waits ended at index 3, want 2", len(done))
		}
		// A configuration entry moves the index too.
		f.StoreConfiguration(9, raft.Configuration{})
		synctest.Wait()
		if len(done) != 4 || f.waiting.Load() != 0 {
			t.Errorf("%d waits ended at index 9, %d wait", len(done), f.waiting.Load())
		}
	})
}

// Snapshot after snapshot without getting on ends the node, however long each
// takes; catching up does not.
func TestRestoreWatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w restoreWatch
		index, same := uint64(1), 0 // restores since the node last got on
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

func TestTrailingLogs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bytes, entries int64
		want           uint64
	}{
		{0, 0, trailingLogsMax},
		{100 << 20, 1_000_000, trailingLogsMax},
		{100 << 20, 100, trailingLogsMin},
		{100 << 20, 5000, 3200},
	} {
		if got := trailingLogs(c.bytes, c.entries); got != c.want {
			t.Errorf("%d entries of %d bytes: %d, want %d", c.entries, c.bytes, got, c.want)
		}
	}
}

// TestRaftFSM_DropsResultsNobodyAwaits ensures that only who may have proposed an
// entry gets its results: they are made of memory that the next one uses again.
func TestRaftFSM_DropsResultsNobodyAwaits(t *testing.T) {
	t.Parallel()
	f := newTestFSM(t, func(err error) { t.Error(err) })
	submit := func(index uint64) *fsm.Applied {
		return f.apply(index, 1, entryOf(1, fsm.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}}))
	}
	awaited := false
	f.awaited = func() bool { return awaited }
	if a := submit(1); a.Index != 1 || a.Results != nil {
		t.Errorf("got %+v, want no results", a)
	}
	awaited = true
	first, second := submit(2), submit(3)
	if a, b := first.Results[0].Submitted[0].Task.ID, second.Results[0].Submitted[0].Task.ID; a != 2 || b != 3 {
		t.Errorf("got tasks %d and %d, want 2 and 3", a, b)
	}
}

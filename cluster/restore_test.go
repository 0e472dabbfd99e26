package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

// fill submits so many tasks of a size, in entries from first on, and returns the
// index of the last.
func fill(f *raftFSM, first uint64, tasks, size int) (last uint64) {
	params := []byte(`"` + strings.Repeat("x", size-2) + `"`)
	for last = first; tasks > 0; last++ {
		submit := fsm.Submit{Tasks: make([]fsm.NewTask, min(tasks, 100))}
		for i := range submit.Tasks {
			submit.Tasks[i] = fsm.NewTask{Type: "t", Params: params}
		}
		f.apply(last, 1, entryOf(int64(last), submit))
		tasks -= len(submit.Tasks)
	}
	return last - 1
}

// persisted returns the state's snapshot.
func persisted(t *testing.T, f *raftFSM) []byte {
	t.Helper()
	s, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	var sink memorySink
	if err := s.Persist(&sink); err != nil {
		t.Fatal(err)
	}
	return sink.Bytes()
}

// wrappedSnapshot is a snapshot as Raft hands it over, wrapped.
type wrappedSnapshot struct{ *memorySnapshot }

func (w wrappedSnapshot) WrappedReadCloser() io.ReadCloser { return w.memorySnapshot }

// memorySnapshot is a snapshot that can be read again.
type memorySnapshot struct {
	*bytes.Reader
	again func([]byte) []byte // what is read the second time
	read  func()              // called by each Read, once it was rewound; nil = nothing
	data  []byte
	twice bool
}

func newMemorySnapshot(data []byte) *memorySnapshot {
	return &memorySnapshot{Reader: bytes.NewReader(data), data: data}
}

func (s *memorySnapshot) Read(b []byte) (int, error) {
	if s.twice && s.read != nil {
		s.read()
	}
	return s.Reader.Read(b)
}

func (s *memorySnapshot) Rewind() error {
	if s.again != nil {
		s.data = s.again(bytes.Clone(s.data))
	}
	s.twice = true
	s.Reset(s.data)
	return nil
}

func (s *memorySnapshot) Close() error { return nil }

// hidden is a snapshot that can be read once.
func hidden(s *memorySnapshot) io.ReadCloser { return io.NopCloser(io.MultiReader(s)) }

// tasksOf returns how many tasks are seen, or why none are.
func tasksOf(f *raftFSM) (tasks int64, err error) {
	_, err = f.readState(func(m *fsm.Machine) { tasks = m.Stats(m.Stamp()).Counts[fsm.StatusPending] })
	return tasks, err
}

// While a snapshot is restored the old state is seen if there is room for both,
// else none; after it the new one.
func TestRestore_room(t *testing.T) {
	t.Parallel()
	source := newTestFSM(t, func(err error) { t.Error(err) })
	last := fill(source, 1, 700, 200)
	snapshot := persisted(t, source)
	for _, c := range []struct {
		name string
		old  int // tasks
		room func(old, other int64) int64
		once bool // it cannot be read twice
		drop bool
	}{
		{name: "for both", old: 500, room: func(old, other int64) int64 { return old + other*11/10 }},
		{name: "for each alone", old: 500, room: func(old, other int64) int64 { return old + other*8/10 }, drop: true},
		{name: "for neither", old: 500, room: func(int64, int64) int64 { return 1 }, drop: true},
		{name: "for nothing, but there is nothing either", room: func(int64, int64) int64 { return 1000 }},
		{name: "not known beforehand", old: 500, room: func(int64, int64) int64 { return 1 }, once: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newTestFSM(t, func(err error) { t.Error(err) })
			before := fill(f, 1, c.old, 200)
			f.restoreRoom = c.room(f.bytes.Load(), source.bytes.Load())
			s := newMemorySnapshot(snapshot)
			reads := 0
			look := func() {
				reads++
				tasks, err := tasksOf(f)
				if c.drop != errors.Is(err, fsm.ErrNoLeader) || !c.drop && tasks != int64(c.old) {
					t.Errorf("%d tasks, error %v while it is restored", tasks, err)
				}
				if f.applied.Load() != before {
					t.Errorf("index %d while it is restored, want %d", f.applied.Load(), before)
				}
			}
			var from io.ReadCloser = wrappedSnapshot{s}
			if s.read = look; c.once || c.old == 0 {
				s.twice = true // from the start
			}
			if c.once {
				from = hidden(s)
			}
			if err := f.Restore(from); err != nil {
				t.Fatal(err)
			}
			if tasks, err := tasksOf(f); tasks != 700 || err != nil || f.applied.Load() != last || reads == 0 {
				t.Errorf("%d tasks, error %v, index %d, %d looks; want 700 tasks at %d", tasks, err, f.applied.Load(), reads, last)
			}
		})
	}
}

// A bad file leaves the state whatever the room. One that goes bad between being
// verified and being built from leaves it if it is still there, else it is fatal.
func TestRestore_damage(t *testing.T) {
	t.Parallel()
	source := newTestFSM(t, func(err error) { t.Error(err) })
	fill(source, 1, 700, 200)
	snapshot := persisted(t, source)
	rot := func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	}
	for _, c := range []struct {
		name        string
		room        int64
		late, fatal bool
	}{
		{name: "with room", room: 1 << 20},
		{name: "without", room: 1},
		{name: "late, with room", room: 1 << 20, late: true},
		{name: "late, without", room: 1, late: true, fatal: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var fatal error
			f := newTestFSM(t, func(err error) {
				fatal = err
				runtime.Goexit() // in production the process ends
			})
			f.started.Store(true)
			before := fill(f, 1, 500, 200)
			f.restoreRoom = c.room
			s := newMemorySnapshot(snapshot)
			if c.late {
				s.again = rot
			} else {
				s = newMemorySnapshot(rot(bytes.Clone(snapshot)))
			}
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				err = f.Restore(wrappedSnapshot{s})
			}()
			<-done
			if c.fatal {
				if !errors.Is(fatal, fsm.ErrCorrupt) || !strings.Contains(fatal.Error(), "start this node again") {
					t.Errorf("fatal with %v", fatal)
				}
				if _, err := tasksOf(f); !errors.Is(err, fsm.ErrNoLeader) {
					t.Errorf("what is left of the state is shown: error %v", err)
				}
				return
			}
			if tasks, readErr := tasksOf(f); fatal != nil || !errors.Is(err, fsm.ErrCorrupt) || tasks != 500 || readErr != nil || f.applied.Load() != before {
				t.Errorf("error %v, fatal %v; %d tasks, %v, index %d", err, fatal, tasks, readErr, f.applied.Load())
			}
		})
	}
}

// While there is no state, nobody is shown an empty one, and what the cluster is
// made of is known.
func TestRestore_readers(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.NodeID, cfg.NoRaft, cfg.Registerer = "n1", true, prometheus.NewRegistry()
	cfg.Fatal = func(err error) { t.Error(err) }
	n := openNode(t, cfg)
	eventually(t, "it serves", n.IsLeader)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	submit := fsm.Submit{Tasks: []fsm.NewTask{{Type: "t", Params: []byte("1")}}}
	p, err := n.Propose(ctx, submit)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := persisted(t, n.fsm)
	id := p.Result.Submitted[0].Task.ID
	ended := make(chan error, 1)
	go func() { ended <- n.WaitEnded(ctx, id, time.Hour) }()
	eventually(t, "somebody to wait", func() bool { return n.fsm.watches.endCount.Load() == 1 })

	n.fsm.restoreRoom = 1
	s := newMemorySnapshot(snapshot)
	asked := false
	s.read = func() {
		if asked {
			return
		}
		asked = true
		look := func(*fsm.Machine, fsm.Stamp) { t.Error("a state is shown") }
		_, stale := n.ReadStale(ctx, 0, look)
		_, linearizable := n.ReadLinearizable(ctx, 0, look)
		_, backup := n.SaveBackup(ctx, true)
		_, _, claim := n.claimNothing(ctx, fsm.ClaimNext{WorkerID: "w", Limit: 1})
		_, ground := n.ground()
		for what, err := range map[string]error{
			"a stale read": stale, "a linearizable read": linearizable, "a backup": backup, "a claim": claim, "a restore": ground,
			"who waits for an end": n.WaitEnded(ctx, id, time.Hour), "who waits for events": n.WaitEvent(ctx, event.Pos{}),
			"readiness": n.Ready(),
		} {
			if !errors.Is(err, fsm.ErrNoLeader) {
				t.Errorf("%s: error %v, want no leader", what, err)
			}
		}
		if index, hash := n.StateHash(); index != 0 || hash != [16]byte{} {
			t.Errorf("hash %x of index %d", hash, index)
		}
		if _, err := cfg.Registerer.(*prometheus.Registry).Gather(); err != nil {
			t.Error(err)
		}
		if level := n.Cluster(ctx).FeatureLevel; level != fsm.FeatureLevel {
			t.Errorf("feature level %d", level)
		}
	}
	if err := n.fsm.Restore(wrappedSnapshot{s}); err != nil || !asked {
		t.Fatal(err, asked)
	}
	if err := n.Ready(); err != nil {
		t.Error(err)
	}
	if _, err := n.Propose(ctx, fsm.Cancel{ID: id}); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("who waited all the time: %v", err)
	}
}

// A snapshot of a state that is replaced meanwhile is given up, and keeps nothing
// of it: also one whose writing has not begun, which may wait for the restore.
func TestRestore_voidsSnapshots(t *testing.T) {
	t.Parallel()
	f := newTestFSM(t, func(err error) { t.Error(err) })
	fill(f, 1, 100, 200)
	data := persisted(t, f)
	waiting, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Restore(newMemorySnapshot(data)); err != nil {
		t.Fatal(err)
	}
	if waiting.(*fsmSnapshot).state != nil {
		t.Error("it keeps the state that was replaced")
	}
	var sink memorySink
	if err := waiting.Persist(&sink); !errors.Is(err, errReplaced) || !sink.canceled || sink.Len() > 0 {
		t.Errorf("error %v, cancelled %v, %d bytes", err, sink.canceled, sink.Len())
	}
	waiting.Release()
	if got := f.sinceCommands.Load(); got != 0 {
		t.Errorf("%d commands since the snapshot", got)
	}
}

// liveHeap returns how many bytes live.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// With no room for two states a restore never has much more in memory than one.
// Nothing runs beside it: the heap is that of the process.
func TestRestore_memory(t *testing.T) { //nolint:paralleltest // it measures the heap
	const tasks, size = 40_000, 500
	snapshot := func() []byte {
		source := newTestFSM(t, func(err error) { t.Error(err) })
		fill(source, 1, tasks, size)
		return persisted(t, source)
	}()
	for _, c := range []struct {
		room   int64
		factor float64 // of one state
	}{{room: 1 << 30, factor: 2.2}, {room: 1, factor: 1.2}} {
		t.Run(fmt.Sprint("room ", c.room), func(t *testing.T) {
			base := liveHeap()
			f := newTestFSM(t, func(err error) { t.Error(err) })
			fill(f, 1, tasks, size)
			one := liveHeap() - base
			f.restoreRoom = c.room
			s := newMemorySnapshot(snapshot)
			peak, reads := int64(0), 0
			s.read = func() {
				if reads++; reads%8 == 0 {
					peak = max(peak, liveHeap()-base)
				}
			}
			if err := f.Restore(wrappedSnapshot{s}); err != nil {
				t.Fatal(err)
			}
			peak = max(peak, liveHeap()-base)
			got := float64(peak) / float64(one)
			t.Logf("%d bytes live at most, a state of %d: %.2f", peak, one, got)
			if got > c.factor || c.room > 1 && got < c.factor-0.5 {
				t.Errorf("%.2f states are in memory at most, want %.2f", got, c.factor)
			}
			runtime.KeepAlive(f)
		})
	}
	runtime.KeepAlive(snapshot)
}

var _ raft.ReadCloserWrapper = wrappedSnapshot{}

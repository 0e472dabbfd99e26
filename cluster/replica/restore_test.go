package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

// hidden returns a snapshot that can be read once.
func hidden(s *replicatest.Snapshot) io.ReadCloser { return io.NopCloser(io.MultiReader(s)) }

// tasksOf returns the number of visible tasks, or the reason why none are visible.
func tasksOf(f *Replica) (tasks int64, err error) {
	_, err = f.ReadState(func(m *fsm.Machine) { tasks = m.Stats(m.Stamp()).Counts[fsm.StatusPending] })
	return tasks, err
}

// While a snapshot is restored the old state is visible if there is room for both,
// otherwise none; afterwards the new one.
func TestRestore_room(t *testing.T) {
	t.Parallel()
	source := newTestReplica(t, func(err error) { t.Error(err) })
	last := replicatest.Fill(source, 1, 700, 200)
	snapshot := replicatest.Persisted(t, source)
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
			f := newTestReplica(t, func(err error) { t.Error(err) })
			before := replicatest.Fill(f, 1, c.old, 200)
			f.RestoreRoom = c.room(f.bytes.Load(), source.bytes.Load())
			s := replicatest.NewSnapshot(snapshot)
			reads := 0
			look := func() {
				reads++
				tasks, err := tasksOf(f)
				if c.drop != errors.Is(err, nodes.ErrNoLeader) || !c.drop && tasks != int64(c.old) {
					t.Errorf("%d tasks, error %v while it is restored", tasks, err)
				}
				if f.applied.Load() != before {
					t.Errorf("index %d while it is restored, want %d", f.applied.Load(), before)
				}
			}
			var from io.ReadCloser = replicatest.Wrapped{Snapshot: s}
			if s.OnRead = look; c.once || c.old == 0 {
				s.Twice = true // from the start
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

// A bad file leaves the state unchanged, with and without room. One that goes bad between
// being verified and being built from leaves the state if it is still there; otherwise it
// is fatal.
func TestRestore_damage(t *testing.T) {
	t.Parallel()
	source := newTestReplica(t, func(err error) { t.Error(err) })
	replicatest.Fill(source, 1, 700, 200)
	snapshot := replicatest.Persisted(t, source)
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
			f := newTestReplica(t, func(err error) {
				fatal = err
				runtime.Goexit() // in production the process ends
			})
			f.started.Store(true)
			before := replicatest.Fill(f, 1, 500, 200)
			f.RestoreRoom = c.room
			s := replicatest.NewSnapshot(snapshot)
			if c.late {
				s.Again = rot
			} else {
				s = replicatest.NewSnapshot(rot(bytes.Clone(snapshot)))
			}
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				err = f.Restore(replicatest.Wrapped{Snapshot: s})
			}()
			<-done
			if c.fatal {
				if !errors.Is(fatal, fsm.ErrCorrupt) || !strings.Contains(fatal.Error(), "start this node again") {
					t.Errorf("fatal with %v", fatal)
				}
				if _, err := tasksOf(f); !errors.Is(err, nodes.ErrNoLeader) {
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

// closingSink is a sink with a callback while it is closed.
type closingSink struct {
	replicatest.Sink
	meanwhile func()
}

func (s *closingSink) Close() error {
	s.meanwhile()
	return s.Sink.Close()
}

// A snapshot whose state is replaced while its last bytes are written is void, too: Raft
// would take it for its newest and forget the one that came meanwhile.
func TestRestore_voidsAFinishedSnapshot(t *testing.T) {
	t.Parallel()
	fatal := func(err error) { t.Error(err) }
	f, other := newTestReplica(t, fatal), newTestReplica(t, fatal)
	replicatest.Fill(f, 1, 100, 100)
	replicatest.Fill(other, 1, 300, 100)
	newer := replicatest.Persisted(t, other)
	older, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer older.Release()
	sink := closingSink{meanwhile: func() {
		if err := f.Restore(replicatest.NewSnapshot(newer)); err != nil {
			t.Error(err)
		}
	}}
	if err := older.Persist(&sink); !errors.Is(err, errReplaced) {
		t.Errorf("error %v, want that the state was replaced", err)
	}
	if index := f.SnapshotIndex(); index != 0 {
		t.Errorf("the snapshot of entry %d counts", index)
	}
	if bytes, commands := f.SinceSnapshot(); bytes != 0 || commands != 0 {
		t.Errorf("%d bytes and %d commands since the snapshot that was restored, want none", bytes, commands)
	}
}

// A restore waits until Raft has recorded a snapshot that was just taken, and has compacted
// its log; otherwise the two could happen in any order.
func TestRestore_awaitsASnapshotThatCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fatal := func(err error) { t.Error(err) }
		f, other := newTestReplica(t, fatal), newTestReplica(t, fatal)
		replicatest.Fill(f, 1, 100, 100)
		last := replicatest.Fill(other, 1, 300, 100)
		newer := replicatest.Persisted(t, other)
		older, err := f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if err := older.Persist(&replicatest.Sink{}); err != nil {
			t.Fatal(err)
		}
		restored := make(chan error, 1)
		go func() { restored <- f.Restore(replicatest.NewSnapshot(newer)) }()
		synctest.Wait()
		if index := f.AppliedIndex(); index != 1 || len(restored) > 0 {
			t.Errorf("the state is that of entry %d before Raft has noted the snapshot of entry 1", index)
		}
		older.Release()
		if err := <-restored; err != nil {
			t.Fatal(err)
		}
		if index := f.AppliedIndex(); index != last {
			t.Errorf("the state is that of entry %d, want %d", index, last)
		}
	})
}

// A snapshot of a state that is replaced meanwhile is given up, and keeps nothing of that
// state, even if its writing has not begun and may wait for the restore.
func TestRestore_voidsSnapshots(t *testing.T) {
	t.Parallel()
	f := newTestReplica(t, func(err error) { t.Error(err) })
	replicatest.Fill(f, 1, 100, 200)
	data := replicatest.Persisted(t, f)
	waiting, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Restore(replicatest.NewSnapshot(data)); err != nil {
		t.Fatal(err)
	}
	if waiting.(*snapshot).state != nil {
		t.Error("it keeps the state that was replaced")
	}
	var sink replicatest.Sink
	if err := waiting.Persist(&sink); !errors.Is(err, errReplaced) || !sink.Canceled || sink.Len() > 0 {
		t.Errorf("error %v, cancelled %v, %d bytes", err, sink.Canceled, sink.Len())
	}
	waiting.Release()
	if got := f.sinceCommands.Load(); got != 0 {
		t.Errorf("%d commands since the snapshot", got)
	}
}

// liveHeap returns the number of live bytes.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Without room for two states, a restore never has much more than one in memory. It runs
// alone, because the heap is the whole process's.
func TestRestore_memory(t *testing.T) { //nolint:paralleltest // it measures the heap
	const tasks, size = 40_000, 500
	var earlier weak.Pointer[Replica]
	snapshot := func() []byte {
		source := newTestReplica(t, func(err error) { t.Error(err) })
		earlier = weak.Make(source)
		replicatest.Fill(source, 1, tasks, size)
		return replicatest.Persisted(t, source)
	}()
	for _, c := range []struct {
		room   int64
		factor float64 // in units of one state
	}{{room: 1 << 30, factor: 2.2}, {room: 1, factor: 1.2}} {
		t.Run(fmt.Sprint("room ", c.room), func(t *testing.T) {
			testwait.Until(t, "the earlier state to be collected", func() bool { runtime.GC(); return earlier.Value() == nil })
			base := liveHeap()
			f := newTestReplica(t, func(err error) { t.Error(err) })
			earlier = weak.Make(f)
			replicatest.Fill(f, 1, tasks, size)
			one := liveHeap() - base
			f.RestoreRoom = c.room
			s := replicatest.NewSnapshot(snapshot)
			peak, reads := int64(0), 0
			s.OnRead = func() {
				if reads++; reads%8 == 0 {
					peak = max(peak, liveHeap()-base)
				}
			}
			if err := f.Restore(replicatest.Wrapped{Snapshot: s}); err != nil {
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

// While a snapshot is restored, readers of the state that it replaces must hurry.
func TestRestore_hurriesHashing(t *testing.T) {
	t.Parallel()
	f := newTestReplica(t, func(err error) { t.Error(err) })
	replicatest.Fill(f, 1, 1, 2)
	hurries := false
	s := replicatest.NewSnapshot(replicatest.Persisted(t, f))
	s.Twice, s.OnRead = true, func() { hurries = f.replacing.Load() }
	if err := f.Restore(s); err != nil {
		t.Fatal(err)
	}
	if !hurries || f.replacing.Load() {
		t.Errorf("hurries while it is restored: %v, after that: %v", hurries, f.replacing.Load())
	}
}

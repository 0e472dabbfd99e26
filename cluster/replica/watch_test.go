package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

var errCallerLeft = errors.New("the caller left")

// watchedReplica is a replica to which the test applies entries.
type watchedReplica struct {
	*Replica
	t     testing.TB
	index uint64
}

func newWatchedReplica(t testing.TB) *watchedReplica {
	t.Helper()
	r := newTestReplica(t, func(err error) { t.Error(err) })
	w := &watchedReplica{Replica: r, t: t}
	w.apply(command.SetLevel{Level: fsm.FeatureLevel()})
	return w
}

func (w *watchedReplica) apply(commands ...command.Command) *fsm.Applied {
	w.index++
	return w.ApplyEntry(w.index, 1, replicatest.Entry(int64(w.index), commands...))
}

// submit submits tasks and returns the id of the first.
func (w *watchedReplica) submit(count int) uint64 {
	tasks := make([]fsm.NewTask, count)
	for i := range tasks {
		tasks[i] = fsm.NewTask{Type: "mail", Params: []byte("1")}
	}
	return w.apply(command.Submit{Tasks: tasks}).Results[0].Submitted[0].Task.ID
}

func (w *watchedReplica) newest() (newest event.Pos) {
	w.Read(func(m *fsm.Machine) { newest = m.NewestEvent() })
	return newest
}

// ensureNobody ensures that no waiters are left.
func (w *watchedReplica) ensureNobody() {
	w.t.Helper()
	x := w.watches
	if x.endCount.Load() != 0 || x.eventCount.Load() != 0 || len(x.ends) != 0 {
		w.t.Errorf("%d wait for ends, %d for events, %d tasks are watched", x.endCount.Load(), x.eventCount.Load(), len(x.ends))
	}
}

// waits starts count waits and returns their results.
func waits(count int, wait func() error) <-chan error {
	ended := make(chan error, count)
	for range count {
		go func() { ended <- wait() }()
	}
	return ended
}

func TestWaitEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedReplica(t)
		ctx := context.Background()
		id := n.submit(3)
		for name, end := range map[string]func(id uint64){
			"cancelled": func(id uint64) { n.apply(command.Cancel{ID: id}) },
			"in the midst of an entry": func(id uint64) {
				n.apply(command.Submit{Tasks: []fsm.NewTask{{Type: "scan"}}}, command.Cancel{ID: id}, command.Retry{ID: id})
			},
			"removed at once": func(id uint64) {
				n.apply(command.SetType{Type: "mail", Set: fsm.TypeRetention, Settings: fsm.TypeSettings{RetentionMS: fsm.KeepNone}})
				n.apply(command.Cancel{ID: id})
			},
		} {
			ended := waits(3, func() error { return n.WaitEnded(ctx, id, time.Hour) })
			synctest.Wait()
			n.apply(command.Patch{ID: id, SetPriority: true, Priority: 1})
			n.apply(command.Cancel{ID: id + 1000})
			synctest.Wait()
			if len(ended) > 0 {
				t.Fatalf("%s: %d waits are over before the task is", name, len(ended))
			}
			end(id)
			synctest.Wait()
			for range 3 {
				if len(ended) == 0 {
					t.Fatalf("%s: somebody waits on", name)
				}
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			n.ensureNobody()
			id++
		}
		// One task does not exist, and one has ended: neither is waited for.
		done := n.apply(command.Submit{Tasks: []fsm.NewTask{{Type: "scan"}}}).Results[0].Submitted[0].Task.ID
		n.apply(command.Cancel{ID: done})
		for _, id := range []uint64{done, 99} {
			begun := time.Now()
			if err := n.WaitEnded(ctx, id, time.Hour); err != nil || time.Since(begun) > 0 {
				t.Errorf("task %d: %v after %s", id, err, time.Since(begun))
			}
		}
	})
}

// A wait ends when its time is over, or when its caller has gone, and leaves nothing
// behind.
func TestWaitEnded_isGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedReplica(t)
		id := n.submit(1)
		begun := time.Now()
		if err := n.WaitEnded(context.Background(), id, time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("%v after %s, want nil after a minute", err, time.Since(begun))
		}
		n.ensureNobody()
		caller, leave := context.WithCancelCause(context.Background())
		left := waits(1, func() error { return n.WaitEnded(caller, id, time.Hour) })
		stays := waits(1, func() error { return n.WaitEnded(context.Background(), id, time.Hour) })
		synctest.Wait()
		leave(errCallerLeft)
		if err := <-left; !errors.Is(err, errCallerLeft) {
			t.Errorf("the caller left: %v", err)
		}
		n.apply(command.Cancel{ID: id})
		if err := <-stays; err != nil {
			t.Errorf("the other one: %v", err)
		}
		n.ensureNobody()
	})
}

func TestWaitEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedReplica(t)
		n.submit(3)
		newest := n.newest()
		if newest.Sub != 2 {
			t.Fatalf("the newest event is %+v", newest)
		}
		for _, after := range []event.Pos{{}, {Index: newest.Index, Sub: 1}} {
			if err := n.WaitEvent(context.Background(), after); err != nil {
				t.Errorf("after %+v: %v", after, err)
			}
		}
		woken := waits(100, func() error { return n.WaitEvent(context.Background(), newest) })
		future := waits(1, func() error { return n.WaitEvent(context.Background(), event.Pos{Index: newest.Index + 2}) })
		synctest.Wait()
		n.apply(command.Tick{})
		synctest.Wait()
		if len(woken) > 0 {
			t.Fatalf("%d woken without an event", len(woken))
		}
		n.submit(1)
		synctest.Wait()
		if len(woken) != 100 || len(future) != 0 {
			t.Fatalf("%d of 100 woken, %d that wait for later events", len(woken), len(future))
		}
		n.submit(1)
		if err := <-future; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		left := waits(1, func() error { return n.WaitEvent(ctx, n.newest()) })
		synctest.Wait()
		cancel(errCallerLeft)
		if err := <-left; !errors.Is(err, errCallerLeft) {
			t.Errorf("the caller left: %v", err)
		}
		n.ensureNobody()
	})
}

// A restored snapshot may contain the end of an awaited task, and a longer trail.
func TestWatch_restore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, other := newWatchedReplica(t), newWatchedReplica(t)
		id := n.submit(2)
		other.submit(2)
		other.apply(command.Cancel{ID: id})
		var captured *fsm.Snapshot
		other.Read(func(m *fsm.Machine) { captured = m.Snapshot() })
		var snapshot bytes.Buffer
		if _, err := captured.WriteTo(&snapshot); err != nil {
			t.Fatal(err)
		}
		captured.Release()

		ended := waits(1, func() error { return n.WaitEnded(context.Background(), id, time.Hour) })
		waiting := waits(1, func() error { return n.WaitEnded(context.Background(), id+1, time.Hour) })
		events := waits(1, func() error { return n.WaitEvent(context.Background(), n.newest()) })
		synctest.Wait()
		if err := n.Restore(io.NopCloser(&snapshot)); err != nil {
			t.Fatal(err)
		}
		n.index = other.index
		synctest.Wait()
		if len(ended) != 1 || len(events) != 1 || len(waiting) != 0 {
			t.Fatalf("after a restore %d ended, %d with events, %d that go on are woken", len(ended), len(events), len(waiting))
		}
		n.apply(command.Cancel{ID: id + 1})
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		n.ensureNobody()
	})
}

func TestWatch_bounds(t *testing.T) {
	t.Parallel()
	n := newWatchedReplica(t)
	id := n.submit(2)
	first, err := n.watchEnd(id)
	for range endWaitersMax - 1 {
		if err == nil {
			_, err = n.watchEnd(id + 1)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := n.WaitEnded(context.Background(), id, time.Hour); !errors.Is(err, nodes.ErrOverloaded) {
		t.Errorf("one more waits for an end: %v", err)
	}
	n.watches.leaveEnd(id, first)
	if _, err := n.watchEnd(id); err != nil {
		t.Errorf("after one has left: %v", err)
	}
	n.apply(command.Cancel{ID: id}, command.Cancel{ID: id + 1})
	for range eventWaitersMax {
		if err := n.watches.enterEvents(); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.WaitEvent(context.Background(), n.newest()); !errors.Is(err, nodes.ErrOverloaded) {
		t.Errorf("one more waits for events: %v", err)
	}
	n.watches.eventCount.Add(-eventWaitersMax)
	n.ensureNobody()
}

// A node that closes tells current and later waiters.
func TestWatch_close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedReplica(t)
		id := n.submit(1)
		waitEnd := func() error { return n.WaitEnded(context.Background(), id, time.Hour) }
		waitEvent := func() error { return n.WaitEvent(context.Background(), n.newest()) }
		ends, events := waits(2, waitEnd), waits(2, waitEvent)
		synctest.Wait()
		n.Close()
		for i, err := range []error{<-ends, <-ends, <-events, <-events, waitEnd(), waitEvent()} {
			if !errors.Is(err, nodes.ErrShuttingDown) {
				t.Errorf("wait %d: %v", i, err)
			}
		}
	})
}

// A waiter that starts while entries arrive is always woken: no entry is missed between the
// check and the wait.
func TestWatch_nobodyIsMissed(t *testing.T) {
	t.Parallel()
	n := newWatchedReplica(t)
	const tasks, followers = 500, 4
	first := n.submit(tasks)
	last := event.Pos{Index: n.index + tasks}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, 2*tasks+followers)
	for i := range uint64(tasks) {
		for range 2 {
			wg.Go(func() {
				if err := n.WaitEnded(ctx, first+i, time.Hour); err != nil {
					errs <- fmt.Errorf("task %d: %w", first+i, err)
				}
			})
		}
	}
	for range followers {
		wg.Go(func() {
			for at := n.newest(); at.Index < last.Index; at = n.newest() {
				if err := n.WaitEvent(ctx, at); err != nil {
					errs <- fmt.Errorf("events after %+v: %w", at, err)
					return
				}
			}
		})
	}
	for i := range uint64(tasks) {
		n.apply(command.Cancel{ID: first + i})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	n.ensureNobody()
}

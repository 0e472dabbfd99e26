package replica

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// Bounds for waits. Each is a request being answered.
const (
	endWaitersMax   = 32_768
	eventWaitersMax = 1_000
)

// WaitEnded waits until the task has ended or no longer exists in this node's state, for at
// most wait. caller should end when the answer is no longer wanted. Errors:
// nodes.ErrOverloaded, nodes.ErrNoLeader while this node has no state;
// nodes.ErrShuttingDown; caller's cause.
func (r *Replica) WaitEnded(caller context.Context, id uint64, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		w, err := r.watchEnd(id)
		if w == nil || err != nil {
			return err
		}
		select {
		case <-w.woken:
			if w.ended {
				return nil
			}
		case <-timer.C:
			r.watches.leaveEnd(id, w)
			return nil
		case <-caller.Done():
			r.watches.leaveEnd(id, w)
			return context.Cause(caller)
		case <-r.watches.closed:
			return nodes.ErrShuttingDown
		}
	}
}

// WaitEvent waits until this node's trail has an event after after, or ctx ends. Errors:
// those of WaitEnded; ctx's cause.
func (r *Replica) WaitEvent(ctx context.Context, after event.Pos) error {
	if err := r.watches.enterEvents(); err != nil {
		return err
	}
	defer r.watches.eventCount.Add(-1)
	for {
		burst, err := r.watchEvents(after)
		if burst == nil || err != nil {
			return err
		}
		select {
		case <-burst:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.watches.closed:
			return nodes.ErrShuttingDown
		}
	}
}

// watches holds the waits for what entries do. A wait checks the state and is added under
// the state's read lock, and entries are reported under its write lock, so no entry comes
// between the two.
type watches struct {
	// The number of waits. Without any, an entry only costs reading these.
	endCount, eventCount atomic.Int64

	closed chan struct{} // closed when the node closes
	close  sync.Once

	mu   sync.Mutex
	ends map[uint64]*endWatch // guarded by mu; by task id
	// burst is closed by the next entry that adds to the trail; guarded by mu, nil without
	// waits.
	burst chan struct{}
}

// endWatch holds the waits for the end of one task.
type endWatch struct {
	woken chan struct{}
	count int  // guarded by watches.mu
	ended bool // set before woken is closed; false: check again
}

func newWatches() *watches {
	return &watches{closed: make(chan struct{}), ends: map[uint64]*endWatch{}}
}

// watchEnd returns what to wait for until the task ends, or nil if it has ended or does not
// exist. The caller must call leaveEnd unless it was woken.
func (r *Replica) watchEnd(id uint64) (*endWatch, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.absent.Load() {
		return nil, ErrRestoring
	}
	if t := r.machine.Get(id); t == nil || t.Status.Ended() {
		return nil, nil
	}
	return r.watches.enterEnd(id)
}

// watchEvents returns a channel that is closed with the next events, or nil if the trail
// has some after after.
func (r *Replica) watchEvents(after event.Pos) (<-chan struct{}, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.absent.Load() {
		return nil, ErrRestoring
	}
	newest := r.machine.NewestEvent()
	if newest.Index > after.Index || newest.Index == after.Index && newest.Sub > after.Sub {
		return nil, nil
	}
	return r.watches.nextBurst(), nil
}

func (w *watches) enterEnd(id uint64) (*endWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.endCount.Load() >= endWaitersMax {
		return nil, &nodes.Overload{Bound: nodes.BoundWaitingReads, Text: fmt.Sprintf("%d requests wait for the end of a task", endWaitersMax)}
	}
	w.endCount.Add(1)
	e := w.ends[id]
	if e == nil {
		e = &endWatch{woken: make(chan struct{})}
		w.ends[id] = e
	}
	e.count++
	return e, nil
}

// leaveEnd abandons a wait, unless it is over.
func (w *watches) leaveEnd(id uint64, e *endWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends[id] != e {
		return
	}
	w.endCount.Add(-1)
	if e.count--; e.count == 0 {
		delete(w.ends, id)
	}
}

// wakeEndLocked ends the waits for the task. The caller holds mu.
func (w *watches) wakeEndLocked(id uint64, e *endWatch, ended bool) {
	w.endCount.Add(int64(-e.count))
	delete(w.ends, id)
	e.ended = ended
	close(e.woken)
}

// enterEvents counts a wait for events. The caller undoes the count.
func (w *watches) enterEvents() error {
	if w.eventCount.Add(1) > eventWaitersMax {
		w.eventCount.Add(-1)
		return &nodes.Overload{Bound: nodes.BoundWaitingReads, Text: fmt.Sprintf("%d requests wait for events", eventWaitersMax)}
	}
	return nil
}

func (w *watches) nextBurst() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.burst == nil {
		w.burst = make(chan struct{})
	}
	return w.burst
}

// wakeBurstLocked ends the waits for events. The caller holds mu.
func (w *watches) wakeBurstLocked() {
	if w.burst != nil {
		close(w.burst)
		w.burst = nil
	}
}

// applied is called for every entry, under the state's lock. Without waits it costs two
// atomic reads; with some, one lookup for each task that ended.
func (w *watches) applied(a *fsm.Applied) {
	ends := len(a.Ended) > 0 && w.endCount.Load() > 0
	events := a.Events && w.eventCount.Load() > 0
	if !ends && !events {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if events {
		w.wakeBurstLocked()
	}
	if !ends {
		return
	}
	for _, id := range a.Ended {
		if e := w.ends[id]; e != nil {
			w.wakeEndLocked(id, e, true)
		}
	}
}

// restored is called, under the state's lock, when another state has replaced the old one:
// all waits check again.
func (w *watches) restored() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakeBurstLocked()
	for id, e := range w.ends {
		w.wakeEndLocked(id, e, false)
	}
}

// end ends all current and future waits, as the node closes.
func (w *watches) end() { w.close.Do(func() { close(w.closed) }) }

package fsm

import (
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// times finds the unfinished tasks for which something is due at a time.
type times struct {
	scheduled  index.Timeline // scheduled tasks, by RunAt
	expiring   index.Timeline // tasks that fail if they still wait then, by failsAt
	finalizing index.Timeline // parents whose finalization is claimed, by its end by U
}

func (x *times) reset() {
	x.scheduled, x.expiring, x.finalizing = index.NewTimeline(), index.NewTimeline(), index.NewTimeline()
}

// enter adds a task that has not ended.
func (x *times) enter(t *record.Task) {
	if t.Status == record.StatusScheduled {
		x.scheduled.Add(t.RunAt, t.ID)
	}
	if at, _ := failsAt(t); at != 0 {
		x.expiring.Add(at, t.ID)
	}
	if record.IsFinalizing(t) {
		x.finalizing.Add(t.Parent().Finalization.OverU(), t.ID)
	}
}

// leave undoes enter.
func (x *times) leave(t *record.Task) {
	if t.Status == record.StatusScheduled {
		x.scheduled.Remove(t.RunAt, t.ID)
	}
	if at, _ := failsAt(t); at != 0 {
		x.expiring.Remove(at, t.ID)
	}
	if record.IsFinalizing(t) {
		x.finalizing.Remove(t.Parent().Finalization.OverU(), t.ID)
	}
}

// The errors of a task that expired before its first claim, of one that waited for another, and of
// one that waited for a signal.
const (
	expiredUnclaimed = "expired before it was claimed"
	expiredAgain     = "expired before it was claimed again"
	noSignal         = "no signal came in time"
)

// failsAt returns when the task fails if it still waits then, and with which error; 0 = never.
func failsAt(t *record.Task) (at int64, failure string) {
	o := t.Opts()
	if mayExpire(t) {
		if at, failure = o.ExpiresAt, expiredUnclaimed; t.Attempts > 0 {
			failure = expiredAgain
		}
	}
	if o.SignalUntil != 0 && (at == 0 || o.SignalUntil < at) {
		at, failure = o.SignalUntil, noSignal
	}
	return at, failure
}

// mayExpire reports whether the task fails at its ExpiresAt: only if it has never been
// started, unless it ExpiresAgain. A released attempt does not count as a start.
func mayExpire(t *record.Task) bool {
	return (t.Attempts == 0 || t.Opts().ExpiresAgain) && (t.Status == record.StatusPending || t.Status == record.StatusScheduled || t.Status == record.StatusBlocked) && t.Opts().ExpiresAt != 0
}

// endedTasks holds the order in which tasks have ended, and when they are removed. Steps are
// removed with their parents, so their memory counts there.
type endedTasks struct {
	completed, failed, cancelled index.Ends     // by CompletedAt
	removing                     index.Timeline // by RemoveAt
	bytes                        int64          // memory of those that are not steps
	leaving                      []uint64       // tasks that the current command ended and that are not kept
}

func (e *endedTasks) reset() {
	e.completed, e.failed, e.cancelled = index.NewEnds(), index.NewEnds(), index.NewEnds()
	e.removing = index.NewTimeline()
	e.bytes, e.leaving = 0, nil
}

// of returns the index of the tasks that ended with that status.
func (e *endedTasks) of(s record.Status) index.Ends {
	switch s {
	case record.StatusCompleted:
		return e.completed
	case record.StatusFailed:
		return e.failed
	}
	return e.cancelled
}

// enter adds an ended task. bytes is its size in memory.
func (e *endedTasks) enter(t *record.Task, bytes int64) {
	ends := e.of(t.Status)
	if t.Step() != nil {
		ends.Others.Add(t.CompletedAt, t.ID)
		return // removed with its parent
	}
	ends.Own.Add(t.CompletedAt, t.ID)
	e.bytes += bytes
	if t.RemoveAt != 0 {
		e.removing.Add(t.RemoveAt, t.ID)
	}
}

// leave undoes enter.
func (e *endedTasks) leave(t *record.Task, bytes int64) {
	ends := e.of(t.Status)
	if t.Step() != nil {
		ends.Others.Remove(t.CompletedAt, t.ID)
		return
	}
	ends.Own.Remove(t.CompletedAt, t.ID)
	e.bytes -= bytes
	if t.RemoveAt != 0 {
		e.removing.Remove(t.RemoveAt, t.ID)
	}
}

// evictable returns the next task to evict: the one that ended first, but failed tasks
// after all others.
func (e *endedTasks) evictable() (id uint64, ok bool) {
	first, ok := e.completed.Own.First()
	if cancelled, some := e.cancelled.Own.First(); some && (!ok || cancelled.Compare(first) < 0) {
		first, ok = cancelled, true
	}
	if !ok {
		first, ok = e.failed.Own.First()
	}
	return first.ID, ok
}

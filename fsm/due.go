package fsm

import (
	"iter"
	"math"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// dueTickMax bounds how many tasks of each kind one tick changes: some
// milliseconds of work. What the last one takes along, the steps of one parent,
// may come on top. When there is more, the next tick is due at once.
const dueTickMax = 1024

// changesMax bounds how many tasks one command changes, steps counted: about, as
// the last thing that is done may reach a parent and all its steps.
const changesMax = 10_000

// expiredUnclaimed is the error of a task that expired before its first claim.
const expiredUnclaimed = "expired before it was claimed"

// mayExpire reports whether the task fails at its ExpiresAt: not if it was
// started once. One that was released was not.
func mayExpire(t *record.Task) bool {
	return t.Attempts == 0 && (t.Status == record.StatusPending || t.Status == record.StatusScheduled || t.Status == record.StatusBlocked) && t.Opts().ExpiresAt != 0
}

// times is what the machine derives of the times of its tasks.
type times struct {
	scheduled index.Timeline // tasks that wait, by RunAt
	expiring  index.Timeline // tasks that were never started, by ExpiresAt
	removing  index.Timeline // ended tasks, by RemoveAt
	// All ended tasks, by CompletedAt. Steps are removed with their parents.
	completed, failed, cancelled index.Ends
	endedBytes                   int64    // what the ended tasks take
	leaving                      []uint64 // tasks that the command being applied ended and that are not kept

	finalizing index.Timeline // parents whose finalization is claimed, by when that is over by U

	forgettingGone index.Timeline // removed tasks, by ForgetU
	goneKeys       *index.Names   // name of an idempotency key to the id of a removed task
}

// enterTimes puts a task that takes so many bytes into the indexes by time
// where its fields place it.
func (m *derived) enterTimes(t *record.Task, bytes int64) {
	if t.Status.Ended() {
		m.enterEnded(t, bytes)
		return
	}
	if t.Status == record.StatusScheduled {
		m.scheduled.Add(t.RunAt, t.ID)
	}
	if mayExpire(t) {
		m.expiring.Add(t.Opts().ExpiresAt, t.ID)
	}
	if record.IsFinalizing(t) {
		m.finalizing.Add(t.Parent().Finalization.OverU(), t.ID)
	}
}

// leaveTimes undoes enterTimes.
func (m *derived) leaveTimes(t *record.Task, bytes int64) {
	if t.Status.Ended() {
		m.leaveEnded(t, bytes)
		return
	}
	if t.Status == record.StatusScheduled {
		m.scheduled.Remove(t.RunAt, t.ID)
	}
	if mayExpire(t) {
		m.expiring.Remove(t.Opts().ExpiresAt, t.ID)
	}
	if record.IsFinalizing(t) {
		m.finalizing.Remove(t.Parent().Finalization.OverU(), t.ID)
	}
}

// resetTimes empties the indexes by time.
func (m *derived) resetTimes() {
	m.scheduled, m.expiring = index.NewTimeline(), index.NewTimeline()
	m.finalizing = index.NewTimeline()
	m.resetEnded()
	m.resetGone()
}

// NextDue returns the earliest calendar time at which a Tick has something to
// do, ok false if there is none. What lives by the lease clock is not in it:
// nothing but memory depends on when a tick finds that.
func (m *Machine) NextDue() (t int64, ok bool) {
	for _, line := range [...]index.Timeline{m.scheduled, m.expiring, m.removing} {
		if next, some := line.First(); some && (!ok || next.At < t) {
			t, ok = next.At, true
		}
	}
	if end, some := m.nextJoinTokenEnd(); some && (!ok || end < t) {
		t, ok = end, true
	}
	return t, ok
}

// tick does what the clocks made due, in a fixed order and a bounded amount of
// each kind. A task that is to be promoted and to expire does both.
func (m *Machine) tick() Result {
	m.promoteDue()
	m.expireDue()
	m.removeDue()
	m.forgetGoneDue()
	m.forgetDue()
	m.clearFinalizations()
	m.expireJoinTokens()
	return Result{}
}

// promoteDue makes scheduled tasks pending whose time has come.
func (m *Machine) promoteDue() {
	for range dueTickMax {
		id, ok := m.scheduled.Due(m.Stamp().T)
		if !ok {
			return
		}
		t := m.edit(id)
		t.Status = record.StatusPending
		m.edited(t)
	}
}

// expireDue fails tasks that were to be started by now. With one that is a step
// others may end: all count.
func (m *Machine) expireDue() {
	for start, n := m.changed, 0; n < dueTickMax && m.changed-start < changesMax; n++ {
		id, ok := m.expiring.Due(m.Stamp().T)
		if !ok {
			return
		}
		t := m.edit(id)
		t.Error = expiredUnclaimed
		m.endUnclaimed(t, record.StatusFailed)
		m.edited(t)
	}
}

// fromNow returns the time by T that is ms from now. There is no later one than
// the last that an int64 holds.
func (m *saved) fromNow(ms int64) int64 {
	now := m.Stamp().T
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}

// leaseExpired is the error of a task that failed because its last lease ended.
const leaseExpired = "lease expired"

// expire ends the claims whose lease, as the leader saw it, is still the same.
func (m *Machine) expire(c command.Expire) Result {
	var result Result
	for _, l := range c.Items {
		t := m.Get(l.TaskID)
		if t == nil || t.Status != record.StatusClaimed || t.Token != l.Token || t.LeaseSeq != l.Seq {
			continue
		}
		t = m.edit(l.TaskID)
		if attemptsLeft(t) {
			m.giveBack(t, record.OutcomeExpired, "", m.backoffDelay(t))
		} else {
			m.giveUp(t, record.OutcomeExpired, "")
		}
		if t.Status == record.StatusFailed {
			t.Error = leaseExpired
		}
		m.edited(t)
		result.Expired++
	}
	return result
}

// Lease returns the lease of the task's claim, ok false if it is not claimed.
func (m *Machine) Lease(taskID uint64) (l command.Lease, ok bool) {
	t := m.Get(taskID)
	if t == nil || t.Status != record.StatusClaimed {
		return command.Lease{}, false
	}
	return leaseOf(t), true
}

// Leases yields the lease of every live claim, in token order.
func (m *Machine) Leases() iter.Seq[command.Lease] {
	return func(yield func(command.Lease) bool) {
		m.claims.Scan(func(_ uint64, ref claimRef) bool {
			return yield(leaseOf(m.Get(ref.task)))
		})
	}
}

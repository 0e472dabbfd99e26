package fsm

import (
	"iter"
	"math"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// dueTickMax bounds how many tasks of each kind one tick changes, which takes some
// milliseconds. The steps of the last task's parent may come on top. If there is more to
// do, the next tick is due at once.
const dueTickMax = 1024

// changesMax bounds how many tasks one command changes, including steps. It may be exceeded
// by the steps of one parent, because the last change may reach all of them.
const changesMax = 10_000

// expiredUnclaimed is the error of a task that expired before its first claim.
const expiredUnclaimed = "expired before it was claimed"

// mayExpire reports whether the task fails at its ExpiresAt: only if it has never been
// started. A released attempt does not count as a start.
func mayExpire(t *record.Task) bool {
	return t.Attempts == 0 && (t.Status == record.StatusPending || t.Status == record.StatusScheduled || t.Status == record.StatusBlocked) && t.Opts().ExpiresAt != 0
}

// times holds the indexes of tasks by time.
type times struct {
	scheduled index.Timeline // scheduled tasks, by RunAt
	expiring  index.Timeline // tasks that were never started, by ExpiresAt
	removing  index.Timeline // ended tasks, by RemoveAt
	// All ended tasks, by CompletedAt. Steps are removed with their parents.
	completed, failed, cancelled index.Ends
	endedBytes                   int64    // memory of the ended tasks
	leaving                      []uint64 // tasks that the current command ended and that are not kept

	finalizing index.Timeline // parents whose finalization is claimed, by its end by U

	forgettingGone index.Timeline // removed tasks, by ForgetU
	goneKeys       *index.Names   // idempotency keys of removed tasks, with their ids
}

// enterTimes adds a task to the indexes by time. bytes is its size in memory.
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

// NextDue returns the earliest calendar time at which a Tick has something to do; ok is
// false if there is none. It ignores whatever ends by the lease clock, because doing that later
// only costs memory.
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

// tick does what is due, in a fixed order and a bounded amount of each kind. A task that is
// due both to be promoted and to expire does both.
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

// expireDue fails tasks that should have been started by now. This may end other steps of
// the same parent, and all of these count.
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

// fromNow returns the time by T that is ms from now, at most the maximum of int64.
func (m *saved) fromNow(ms int64) int64 {
	now := m.Stamp().T
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}

// leaseExpired is the error of a task that failed because its last lease ended.
const leaseExpired = "lease expired"

// expire ends the claims whose lease is still the one that the leader saw.
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

// Lease returns the lease of the task's claim; ok is false if the task is not claimed.
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

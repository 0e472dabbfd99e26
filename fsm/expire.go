package fsm

import (
	"iter"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// leaseExpired is the error of a task that failed because its last lease ended.
const leaseExpired = "lease expired"

// expire ends the claims whose lease, as the leader saw it, is still the same.
func (m *Machine) expire(c command.Expire) Result {
	var result Result
	for _, l := range c.Items {
		t := m.tasks.Get(l.TaskID)
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
	t := m.tasks.Get(taskID)
	if t == nil || t.Status != record.StatusClaimed {
		return command.Lease{}, false
	}
	return leaseOf(t), true
}

// Leases yields the lease of every live claim, in token order.
func (m *Machine) Leases() iter.Seq[command.Lease] {
	return func(yield func(command.Lease) bool) {
		m.claims.Scan(func(_ uint64, ref claimRef) bool {
			return yield(leaseOf(m.tasks.Get(ref.task)))
		})
	}
}

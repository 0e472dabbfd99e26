package fsm

import "iter"

// leaseExpired is the error of a task that failed because its last lease ended.
const leaseExpired = "lease expired"

// expire ends the claims whose lease, as the leader saw it, is still the same.
func (m *Machine) expire(c Expire) Result {
	var result Result
	for _, l := range c.Items {
		t := m.tasks.Get(l.TaskID)
		if t == nil || t.Status != StatusClaimed || t.Token != l.Token || t.LeaseSeq != l.Seq {
			continue
		}
		t = m.edit(l.TaskID)
		if attemptsLeft(t) {
			m.giveBack(t, OutcomeExpired, "", m.backoffDelay(t))
		} else {
			m.giveUp(t, OutcomeExpired, "")
		}
		if t.Status == StatusFailed {
			t.Error = leaseExpired
		}
		m.edited(t)
		result.Expired++
	}
	return result
}

// Lease returns the lease of the task's claim, ok false if it is not claimed.
func (m *Machine) Lease(taskID uint64) (l Lease, ok bool) {
	t := m.tasks.Get(taskID)
	if t == nil || t.Status != StatusClaimed {
		return Lease{}, false
	}
	return leaseOf(t), true
}

// Leases yields the lease of every live claim, in token order.
func (m *Machine) Leases() iter.Seq[Lease] {
	return func(yield func(Lease) bool) {
		m.claims.Scan(func(_ uint64, ref claimRef) bool {
			return yield(leaseOf(m.tasks.Get(ref.task)))
		})
	}
}

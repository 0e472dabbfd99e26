package fsm

import "slices"

// fail ends the attempt.
func (m *Machine) fail(c Fail) Result {
	result, ok := m.held(c.Hold, OutcomeFailed)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Error = c.Error
	m.end(t, OutcomeFailed, c.Error, afterAttempt(t))
	m.edited(t)
	return Result{Task: copyOf(t)}
}

// release gives the task back, as if it had not been claimed.
func (m *Machine) release(c Release) Result {
	result, ok := m.held(c.Hold, OutcomeReleased)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Attempts = max(t.Attempts-1, 0)
	m.end(t, OutcomeReleased, "", StatusPending)
	m.edited(t)
	return Result{Task: copyOf(t)}
}

// extend moves the end of the lease.
func (m *Machine) extend(c Extend) Result {
	// No claim ends by an extend: so none is repeated.
	result, ok := m.held(c.Hold, OutcomeNone)
	if !ok {
		return result
	}
	return Result{Task: copyOf(m.extendLease(c.ID, c.LeaseMS))}
}

// extendLease lets the claim of a claimed task last leaseMS (0: its own
// length) from now, or longer if it does already, and returns the task.
func (m *Machine) extendLease(id uint64, leaseMS int64) *Task {
	t := m.edit(id)
	asked := leaseMS != 0
	if !asked {
		leaseMS = t.ClaimLeaseMS
	}
	if end := m.header.Stamp.U + leaseMS; end > t.LeaseEndU {
		t.LeaseEndU = end
		if asked {
			t.ClaimLeaseMS = leaseMS
		}
	}
	t.LeaseSeq++ // also if the end stays: an expiry on its way is for the old state
	m.edited(t)
	return t
}

// held goes through the contract's order of checks for a call that ends a
// claim with the outcome (OutcomeNone: that does not end it). It returns ok
// true if the task is claimed by h, else the answer.
func (m *Machine) held(h Hold, outcome Outcome) (result Result, ok bool) {
	t := m.tasks.get(h.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}, false
	case repeats(t, h, outcome):
		return Result{Repeated: true, Task: copyOf(t)}, false
	case t.Status.Ended():
		return refused(endedCode(t.Status), t), false
	case t.Status != StatusClaimed && h.Token != 0:
		return refused(CodeStaleClaim, t), false
	case t.Status != StatusClaimed:
		return refused(CodeTaskNotClaimed, t), false
	case t.WorkerID != h.WorkerID:
		return refused(CodeWrongWorker, t), false
	case h.Token != 0 && h.Token != t.Token:
		return refused(CodeStaleClaim, t), false
	}
	return Result{}, true
}

// repeats reports whether the last claim that ended was ended by the same
// call. Without a token that can only be told of a task that has ended: its
// last claim is then the one that ended it.
func repeats(t *Task, h Hold, outcome Outcome) bool {
	if outcome == OutcomeNone {
		return false
	}
	last := lastEnded(t.Log)
	if last == nil || last.Outcome != outcome {
		return false
	}
	if h.Token != 0 {
		return last.Token == h.Token
	}
	return t.Status.Ended() && last.WorkerID == h.WorkerID
}

// lastEnded returns the newest attempt that has ended, nil if none has.
func lastEnded(log []Attempt) *Attempt {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Outcome != OutcomeNone {
			return &log[i]
		}
	}
	return nil
}

// end ends the claim of the claimed task that is being edited, and moves the
// task to where it goes: pending, or an end.
func (m *Machine) end(t *Task, outcome Outcome, failure string, to Status) {
	ref, _ := m.claims.Delete(t.Token)
	if ref.request != 0 {
		m.claimEnded(ref.request)
	}
	t.Log = logEnded(t.Log, m.header.Stamp.T, outcome, failure)
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU = 0, 0, 0
	if to == StatusPending {
		t.WorkerID, t.Token = "", 0
	} else {
		t.CompletedAt = m.header.Stamp.T
	}
	t.Status = to
}

// logEnded returns the attempts log with its last attempt ended.
func logEnded(log []Attempt, at int64, outcome Outcome, failure string) []Attempt {
	log = slices.Clone(log)
	last := &log[len(log)-1]
	last.EndedAt, last.Outcome, last.Error = at, outcome, failure
	return log
}

// afterAttempt returns where a task goes whose attempt has failed or expired.
func afterAttempt(t *Task) Status {
	if attemptsLeft(t) {
		return StatusPending
	}
	return StatusFailed
}

// attemptsLeft reports whether the task may be claimed once more.
func attemptsLeft(t *Task) bool {
	return t.MaxAttempts == 0 || t.Attempts < t.MaxAttempts
}

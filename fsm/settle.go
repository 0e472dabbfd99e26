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
	switch {
	case c.Permanent || !attemptsLeft(t):
		m.giveUp(t, OutcomeFailed, c.Error)
	case c.RetryIn:
		m.giveBack(t, OutcomeFailed, c.Error, c.RetryInMS)
	default:
		m.giveBack(t, OutcomeFailed, c.Error, m.backoffDelay(t))
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// release gives the task back, as if it had not been claimed.
func (m *Machine) release(c Release) Result {
	result, ok := m.held(c.Hold, OutcomeReleased)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Attempts = max(t.Attempts-1, 0)
	m.giveBack(t, OutcomeReleased, "", c.DelayMS)
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// extend moves the end of the lease and notes the progress.
func (m *Machine) extend(c Extend) Result {
	// No claim ends by an extend: so none is repeated.
	result, ok := m.held(c.Hold, OutcomeNone)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	m.lengthen(t, c.LeaseMS)
	if c.Progress != nil {
		t.Progress = c.Progress
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// extendLease lets the claim of a claimed task last leaseMS (0: its own
// length) from now, or longer if it does already, and returns the task.
func (m *Machine) extendLease(id uint64, leaseMS int64) *Task {
	t := m.edit(id)
	m.lengthen(t, leaseMS)
	m.edited(t)
	return t
}

// lengthen is extendLease of the task that is being edited.
func (m *Machine) lengthen(t *Task, leaseMS int64) {
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
}

// held returns ok true if the task is claimed by h, whose call ends the claim with
// the outcome (OutcomeNone: does not end it), else the answer.
func (m *Machine) held(h Hold, outcome Outcome) (result Result, ok bool) {
	if result, ok = m.holdOf(h, outcome); result.Task != nil && !result.Gone {
		result.Task = m.copyOf(result.Task)
	}
	return result, ok
}

// holdOf is held, by the contract's order of checks. It changes nothing, and the
// result has the state's own task.
func (m *Machine) holdOf(h Hold, outcome Outcome) (result Result, ok bool) {
	t := m.tasks.Get(h.ID)
	switch {
	case t == nil:
		return m.heldGone(h, outcome), false
	case repeats(t, h, outcome):
		return Result{Repeated: true, Task: t}, false
	case t.Status.Ended():
		return Result{Code: endedCode(t.Status), Task: t}, false
	case t.Status != StatusClaimed && h.Token != 0:
		return Result{Code: CodeStaleClaim, Task: t}, false
	case t.Status != StatusClaimed:
		return Result{Code: CodeTaskNotClaimed, Task: t}, false
	case t.WorkerID != h.WorkerID:
		return Result{Code: CodeWrongWorker, Task: t}, false
	case h.Token != 0 && h.Token != t.Token:
		return Result{Code: CodeStaleClaim, Task: t}, false
	}
	return Result{}, true
}

// repeats reports whether the last claim that ended was ended by the same
// call. Without a token that can only be told of a task that ended with its
// last claim.
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
	return endedByClaim(t) && last.WorkerID == h.WorkerID
}

// endedByClaim reports whether the task ended with its last claim: it did not
// if it was cancelled, or expired, while it was waiting.
func endedByClaim(t *Task) bool {
	return t.Status.Ended() && (t.WorkerID != "" || t.CancelRequested)
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

// giveBack ends the claim of the claimed task that is being edited; the task
// waits for delayMS until it is pending again.
func (m *Machine) giveBack(t *Task, outcome Outcome, failure string, delayMS int64) {
	switch {
	case t.CancelRequested:
		m.end(t, outcome, failure, StatusCancelled)
	case delayMS > 0:
		t.RunAt = m.fromNow(delayMS)
		m.end(t, outcome, failure, StatusScheduled)
	default:
		m.end(t, outcome, failure, StatusPending)
	}
}

// giveUp ends the claim of the claimed task that is being edited; the task has
// failed, or was cancelled if that was asked.
func (m *Machine) giveUp(t *Task, outcome Outcome, failure string) {
	to := StatusFailed
	if t.CancelRequested {
		to = StatusCancelled
	}
	m.end(t, outcome, failure, to)
}

// end ends the claim of the claimed task that is being edited, and moves the
// task to where it goes: pending, scheduled, or an end.
func (m *Machine) end(t *Task, outcome Outcome, failure string, to Status) {
	claim := claimEventOf(0, t)
	ref, _ := m.claims.Delete(t.Token)
	m.holdings.LetGo(&m.typeNamed(t.Type).held, ref.place)
	if ref.request != 0 {
		m.claimEnded(ref.request)
	}
	t.Log = logEnded(t.Log, m.header.Stamp.T, outcome, failure)
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU = 0, 0, 0
	if to.Ended() {
		m.finish(t, to)
	} else {
		t.WorkerID, t.Token = "", 0
		t.Status = to
		m.requeued++
	}
	m.tellEnd(&claim, t, outcome, failure)
}

// logEnded returns the attempts log with its last attempt ended.
func logEnded(log []Attempt, at int64, outcome Outcome, failure string) []Attempt {
	log = slices.Clone(log)
	last := &log[len(log)-1]
	last.EndedAt, last.Outcome, last.Error = at, outcome, failure
	return log
}

// attemptsLeft reports whether the task may be claimed once more.
func attemptsLeft(t *Task) bool {
	return t.MaxAttempts == 0 || t.Attempts < t.MaxAttempts
}

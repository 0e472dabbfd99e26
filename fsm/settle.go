package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// fail ends the attempt.
func (m *Machine) fail(c command.Fail) Result {
	result, ok := m.held(c.Hold, record.OutcomeFailed)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Error = c.Error
	switch {
	case c.Permanent || !attemptsLeft(t):
		m.giveUp(t, record.OutcomeFailed, c.Error)
	case c.RetryIn:
		m.giveBack(t, record.OutcomeFailed, c.Error, c.RetryInMS)
	default:
		m.giveBack(t, record.OutcomeFailed, c.Error, m.backoffDelay(t))
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// release gives the task back, as if it had not been claimed.
func (m *Machine) release(c command.Release) Result {
	result, ok := m.releasable(c)
	if !ok {
		return m.withCopy(result)
	}
	t := m.edit(c.ID)
	t.Attempts = max(t.Attempts-1, 0)
	m.giveBack(t, record.OutcomeReleased, "", c.DelayMS)
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// releasable is holdOf for a release. It refuses to release a claim that a later answer has
// reported to the worker, or that the worker has extended, since the answer that could not
// be sent.
func (m *saved) releasable(c command.Release) (result Result, ok bool) {
	if result, ok = m.holdOf(c.Hold, record.OutcomeReleased); !ok || c.Answer == 0 {
		return result, ok
	}
	if t := m.Get(c.ID); t.LeaseSeq != c.Answer {
		return Result{Code: CodeStaleClaim, Task: t}, false
	}
	return Result{}, true
}

// extend moves the end of the lease and stores the progress.
func (m *Machine) extend(c command.Extend) Result {
	// An extend ends no claim, so it cannot be a repeat.
	result, ok := m.held(c.Hold, record.OutcomeNone)
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

// extendLease lets the claim last leaseMS from now (0: its own length), but never shortens
// it. It returns the task.
func (m *Machine) extendLease(id uint64, leaseMS int64) *record.Task {
	t := m.edit(id)
	m.lengthen(t, leaseMS)
	m.edited(t)
	return t
}

// lengthen is extendLease for the task that is being edited.
func (m *saved) lengthen(t *record.Task, leaseMS int64) {
	asked := leaseMS != 0
	if !asked {
		leaseMS = t.ClaimLeaseMS
	}
	if end := m.Stamp().U + leaseMS; end > t.LeaseEndU {
		t.LeaseEndU = end
		if asked {
			t.ClaimLeaseMS = leaseMS
		}
	}
	t.LeaseSeq++ // even if the end stays, so that an expiry under way no longer matches
}

// held returns ok true if h has claimed the task, else the answer. outcome says how the call
// ends the claim, OutcomeNone if it does not.
func (m *Machine) held(h command.Hold, outcome record.Outcome) (result Result, ok bool) {
	result, ok = m.holdOf(h, outcome)
	return m.withCopy(result), ok
}

// holdOf does the checks of held, in the documented order. It changes nothing, and the
// result contains the state's own task.
func (m *saved) holdOf(h command.Hold, outcome record.Outcome) (result Result, ok bool) {
	t := m.Get(h.ID)
	switch {
	case t == nil:
		return m.heldGone(h, outcome), false
	case repeats(t, h, outcome):
		return Result{Repeated: true, Task: t}, false
	case t.Status.Ended():
		return Result{Code: endedCode(t.Status), Task: t}, false
	case t.Status != record.StatusClaimed && h.Token != 0:
		return Result{Code: CodeStaleClaim, Task: t}, false
	case t.Status != record.StatusClaimed:
		return Result{Code: CodeTaskNotClaimed, Task: t}, false
	case t.WorkerID != h.WorkerID:
		return Result{Code: CodeWrongWorker, Task: t}, false
	case h.Token != 0 && h.Token != t.Token:
		return Result{Code: CodeStaleClaim, Task: t}, false
	}
	return Result{}, true
}

// repeats reports whether the same call ended the task's last ended claim. Without a token
// this is known only if the task ended with that claim.
func repeats(t *record.Task, h command.Hold, outcome record.Outcome) bool {
	if outcome == record.OutcomeNone {
		return false
	}
	last := record.LastEnded(t.Log)
	if last == nil || last.Outcome != outcome {
		return false
	}
	if h.Token != 0 {
		return last.Token == h.Token
	}
	return record.EndedByClaim(t) && last.WorkerID == h.WorkerID
}

// giveBack ends the claim of the task that is being edited. The task becomes pending after
// delayMS.
func (m *Machine) giveBack(t *record.Task, outcome record.Outcome, failure string, delayMS int64) {
	switch {
	case t.CancelRequested:
		m.end(t, outcome, failure, record.StatusCancelled)
	case delayMS > 0:
		t.RunAt = m.fromNow(delayMS)
		m.end(t, outcome, failure, record.StatusScheduled)
	default:
		m.end(t, outcome, failure, record.StatusPending)
	}
}

// giveUp ends the claim of the task that is being edited. The task fails, or is cancelled
// if that was requested.
func (m *Machine) giveUp(t *record.Task, outcome record.Outcome, failure string) {
	to := record.StatusFailed
	if t.CancelRequested {
		to = record.StatusCancelled
	}
	m.end(t, outcome, failure, to)
}

// end ends the claim of the task that is being edited and moves the task to its next
// status: pending, scheduled, or an end.
func (m *Machine) end(t *record.Task, outcome record.Outcome, failure string, to record.Status) {
	claim := claimEventOf(0, t)
	ref, _ := m.claims.Delete(t.Token)
	ts := m.typeNamed(t.Type)
	m.holdings.LetGo(&ts.held, ref.place)
	if outcome == record.OutcomeCompleted {
		m.time(ts, Ran, m.Stamp().T-t.ClaimedAt)
	}
	if ref.request != 0 {
		m.claimEnded(ref.request)
	}
	t.Log = logEnded(t.Log, m.Stamp().T, outcome, failure)
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
func logEnded(log []record.Attempt, at int64, outcome record.Outcome, failure string) []record.Attempt {
	log = slices.Clone(log)
	last := &log[len(log)-1]
	last.EndedAt, last.Outcome, last.Error = at, outcome, failure
	return log
}

// attemptsLeft reports whether the task may be claimed again.
func attemptsLeft(t *record.Task) bool {
	return t.MaxAttempts == 0 || t.Attempts < t.MaxAttempts
}

// Judge returns the result of applying cmd at now if that would change nothing but index
// and clocks: for a Complete, Fail, Extend, Release or Finalize that would be refused or is
// a repeat, and for a Batch whose ops would all be refused, or the first one if it is
// atomic. Otherwise ok is false.
//
// It only reads. The result has its own memory, except for byte slices, which are never
// changed in place.
func (m *Machine) Judge(cmd command.Command, now record.Stamp) (result Result, ok bool) {
	if batch, ok := cmd.(command.Batch); ok {
		return m.judgeBatch(batch, now)
	}
	result, acts := m.judge(cmd, now)
	switch {
	case acts:
		return Result{}, false
	case result.Gone && m.gone.Get(result.Task.ID).ForgetU <= now.U:
		return Result{Code: CodeTaskNotFound}, true
	}
	if result.Task != nil && !result.Gone {
		shown := *result.Task
		result.Task = &shown
	}
	return result, true
}

// judge returns acts true if the command, applied at now, would change anything, else its
// result, which contains the state's own task.
func (m *Machine) judge(cmd command.Command, now record.Stamp) (result Result, acts bool) {
	switch c := cmd.(type) {
	case command.Complete:
		if result, acts = m.holdOf(c.Hold, record.OutcomeCompleted); result.Repeated {
			acts = m.tellsAgain(result.Task.Then)
			result = m.repeatThen(result)
		}
		return result, acts
	case command.Fail:
		return m.holdOf(c.Hold, record.OutcomeFailed)
	case command.Extend:
		return m.holdOf(c.Hold, record.OutcomeNone)
	case command.Release:
		return m.releasable(c)
	case command.Finalize:
		return m.finalizable(c, max(now.U, m.Stamp().U))
	}
	return Result{}, true
}

// IsJudged reports whether Judge may answer such a command.
func IsJudged(cmd command.Command) bool {
	switch cmd.(type) {
	case command.Complete, command.Fail, command.Extend, command.Release, command.Finalize, command.Batch:
		return true
	}
	return false
}

// judgeBatch is Judge for a batch. A refused op does not affect the ops after it.
func (m *Machine) judgeBatch(c command.Batch, now record.Stamp) (result Result, ok bool) {
	var results []Result
	answered := 0
	for i, op := range c.Ops {
		r, ok := m.Judge(op, now)
		switch {
		case !ok || r.Code == "":
			return Result{}, false
		case c.Atomic:
			refusal, _ := refusalOf(op, r)
			return refusal, true
		case results == nil:
			results = make([]Result, len(c.Ops))
		}
		if r.Task != nil {
			r.Task = shownIn(&answered, r.Task)
		}
		results[i] = r
	}
	return Result{Results: results}, len(results) > 0
}

package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// fail ends the attempt.
func fail(m *Machine, c command.Fail) Result {
	result, ok := held(m, c.Hold, record.OutcomeFailed)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Error = c.Error
	switch {
	case c.Permanent || lastAttempt(m, t):
		giveUp(m, t, record.OutcomeFailed, c.Error)
	case c.RetryIn:
		giveBack(m, t, record.OutcomeFailed, c.Error, c.RetryInMS)
	default:
		giveBack(m, t, record.OutcomeFailed, c.Error, m.backoffDelay(t))
	}
	settled(m, t)
	bury(m, t)
	return Result{Task: m.copyOf(t)}
}

// release gives the task back, as if it had not been claimed.
func release(m *Machine, c command.Release) Result {
	result, ok := releasable(m, c)
	if !ok {
		return m.withCopy(result)
	}
	t := m.edit(c.ID)
	t.Attempts = max(t.Attempts-1, 0)
	giveBack(m, t, record.OutcomeReleased, "", c.DelayMS)
	settled(m, t)
	return Result{Task: m.copyOf(t)}
}

// releasable is holdOf for a release. It refuses to release a claim that a later answer has
// reported to the worker, or that the worker has extended, since the answer that could not
// be sent.
func releasable(m *Machine, c command.Release) (result Result, ok bool) {
	if result, ok = holdOf(m, c.Hold, record.OutcomeReleased); !ok || c.Answer == 0 {
		return result, ok
	}
	if t := m.Get(c.ID); t.LeaseSeq != c.Answer {
		return Result{Code: CodeStaleClaim, Task: t}, false
	}
	return Result{}, true
}

// extend moves the end of the lease and stores the progress.
func extend(m *Machine, c command.Extend) Result {
	// An extend ends no claim, so it cannot be a repeat.
	result, ok := held(m, c.Hold, record.OutcomeNone)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	sooner := c.Exact && shorten(m, t, c.LeaseMS)
	lengthen(m, t, c.LeaseMS)
	if sooner {
		m.begun = append(m.begun, leaseOf(t)) // the timer that is set would fire too late
	}
	if c.Progress != nil {
		o := *t.Opts()
		o.Progress = c.Progress
		t.SetOptions(o)
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// held returns ok true if h has claimed the task, else the answer. outcome says how the call
// ends the claim, OutcomeNone if it does not.
func held(m *Machine, h command.Hold, outcome record.Outcome) (result Result, ok bool) {
	result, ok = holdOf(m, h, outcome)
	return m.withCopy(result), ok
}

// holdOf does the checks of held, in the documented order. It changes nothing, and the
// result contains the state's own task.
func holdOf(m *Machine, h command.Hold, outcome record.Outcome) (result Result, ok bool) {
	t := m.Get(h.ID)
	switch {
	case t == nil:
		return heldGone(m, h, outcome), false
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

// waitsAgain reports whether the task waits for its next claim since the lease of h's claim,
// the last one, ended or its worker failed.
func waitsAgain(t *record.Task, h command.Hold) bool {
	if t == nil || t.Status != record.StatusPending && t.Status != record.StatusScheduled || h.Token == 0 {
		return false
	}
	last := t.LastEnded()
	return last.Token == h.Token && last.WorkerID == h.WorkerID && (last.Outcome == record.OutcomeExpired || last.Outcome == record.OutcomeFailed)
}

// repeats reports whether the same call ended the task's last ended claim. Without a token
// this is known only if the task ended with that claim.
func repeats(t *record.Task, h command.Hold, outcome record.Outcome) bool {
	if outcome == record.OutcomeNone {
		return false
	}
	last := t.LastEnded()
	if last.Outcome != outcome {
		return false
	}
	if h.Token != 0 {
		return last.Token == h.Token
	}
	return record.EndedByClaim(t) && last.WorkerID == h.WorkerID
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
		return judgeBatch(m, batch, now)
	}
	result, acts := judge(m, cmd, now)
	switch {
	case acts:
		return Result{}, false
	case result.Gone && m.gone.table.Get(result.Task.ID).ForgetU <= now.U:
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
func judge(m *Machine, cmd command.Command, now record.Stamp) (result Result, acts bool) {
	switch c := cmd.(type) {
	case command.Complete:
		if c.Late && waitsAgain(m.Get(c.ID), c.Hold) {
			return Result{}, true
		}
		if result, acts = holdOf(m, c.Hold, record.OutcomeCompleted); result.Repeated {
			acts = tellsAgain(m, result.Task.Then)
			result = repeatThen(m, result)
		}
		return result, acts
	case command.Fail:
		return holdOf(m, c.Hold, record.OutcomeFailed)
	case command.Extend:
		return holdOf(m, c.Hold, record.OutcomeNone)
	case command.Release:
		return releasable(m, c)
	case command.Finalize:
		return finalizable(m, c, max(now.U, m.Stamp().U))
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
func judgeBatch(m *Machine, c command.Batch, now record.Stamp) (result Result, ok bool) {
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

package fsm

import (
	"math"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// retry makes a failed, cancelled, claimed or scheduled task pending. A claimed task that
// was asked to stop is cancelled instead.
func (m *Machine) retry(c command.Retry) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return m.retryGone(c)
	case t.Status == record.StatusCompleted:
		return m.refused(CodeTaskCompleted, t)
	case t.Status == record.StatusPending, t.Status == record.StatusBlocked:
		// With any token: the first try may have ended its claim.
		return Result{Repeated: true, Task: m.copyOf(t)}
	case t.Status == record.StatusScheduled:
		t = m.edit(c.ID)
		t.Status = record.StatusPending
		m.edited(t)
		m.tellOf(event.Retried, t, "")
		return Result{Repeated: true, Task: m.copyOf(t)}
	case t.Parent() != nil:
		return m.retryParent(t, c)
	case c.Token != 0 && endedByRetry(t, c.Token):
		// The first try ended the claim with this token.
		return Result{Repeated: true, Task: m.copyOf(t)}
	}
	if refusal, refused := m.cannotRetryStep(t); refused {
		return m.withCopy(refusal)
	}
	switch {
	case c.Token != 0 && c.Token != t.Token:
		return m.refused(CodeStaleClaim, t)
	case t.Status == record.StatusClaimed && t.CancelRequested:
		t = m.edit(c.ID)
		m.giveUp(t, record.OutcomeCancelled, "")
		m.edited(t)
		return Result{Task: m.copyOf(t)}
	}
	return m.retryAnew(t, c)
}

// retryAnew makes a claimed, failed or cancelled task pending.
func (m *Machine) retryAnew(t *record.Task, c command.Retry) Result {
	if !mayRetry(t, c) {
		return m.refused(CodeMaxAttemptsReached, t)
	}
	if refusal, refused := m.keyTaken(t, m.forgettingGoneByKeyName); refused {
		return m.withCopy(refusal)
	}
	t = m.edit(c.ID)
	t.MaxAttempts = raisedMax(t.MaxAttempts, c.AddAttempts)
	if t.Status == record.StatusClaimed {
		m.end(t, record.OutcomeRetried, "", record.StatusPending)
	} else {
		m.revive(t)
		m.tellOf(event.Retried, t, "")
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// keyTaken returns the refusal if the task to retry cannot have its key: another task has
// it, or a removed one that is remembered so that its submit can be repeated. The refusal
// contains the state's own task.
func (m *Machine) keyTaken(t *record.Task, find goneFinder) (refusal Result, refused bool) {
	ofType := t.Opts().KeyOfType
	if holder := m.holder(t.Type, t.Key, ofType); holder != nil {
		if holder.ID == t.ID {
			return Result{}, false
		}
		return Result{Code: CodeKeyTaken, Task: holder}, true
	}
	if id, g := goneHolder(t.Type, t.Key, ofType, find); g != nil {
		return Result{Code: CodeKeyTaken, Task: g.Task(id), Gone: true}, true
	}
	return Result{}, false
}

// mayRetry reports whether the task has attempts left after the retry.
func mayRetry(t *record.Task, c command.Retry) bool {
	most := raisedMax(t.MaxAttempts, c.AddAttempts)
	return most == 0 || t.Attempts < most
}

// endedByRetry reports whether the task's last ended claim had the token and a retry ended
// it: the task is claimed again, or the retry cancelled it because that had been requested.
// A task that was cancelled later may be retried.
func endedByRetry(t *record.Task, token uint64) bool {
	last := record.LastEnded(t.Log)
	if last == nil || last.Token != token {
		return false
	}
	switch last.Outcome {
	case record.OutcomeRetried:
		return t.Status == record.StatusClaimed
	case record.OutcomeCancelled:
		return t.Status == record.StatusClaimed || t.Status == record.StatusCancelled
	}
	return false
}

// retryGone answers a retry of a task that does not exist. It is a repeat if the retry had
// cancelled the task before it was removed; otherwise the task is not found.
func (m *saved) retryGone(c command.Retry) Result {
	g := m.findGone(c.ID)
	if g == nil || c.Token == 0 || g.Token != c.Token || g.Outcome != record.OutcomeCancelled {
		return Result{Code: CodeTaskNotFound}
	}
	return Result{Repeated: true, Gone: true, Task: g.Task(c.ID)}
}

// raisedMax returns a limit of attempts raised by add. No limit stays no limit.
func raisedMax(limit, add int32) int32 {
	if limit == 0 || add <= 0 {
		return limit
	}
	return int32(min(int64(limit)+int64(add), math.MaxInt32))
}

// delete removes an ended task and frees its key. A parent is removed with its steps; a step
// cannot be removed alone.
func (m *Machine) delete(c command.Delete) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Step() != nil:
		refusal := m.refused(CodeTaskNotTerminal, t)
		refusal.Reason = ReasonStep
		return refusal
	case !t.Status.Ended():
		return m.refused(CodeTaskNotTerminal, t)
	}
	m.drop(t)
	m.tellOf(event.Deleted, t, "")
	if t.Parent() != nil {
		m.deleteSteps(t)
	}
	return Result{Task: t} // only snapshots still share it
}

// drop removes an ended task from the state.
func (m *Machine) drop(t *record.Task) {
	m.changed++
	m.exclude(t)
	m.tasks.Remove(t.ID)
	m.ended = append(m.ended, t.ID)
}

package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// cancelParent cancels the steps of the running parent, and the parent with the
// last of them: at once if none is claimed.
func (m *Machine) cancelParent(t *record.Task) Result {
	if t.CancelRequested {
		return Result{Repeated: true, Task: m.copyOf(t)}
	}
	id, ps := t.ID, m.parents[t.ID]
	if ps.counts[record.StatusClaimed] > 0 {
		t = m.edit(id)
		t.CancelRequested = true
		m.edited(t)
		m.tellOf(event.CancelRequested, t, "")
	}
	m.following = true // the parent ends here, and not as its steps would have it
	m.stopSteps(id, ps)
	if ps.open() == 0 {
		m.endParent(id, parentEnd{To: record.StatusCancelled})
	}
	m.followSteps()
	return Result{Task: m.copyOf(m.tasks.Get(id))}
}

// retryParent retries the steps of the parent that failed or were cancelled, all
// of them or none. A parent that had ended runs again.
func (m *Machine) retryParent(t *record.Task, c command.Retry) Result {
	running := t.Status == record.StatusRunning
	switch {
	case running && t.CancelRequested:
		return m.refused(CodeTaskCancelled, t)
	case !running && c.Token != 0 && c.Token != t.Token:
		return m.refused(CodeStaleClaim, t)
	}
	ps := m.parents[c.ID]
	if running && ps.counts[record.StatusFailed]+ps.counts[record.StatusCancelled] == 0 {
		return Result{Repeated: true, Task: m.copyOf(t)}
	}
	if refusal, refused := m.cannotRetrySteps(t, c); refused {
		return refusal
	}
	if !running {
		t = m.edit(c.ID)
		m.unend(t)
		t.Status = record.StatusRunning
		m.edited(t)
		m.tellOf(event.Retried, t, "")
	}
	m.retrySteps(c, ps)
	if ps.open() == 0 {
		m.endWithSteps(c.ID) // it was cancelled when its steps had completed
	}
	return Result{Task: m.copyOf(m.tasks.Get(c.ID))}
}

// cannotRetrySteps returns why the parent cannot be retried: another task has its
// key, or one of the steps no attempts left.
func (m *Machine) cannotRetrySteps(t *record.Task, c command.Retry) (refusal Result, refused bool) {
	if refusal, refused := m.keyTaken(t); refused {
		return refusal, true
	}
	for place := range t.Parent().Plan.Steps {
		s := m.tasks.Get(t.ID + 1 + uint64(place))
		if retriable(s) && !mayRetry(s, c) {
			return m.refused(CodeMaxAttemptsReached, s), true
		}
	}
	return Result{}, false
}

// retriable reports whether a retry of its parent retries the step.
func retriable(s *record.Task) bool {
	return s.Status == record.StatusFailed || s.Status == record.StatusCancelled
}

// retrySteps retries the steps of the parent that failed or were cancelled.
func (m *Machine) retrySteps(c command.Retry, ps *parentState) {
	for place := range ps.waiting {
		id := c.ID + 1 + uint64(place)
		if !retriable(m.tasks.Get(id)) {
			continue
		}
		t := m.edit(id)
		t.MaxAttempts = raisedMax(t.MaxAttempts, c.AddAttempts)
		m.revive(t)
		m.edited(t)
		m.tellOf(event.Retried, t, "")
	}
}

// cannotRetryStep returns why the step, which failed or was cancelled, cannot be
// retried by itself: its parent has ended, or is being cancelled, or it depends on
// one that failed or was cancelled, and would stay blocked.
func (m *Machine) cannotRetryStep(t *record.Task) (refusal Result, refused bool) {
	if t.Step() == nil || !retriable(t) {
		return Result{}, false
	}
	parent := m.tasks.Get(t.Step().ParentID)
	switch {
	case parent.Status.Ended():
		refusal = m.refused(endedCode(parent.Status), parent)
		refusal.Reason = ReasonParentEnded
		return refusal, true
	case parent.CancelRequested:
		return m.refused(CodeTaskCancelled, parent), true
	}
	for _, place := range t.Step().Plan.Steps[t.StepPlace()].DependsOn {
		if on := m.tasks.Get(parent.ID + 1 + uint64(place)); retriable(on) {
			refusal = m.refused(endedCode(on.Status), on)
			refusal.Reason = ReasonDependencyEnded
			return refusal, true
		}
	}
	return Result{}, false
}

// deleteSteps removes the steps of an ended parent that was just deleted.
func (m *Machine) deleteSteps(parent *record.Task) {
	for place := range parent.Parent().Plan.Steps {
		t := m.tasks.Get(parent.ID + 1 + uint64(place))
		m.drop(t)
		m.tellOf(event.Deleted, t, "")
	}
}

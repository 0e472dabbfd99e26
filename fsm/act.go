package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// act applies the action to each listed task that still matches the filter.
func (m *Machine) act(c command.Act) Result {
	var result Result
	for _, id := range c.IDs {
		if t := m.Get(id); t != nil && c.Filter.Matches(t) && m.actOn(id, &c) {
			result.Acted++
		}
	}
	return result
}

// actOn applies the action to one existing task. It reports whether the task changed.
func (m *Machine) actOn(id uint64, c *command.Act) bool {
	var result Result
	switch c.Action {
	case command.ActionRetry:
		// To answer that it is a repeat, retry makes a scheduled task pending.
		waited := m.Get(id).Status == record.StatusScheduled
		result = m.retry(command.Retry{ID: id, AddAttempts: c.AddAttempts})
		result.Repeated = result.Repeated && !waited
	case command.ActionCancel:
		result = m.cancel(command.Cancel{ID: id})
	case command.ActionDelete:
		result = m.delete(command.Delete{ID: id})
	default:
		return false
	}
	return result.Code == "" && !result.Repeated
}

// NothingToDo means that the task already is as the action would leave it. LeftAlone returns it;
// no command is refused with it.
const NothingToDo Code = "nothing_to_do"

// LeftAlone returns why the action would not change the task now: the code with which its own
// command would be refused, or NothingToDo. It returns "" if the action would change the task. It
// changes nothing itself.
func (m *Machine) LeftAlone(t *record.Task, action command.Action, addAttempts int32) Code {
	switch action {
	case command.ActionRetry:
		return m.notRetried(t, command.Retry{ID: t.ID, AddAttempts: addAttempts})
	case command.ActionCancel:
		switch {
		case t.Status == record.StatusCancelled, t.CancelRequested && !t.Status.Ended():
			return NothingToDo
		case t.Status.Ended():
			return endedCode(t.Status)
		}
	case command.ActionDelete:
		if t.Step() != nil || !t.Status.Ended() {
			return CodeTaskNotTerminal
		}
	}
	return ""
}

// notRetried is LeftAlone for a retry without a token.
func (m *Machine) notRetried(t *record.Task, c command.Retry) Code {
	switch {
	case t.Status == record.StatusCompleted:
		return CodeTaskCompleted
	case t.Status == record.StatusPending, t.Status == record.StatusBlocked:
		return NothingToDo
	case t.Status == record.StatusScheduled:
		return ""
	case t.Parent() != nil:
		return m.parentNotRetried(t, c)
	}
	if refusal, refused := m.cannotRetryStep(t); refused {
		return refusal.Code
	}
	switch {
	case t.Status == record.StatusClaimed && t.CancelRequested:
		return ""
	case !mayRetry(t, c):
		return CodeMaxAttemptsReached
	}
	refusal, _ := m.keyTaken(t, m.goneByKeyName)
	return refusal.Code
}

// parentNotRetried is notRetried for a task with steps.
func (m *Machine) parentNotRetried(t *record.Task, c command.Retry) Code {
	if t.Status == record.StatusRunning {
		counts := &m.parents[t.ID].counts
		switch {
		case t.CancelRequested:
			return CodeTaskCancelled
		case counts[record.StatusFailed]+counts[record.StatusCancelled] == 0:
			return NothingToDo
		}
	}
	refusal, _ := m.cannotRetrySteps(t, c, m.goneByKeyName)
	return refusal.Code
}

// cancel ends a task that is not claimed. For a claimed task it only records the request: the
// worker learns of it at its next extend, its complete still counts, and any other end of the
// claim cancels the task. A running parent is cancelled with its steps.
func (m *Machine) cancel(c command.Cancel) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		result := m.goneResult(c.ID)
		if result.Code == CodeTaskCancelled {
			result.Code, result.Repeated = "", true
		}
		return result
	case t.Status == record.StatusCancelled, t.CancelRequested && t.Status == record.StatusClaimed:
		return Result{Repeated: true, Task: m.copyOf(t)}
	case t.Status.Ended():
		return m.refused(endedCode(t.Status), t)
	}
	if t.Status == record.StatusRunning {
		return m.cancelParent(t)
	}
	return Result{Task: m.copyOf(m.stop(c.ID))}
}

// stop cancels a task that is not claimed, or records the request on a claimed one. It returns the
// task.
func (m *Machine) stop(id uint64) *record.Task {
	t := m.edit(id)
	if t.Status == record.StatusClaimed {
		t.CancelRequested = true
		m.tellClaim(event.CancelRequested, t)
	} else {
		m.endUnclaimed(t, record.StatusCancelled)
	}
	m.edited(t)
	return t
}

// patch changes fields of a task that is neither claimed nor ended.
func (m *Machine) patch(c command.Patch) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status == record.StatusClaimed:
		return m.refused(CodeTaskAlreadyClaimed, t)
	case t.Status.Ended():
		return m.refused(endedCode(t.Status), t)
	case t.Status == record.StatusRunning && c.SetRunAt:
		refusal := m.refused(CodeTaskNotClaimable, t)
		refusal.Reason = Reason(t.Status.String())
		return refusal
	}
	t = m.edit(c.ID)
	if c.SetPriority {
		t.Priority = c.Priority
	}
	if c.SetLabels {
		o := *t.Opts()
		o.Labels = c.Labels
		t.SetOptions(o)
	}
	switch {
	case !c.SetRunAt:
	case t.Status == record.StatusBlocked:
		t.RunAt = c.RunAt // for when it is unblocked
	default:
		m.setRunAt(t, c.RunAt)
	}
	m.edited(t)
	if c.SetRunAt && t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
	return Result{Task: m.copyOf(t)}
}

// setRunAt sets when the unclaimed task that is being edited may run: it becomes scheduled, or
// pending if the time is not in the future.
func (m *saved) setRunAt(t *record.Task, at int64) {
	t.RunAt, t.Status = at, record.StatusPending
	if at > m.Stamp().T {
		t.Status = record.StatusScheduled
	}
}

package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// act does the action with each task that still matches.
func (m *Machine) act(c command.Act) Result {
	var result Result
	for _, id := range c.IDs {
		if t := m.tasks.Get(id); t != nil && c.Filter.Matches(t) && m.actOn(id, &c) {
			result.Acted++
		}
	}
	return result
}

// actOn does the action with one task, which is there. It reports whether that
// changed the task.
func (m *Machine) actOn(id uint64, c *command.Act) bool {
	var result Result
	switch c.Action {
	case command.ActionRetry:
		// To answer that it is a repeat, retry makes a scheduled task pending.
		waited := m.tasks.Get(id).Status == record.StatusScheduled
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

// NothingToDo is what LeftAlone says of a task that is as the action would make it. No
// command is refused with it.
const NothingToDo Code = "nothing_to_do"

// LeftAlone returns why the action, done now, would leave the task as it is: with which code
// its own command would be refused, or NothingToDo; "" if it would change the task.
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

// notRetried is LeftAlone of a retry without a token.
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
	refusal, _ := m.keyTaken(t)
	return refusal.Code
}

// parentNotRetried is notRetried of a task with steps.
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
	refusal, _ := m.cannotRetrySteps(t, c)
	return refusal.Code
}

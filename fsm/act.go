package fsm

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Act does Action with those of the tasks that still match Filter when it is
// applied, in the order of IDs, each as the command of its own would. What that
// refuses is left alone. Result.Acted is how many it was done with.
type Act struct {
	Action      Action
	IDs         []uint64 // 1 to 1,000; ascending
	Filter      record.Filter
	AddAttempts int32 // of ActionRetry, as in Retry
}

func (Act) kind() kind                           { return kindAct }
func (c Act) needs() uint32                      { return c.Filter.Needs() }
func (c Act) about() About                       { return About{Changes: len(c.IDs)} }
func (c Act) applyTo(m *Machine) (Result, error) { return m.act(c), nil }

// Action is what an Act does with each task.
type Action uint8

// The actions. The numbers are in the log and never change.
const (
	ActionRetry  Action = 1
	ActionCancel Action = 2
	ActionDelete Action = 3
)

// act does the action with each task that still matches.
func (m *Machine) act(c Act) Result {
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
func (m *Machine) actOn(id uint64, c *Act) bool {
	var result Result
	switch c.Action {
	case ActionRetry:
		// To answer that it is a repeat, retry makes a scheduled task pending.
		waited := m.tasks.Get(id).Status == record.StatusScheduled
		result = m.retry(Retry{ID: id, AddAttempts: c.AddAttempts})
		result.Repeated = result.Repeated && !waited
	case ActionCancel:
		result = m.cancel(Cancel{ID: id})
	case ActionDelete:
		result = m.delete(Delete{ID: id})
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
func (m *Machine) LeftAlone(t *record.Task, action Action, addAttempts int32) Code {
	switch action {
	case ActionRetry:
		return m.notRetried(t, Retry{ID: t.ID, AddAttempts: addAttempts})
	case ActionCancel:
		switch {
		case t.Status == record.StatusCancelled, t.CancelRequested && !t.Status.Ended():
			return NothingToDo
		case t.Status.Ended():
			return endedCode(t.Status)
		}
	case ActionDelete:
		if t.Step() != nil || !t.Status.Ended() {
			return CodeTaskNotTerminal
		}
	}
	return ""
}

// notRetried is LeftAlone of a retry without a token.
func (m *Machine) notRetried(t *record.Task, c Retry) Code {
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
func (m *Machine) parentNotRetried(t *record.Task, c Retry) Code {
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

func (c Act) appendBody(b []byte) []byte {
	b = wire.PutUint(b, 1, uint64(c.Action))
	for _, id := range c.IDs {
		b = wire.PutIDElement(b, 2, id)
	}
	mark := len(b)
	b, start := wire.BeginMessage(b, 3)
	b = wire.EndOptional(record.AppendFilter(b, &c.Filter), mark, start)
	return wire.PutInt(b, 4, int64(c.AddAttempts))
}

func (Act) decode(r fieldReader) (Command, error) {
	var c Act
	for r.Next() {
		switch r.Num {
		case 1:
			c.Action = Action(r.Enum(uint64(ActionDelete)))
		case 2:
			c.IDs = append(c.IDs, r.IDElement())
		case 3:
			in := record.ReaderOf(r.Single())
			c.Filter = record.DecodeFilter(&in)
			r.Within(in.Err)
		case 4:
			c.AddAttempts = r.Int32()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

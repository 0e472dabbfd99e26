package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// cancel ends a task that is not claimed. Of a claimed one it notes that this
// was asked: its worker learns it at the next extend, its complete still counts,
// and whatever else ends the claim ends the task as cancelled. A running parent
// is cancelled with its steps.
func (m *Machine) cancel(c command.Cancel) Result {
	t := m.tasks.Get(c.ID)
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

// stop cancels the task if it is not claimed, else asks for it, and returns it.
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

package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// patch changes fields of a task that is not claimed and has not ended.
func (m *Machine) patch(c command.Patch) Result {
	t := m.tasks.Get(c.ID)
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

// setRunAt lets the task that is being edited, and that is not claimed, wait
// until then: it is scheduled, or pending if that is not in the future.
func (m *saved) setRunAt(t *record.Task, at int64) {
	t.RunAt, t.Status = at, record.StatusPending
	if at > m.header.Stamp.T {
		t.Status = record.StatusScheduled
	}
}

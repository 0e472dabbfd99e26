package fsm

// patch changes fields of a task that is not claimed and has not ended.
func (m *Machine) patch(c Patch) Result {
	t := m.tasks.Get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status == StatusClaimed:
		return m.refused(CodeTaskAlreadyClaimed, t)
	case t.Status.Ended():
		return m.refused(endedCode(t.Status), t)
	case t.Status == StatusRunning && c.SetRunAt:
		refusal := m.refused(CodeTaskNotClaimable, t)
		refusal.Reason = Reason(t.Status.String())
		return refusal
	}
	t = m.edit(c.ID)
	if c.SetPriority {
		t.Priority = c.Priority
	}
	if c.SetLabels {
		o := *t.options()
		o.Labels = c.Labels
		t.setOptions(o)
	}
	switch {
	case !c.SetRunAt:
	case t.Status == StatusBlocked:
		t.RunAt = c.RunAt // for when it is unblocked
	default:
		m.setRunAt(t, c.RunAt)
	}
	m.edited(t)
	if c.SetRunAt && t.Status == StatusScheduled {
		m.tellWait(t)
	}
	return Result{Task: m.copyOf(t)}
}

// setRunAt lets the task that is being edited, and that is not claimed, wait
// until then: it is scheduled, or pending if that is not in the future.
func (m *Machine) setRunAt(t *Task, at int64) {
	t.RunAt, t.Status = at, StatusPending
	if at > m.header.Stamp.T {
		t.Status = StatusScheduled
	}
}

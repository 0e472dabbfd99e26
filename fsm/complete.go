package fsm

// complete ends the task as completed.
func (m *Machine) complete(c Complete) Result {
	result, ok := m.held(c.Hold, OutcomeCompleted)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Result, t.ResultPayload = c.Result, c.ResultPayload
	m.end(t, OutcomeCompleted, "", StatusCompleted)
	m.edited(t)
	return Result{Task: copyOf(t)}
}

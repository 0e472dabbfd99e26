package fsm

// act does the action with each task that still matches.
func (m *Machine) act(c Act) Result {
	var result Result
	for _, id := range c.IDs {
		if t := m.tasks.Get(id); t != nil && c.Filter.matches(t) && m.actOn(id, &c) {
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
		waited := m.tasks.Get(id).Status == StatusScheduled
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

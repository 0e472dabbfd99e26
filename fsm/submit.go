package fsm

import "bytes"

// submit adds the tasks in order, so that a key given twice goes to the first.
func (m *Machine) submit(c Submit) Result {
	submitted := make([]Submitted, len(c.Tasks))
	copies := make([]Task, len(c.Tasks))
	for i := range c.Tasks {
		n := &c.Tasks[i]
		t := m.ByKey(n.Key)
		if t == nil {
			t = m.addTask(n)
			submitted[i].Created = true
		} else {
			submitted[i].SameRequest = sameRequest(t, n)
		}
		copies[i] = *t
		submitted[i].Task = &copies[i]
	}
	return Result{Submitted: submitted}
}

// addTask adds a pending task and returns it.
func (m *Machine) addTask(n *NewTask) *Task {
	now := m.header.Stamp.T
	t := &Task{
		ID:          m.header.NextID,
		Type:        n.Type,
		Params:      n.Params,
		Payload:     n.Payload,
		Priority:    n.Priority,
		MaxAttempts: n.MaxAttempts,
		Key:         n.Key,
		LeaseMS:     n.LeaseMS,
		Status:      StatusPending,
		CreatedAt:   now,
		UpdatedAt:   now,
	}
	if n.MaxAttempts < 0 {
		t.MaxAttempts = defaultMaxAttempts
	}
	m.header.NextID++
	m.tasks.put(t.ID, t)
	m.include(t)
	return t
}

// sameRequest reports whether the task was submitted with the type and the
// parameters of n. Only the bytes count: equal JSON written otherwise differs.
func sameRequest(t *Task, n *NewTask) bool {
	return t.Type == n.Type && bytes.Equal(t.Params, n.Params) && bytes.Equal(t.Payload, n.Payload)
}

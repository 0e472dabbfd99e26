package model

func (m *Model) submit(tasks []NewTask) Answer {
	a := Answer{Submitted: m.submitAll(tasks)}
	if len(tasks) == 1 && a.Submitted[0].Refused {
		a.Code = "invalid_task"
	}
	return a
}

func (m *Model) submitAll(tasks []NewTask) []submittedTask {
	all := make([]submittedTask, len(tasks))
	for i := range tasks {
		if all[i] = m.refused(&tasks[i], nil); !all[i].Refused {
			all[i] = m.submitBy(&tasks[i], "")
		}
	}
	return all
}

// refused says whether the task is refused. The one that leaves is about to end.
func (m *Model) refused(n *NewTask, leaves *Task) submittedTask {
	r := submittedTask{Task: &Task{}, Step: -1}
	if n.Parent == nil {
		r.Refused = m.tooLate(n)
	} else {
		for i := len(n.Parent.Steps) - 1; i >= 0; i-- {
			if m.tooLate(&n.Parent.Steps[i].Task) {
				r.Refused, r.Step = true, i
			}
		}
	}
	t := m.holder(n.Kind, n.Key, n.OfKind)
	if t != nil && leaves != nil && t.ID == leaves.ID && t.Options.Active {
		return r
	}
	if t != nil || m.removedByKey(n.Kind, n.Key, n.OfKind) != nil {
		return submittedTask{}
	}
	return r
}

// tooLate says whether the task's delay outlasts it.
func (m *Model) tooLate(n *NewTask) bool {
	return m.Level >= ActsLevel && n.DelayMS > 0 && n.ExpiresAt != 0 && m.T+n.DelayMS >= n.ExpiresAt
}

// Taken is what nobody else can have as long as the task has its key, "" if it has
// none: the key, or the type's key.
func (t *Task) Taken() string { return takenBy(t.Kind, t.Key, t.Options.OfKind) }

func takenBy(kind, key string, ofKind bool) string {
	if ofKind {
		return kind + "/" + key
	}
	return key
}

// holder returns the task that stands in the way of another's having the key, nil if
// none does: any that has it, if both are after it among all tasks, else one of the
// same type.
func (m *Model) holder(kind, key string, ofKind bool) *Task {
	if key == "" {
		return nil
	}
	if t := m.Find(m.Keys[key]); t != nil && (!ofKind || t.Kind == kind) {
		return t
	}
	return m.Find(m.Keys[takenBy(kind, key, true)])
}

// submitBy submits a task; the trail tells by what, if it says so.
func (m *Model) submitBy(n *NewTask, by string) submittedTask {
	if t := m.holder(n.Kind, n.Key, n.OfKind); t != nil {
		return submittedTask{Task: t, Same: t.Kind == n.Kind && t.Body == n.Body && t.Opaque == n.Opaque}
	}
	if r := m.removedByKey(n.Kind, n.Key, n.OfKind); r != nil {
		was := r.was
		return submittedTask{Task: r.seen(), Gone: true, Same: was.Kind == n.Kind && was.Body == n.Body && was.Opaque == n.Opaque}
	}
	t := m.born(n)
	t.Plan = n.Parent
	if t.IsParent() {
		t.Status = Running
	}
	m.enter(t, by)
	if t.IsParent() {
		m.submitSteps(t, by)
	}
	return submittedTask{Task: t, Created: true}
}

// born returns the task as it is at first, if it is no parent.
func (m *Model) born(n *NewTask) *Task {
	t := &Task{
		Kind: n.Kind, Body: n.Body, Opaque: n.Opaque, Priority: n.Priority, Max: n.Max,
		Key: n.Key, LeaseMS: n.LeaseMS, Options: n.Options, Status: Pending, CreatedAt: m.T, UpdatedAt: m.T,
	}
	if n.Max == -1 {
		t.Max = attemptsByDefault
		if s := m.inForce(n.Kind); s.Limited {
			t.Max = s.Max
		}
	}
	switch {
	case n.DelayMS != 0:
		m.waitUntil(t, m.T+n.DelayMS)
	case n.RunAt != 0:
		m.waitUntil(t, n.RunAt)
	}
	return t
}

// enter gives the new task its id.
func (m *Model) enter(t *Task, by string) {
	t.ID = uint64(len(m.Tasks) + 1)
	m.Tasks = append(m.Tasks, t)
	if t.Key != "" {
		m.Keys[t.Taken()] = t.ID
	}
	m.tell("submitted", t, by)
	if t.Status == Scheduled {
		m.tellWait(t)
	}
}

// waitUntil lets a task that is not claimed wait until then.
func (m *Model) waitUntil(t *Task, at int64) {
	t.Status, t.RunAt = Pending, nil
	if at != 0 {
		t.RunAt = exactly(at)
	}
	if at > m.T {
		t.Status = Scheduled
	}
}

func (m *Model) patch(c *Command) Answer {
	t := m.Find(c.ID)
	switch {
	case t == nil:
		return Answer{Code: "task_not_found"}
	case t.Status == Claimed:
		return Answer{Code: "task_already_claimed", Task: t}
	case Ended(t.Status):
		return Answer{Code: "task_" + t.Status, Task: t}
	case t.IsParent() && c.Set.RunAt != nil:
		return Answer{Code: "task_not_claimable", Why: Running, Task: t}
	}
	t = m.change(t)
	if c.Set.Priority != nil {
		t.Priority = *c.Set.Priority
	}
	if c.Set.Labels != nil {
		t.Options.Labels = *c.Set.Labels
	}
	switch {
	case c.Set.RunAt == nil:
	case t.Status == Blocked: // for when it is no more
		m.waitUntil(t, *c.Set.RunAt)
		t.Status = Blocked
	default:
		m.waitUntil(t, *c.Set.RunAt)
		if t.Status == Scheduled {
			m.tellWait(t)
		}
	}
	return Answer{Task: t}
}

func (m *Model) delete(id uint64) Answer {
	t := m.Find(id)
	switch {
	case t == nil:
		return Answer{Code: "task_not_found"}
	case t.Of != 0:
		return Answer{Code: "task_not_terminal", Why: "step", Task: t}
	case !Ended(t.Status):
		return Answer{Code: "task_not_terminal", Task: t}
	}
	m.drop(t)
	m.tell("deleted", t, "")
	for _, s := range m.StepsOf(t) {
		m.drop(s)
		m.tell("deleted", s, "")
	}
	return Answer{Task: t}
}

// drop takes a task out, and frees its key.
func (m *Model) drop(t *Task) {
	m.Tasks[t.ID-1] = nil
	if m.Keys[t.Taken()] == t.ID {
		delete(m.Keys, t.Taken())
	}
}

package sim

func (m *model) submitAll(tasks []newTask) []submittedTask {
	all := make([]submittedTask, len(tasks))
	for i := range tasks {
		all[i] = m.submitBy(&tasks[i], "")
	}
	return all
}

// taken is what nobody else can have as long as the task has its key, "" if it has
// none: the key, or the type's key.
func (t *task) taken() string { return takenBy(t.kind, t.key, t.options.ofKind) }

func takenBy(kind, key string, ofKind bool) string {
	if ofKind {
		return kind + "/" + key
	}
	return key
}

// holder returns the task that stands in the way of another's having the key, nil if
// none does: any that has it, if both are after it among all tasks, else one of the
// same type.
func (m *model) holder(kind, key string, ofKind bool) *task {
	if key == "" {
		return nil
	}
	if t := m.find(m.keys[key]); t != nil && (!ofKind || t.kind == kind) {
		return t
	}
	return m.find(m.keys[takenBy(kind, key, true)])
}

// submitBy submits a task; the trail tells by what, if it says so.
func (m *model) submitBy(n *newTask, by string) submittedTask {
	if t := m.holder(n.kind, n.key, n.ofKind); t != nil {
		return submittedTask{task: t, same: t.kind == n.kind && t.body == n.body && t.opaque == n.opaque}
	}
	if r := m.removedByKey(n.kind, n.key, n.ofKind); r != nil {
		was := r.was
		return submittedTask{task: r.seen(), gone: true, same: was.kind == n.kind && was.body == n.body && was.opaque == n.opaque}
	}
	t := m.born(n)
	t.plan = n.parent
	if t.isParent() {
		t.status = running
	}
	m.enter(t, by)
	if t.isParent() {
		m.submitSteps(t, by)
	}
	return submittedTask{task: t, created: true}
}

// born returns the task as it is at first, if it is no parent.
func (m *model) born(n *newTask) *task {
	t := &task{
		kind: n.kind, body: n.body, opaque: n.opaque, priority: n.priority, max: n.max,
		key: n.key, leaseMS: n.leaseMS, options: n.options, status: pending, createdAt: m.t, updatedAt: m.t,
	}
	if n.max == -1 {
		t.max = attemptsByDefault
		if s := m.inForce(n.kind); s.limited {
			t.max = s.max
		}
	}
	switch {
	case n.delayMS != 0:
		m.waitUntil(t, m.t+n.delayMS)
	case n.runAt != 0:
		m.waitUntil(t, n.runAt)
	}
	return t
}

// enter gives the new task its id.
func (m *model) enter(t *task, by string) {
	t.id = uint64(len(m.tasks) + 1)
	m.tasks = append(m.tasks, t)
	if t.key != "" {
		m.keys[t.taken()] = t.id
	}
	m.tell("submitted", t, by)
	if t.status == scheduled {
		m.tellWait(t)
	}
}

// waitUntil lets a task that is not claimed wait until then.
func (m *model) waitUntil(t *task, at int64) {
	t.status, t.runAt = pending, nil
	if at != 0 {
		t.runAt = exactly(at)
	}
	if at > m.t {
		t.status = scheduled
	}
}

func (m *model) patch(c *command) answer {
	t := m.find(c.id)
	switch {
	case t == nil:
		return answer{code: "task_not_found"}
	case t.status == claimed:
		return answer{code: "task_already_claimed", task: t}
	case ended(t.status):
		return answer{code: "task_" + t.status, task: t}
	case t.isParent() && c.set.runAt != nil:
		return answer{code: "task_not_claimable", why: running, task: t}
	}
	t = m.change(t)
	if c.set.priority != nil {
		t.priority = *c.set.priority
	}
	if c.set.labels != nil {
		t.options.labels = *c.set.labels
	}
	switch {
	case c.set.runAt == nil:
	case t.status == blocked: // for when it is no more
		m.waitUntil(t, *c.set.runAt)
		t.status = blocked
	default:
		m.waitUntil(t, *c.set.runAt)
		if t.status == scheduled {
			m.tellWait(t)
		}
	}
	return answer{task: t}
}

func (m *model) delete(id uint64) answer {
	t := m.find(id)
	switch {
	case t == nil:
		return answer{code: "task_not_found"}
	case t.of != 0:
		return answer{code: "task_not_terminal", why: "step", task: t}
	case !ended(t.status):
		return answer{code: "task_not_terminal", task: t}
	}
	m.drop(t)
	m.tell("deleted", t, "")
	for _, s := range m.stepsOf(t) {
		m.drop(s)
		m.tell("deleted", s, "")
	}
	return answer{task: t}
}

// drop takes a task out, and frees its key.
func (m *model) drop(t *task) {
	m.tasks[t.id-1] = nil
	if m.keys[t.taken()] == t.id {
		delete(m.keys, t.taken())
	}
}

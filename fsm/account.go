package fsm

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
)

// bytesOfGaps estimates the memory of pages where there is no task: each task is
// charged with its own place in one, and one that is left alone holds a whole page.
// It goes by which ids there are, so it is the same on all nodes.
func bytesOfGaps(tasks *table.Table[record.Task]) int64 {
	return int64(tasks.Gaps()) * record.PlaceBytes
}

// Bytes estimates the memory that the state holds.
func (m *Machine) Bytes() int64 { return m.bytes + m.trail.Bytes() + bytesOfGaps(&m.tasks) }

// addRemembered adds to the estimates the bytes of a claim request or of what is
// remembered of a removed task.
func (m *derived) addRemembered(bytes int64) {
	m.bytes += bytes
	m.rememberedBytes += bytes
}

// edit returns the task for writing, out of every index that its fields place
// it in. It must be there. Each edit is followed by one call of edited, after
// the last change; in between no other task is looked for or changed.
func (m *Machine) edit(id uint64) *record.Task {
	t := m.tasks.Edit(id)
	m.change(t)
	return t
}

// change is edit of a task that the table has returned for writing.
func (m *Machine) change(t *record.Task) {
	m.changed++
	m.leave(t)
	t.UpdatedAt = m.header.Stamp.T
}

// edited ends what edit began. If the task is a step that has ended, what follows
// of it for others of its parent is done, too: the task stays as it is.
func (m *Machine) edited(t *record.Task) {
	m.enter(t)
	m.tasks.Rest(t.ID)
	if len(m.stepsEnded) > 0 && !m.following {
		m.followSteps()
	}
}

// enter puts a task where its fields say it belongs: into the counts, and the
// index of its status. Keys and live claims are looked after by those who give
// them.
func (m *Machine) enter(t *record.Task) {
	ts := m.typeNamed(t.Type)
	ts.counts[t.Status]++
	m.counts[t.Status]++
	bytes := record.HeldBytes(t)
	m.bytes += bytes
	m.enterTimes(t, bytes)
	if t.Options != nil {
		m.enterSteps(t, t.Options, bytes)
	}
	switch group := record.GroupOf(t); {
	case group != "":
		m.enterGroup(ts, t)
	case t.Status == record.StatusPending:
		ts.add(t)
	}
	m.arrange(ts, t)
}

// leave undoes enter.
func (m *Machine) leave(t *record.Task) {
	ts := m.typeNamed(t.Type)
	m.recent = ts
	ts.counts[t.Status]--
	m.counts[t.Status]--
	bytes := record.HeldBytes(t)
	m.bytes -= bytes
	m.leaveTimes(t, bytes)
	if t.Options != nil {
		m.leaveSteps(t, t.Options, bytes)
	}
	switch group := record.GroupOf(t); {
	case group != "":
		m.leaveGroup(ts, t)
	case t.Status == record.StatusPending:
		ts.remove(t)
	}
}

// arrange lets the rest of the task's group and type follow the change.
// It ends every change of a task: after leave alone, claims do not see the
// state as it is.
func (m *Machine) arrange(ts *typeState, t *record.Task) {
	if t.Options != nil && t.Options.Group != "" {
		m.follow(ts, t.Options.Group)
	}
	m.place(ts)
}

// typeNamed returns what is kept of the type, nil if nothing is.
func (m *derived) typeNamed(name string) *typeState {
	if ts := m.recent; ts != nil && ts.name == name {
		return ts
	}
	return m.types[name]
}

// typeOf returns what is kept of the type; it begins it.
func (m *Machine) typeOf(name string) *typeState {
	ts := m.typeNamed(name)
	if ts == nil {
		ts = newTypeState(name)
		ts.noted = m.notedGone[name]
		m.types[name] = ts
		m.ready.Add(&ts.Contender)
		m.typesChanged++
		m.byName.Set(name, ts)
		m.followType(ts)
	}
	return ts
}

// include adds a task to everything derived but the index of claims. It returns
// the task's type.
func (m *Machine) include(t *record.Task) *typeState {
	ts := m.typeOf(t.Type)
	t.Type = ts.name // one string for all
	ts.tasks++
	if record.HoldsKey(t) {
		m.keys.Add(t.KeyName(), t.ID)
	}
	m.joinParent(t)
	m.enter(t)
	return ts
}

// exclude takes an ended task out of everything derived.
func (m *Machine) exclude(t *record.Task) {
	m.leave(t)
	ts := m.typeNamed(t.Type)
	ts.tasks--
	m.arrange(ts, t)
	m.quitParent(t)
	m.dropType(ts)
	if record.HoldsKey(t) {
		m.keys.Remove(t.KeyName(), t.ID)
	}
}

// endedCode returns why nothing more can happen to an ended task.
func endedCode(s record.Status) Code {
	switch s {
	case record.StatusCompleted:
		return CodeTaskCompleted
	case record.StatusFailed:
		return CodeTaskFailed
	}
	return CodeTaskCancelled
}

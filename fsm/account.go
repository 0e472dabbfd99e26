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
func (m *Machine) Bytes() int64 {
	return m.bytes + m.types.Bytes() + m.trail.Bytes() + bytesOfGaps(&m.tasks)
}

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
	m.types.Enter(&ts.Type, t)
	m.types.Arrange(&ts.Type, t, m, m.Stamp().T)
}

// leave undoes enter.
func (m *Machine) leave(t *record.Task) {
	ts := m.typeNamed(t.Type)
	ts.counts[t.Status]--
	m.counts[t.Status]--
	bytes := record.HeldBytes(t)
	m.bytes -= bytes
	m.leaveTimes(t, bytes)
	if t.Options != nil {
		m.leaveSteps(t, t.Options, bytes)
	}
	m.types.Leave(&ts.Type, t)
}

// grown counts the bytes by which the task, which is in every index, has grown since it was
// put there.
func (m *Machine) grown(t *record.Task, bytes int64) {
	m.bytes += bytes
	switch s := t.Step(); {
	case s != nil:
		ps := m.parents[s.ParentID]
		ps.bytes += bytes
		if ps.ended {
			m.endedBytes += bytes
		}
	case t.Status.Ended():
		m.endedBytes += bytes
	}
}

// include adds a task to everything derived but the index of claims. It returns
// the task's type.
func (m *Machine) include(t *record.Task) *typeState {
	ts := m.typeOf(t.Type)
	t.Type = ts.Name() // one string for all
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
	m.types.Arrange(&ts.Type, t, m, m.Stamp().T)
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

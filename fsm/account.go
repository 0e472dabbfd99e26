package fsm

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
)

// bytesOfGaps estimates the memory of pages without tasks. Each task is charged for its own
// place, but a page with a single task still takes its full size. The estimate depends only
// on the ids, so it is the same on all nodes.
func bytesOfGaps(tasks *table.Table[record.Task]) int64 {
	return int64(tasks.Gaps()) * record.PlaceBytes
}

// Bytes estimates the memory that the state holds.
func (m *Machine) Bytes() int64 {
	return m.bytes + m.types.Bytes() + m.trail.Bytes() + bytesOfGaps(&m.tasks)
}

// addRemembered adds bytes to the estimates for claim requests and removed tasks.
func (m *derived) addRemembered(bytes int64) {
	m.bytes += bytes
	m.rememberedBytes += bytes
}

// edit returns the task for writing and takes it out of the indexes. The task must exist.
// Every edit must be followed by one call of edited after the last change; until then no
// other task may be read or changed.
func (m *Machine) edit(id uint64) *record.Task {
	t := m.tasks.Edit(id)
	m.change(t)
	return t
}

// change does the work of edit for a task that the table has already returned for writing.
func (m *Machine) change(t *record.Task) {
	m.changed++
	m.leave(t)
	t.UpdatedAt = m.header.Stamp.T
}

// edited ends an edit and puts the task back into the indexes. If the task is a step that
// has ended, edited also applies the consequences for the other steps of its parent.
func (m *Machine) edited(t *record.Task) {
	m.enter(t)
	m.tasks.Rest(t.ID)
	if len(m.stepsEnded) > 0 && !m.following {
		m.followSteps()
	}
}

// enter adds a task to the counts and to the index of its status. Keys and live claims are
// not entered here, but where they are given.
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

// grown adds to the counts the bytes by which an indexed task has grown since enter.
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

// include adds a task to everything derived except the index of claims. It returns the
// task's type.
func (m *Machine) include(t *record.Task) *typeState {
	ts := m.typeOf(t.Type)
	t.Type = ts.Name() // all tasks of the type share one string
	ts.tasks++
	if record.HoldsKey(t) {
		m.keys.Add(t.KeyName(), t.ID)
	}
	m.joinParent(t)
	m.enter(t)
	return ts
}

// exclude removes an ended task from everything derived.
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

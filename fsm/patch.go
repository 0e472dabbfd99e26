package fsm

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Patch changes fields of a task that is not claimed and has not ended: those
// whose Set flag is true.
type Patch struct {
	ID          uint64
	SetPriority bool
	Priority    int32
	SetRunAt    bool
	RunAt       int64 // by T; 0 = at once
	SetLabels   bool
	Labels      []record.Label // as in NewTask
}

func (Patch) kind() kind                           { return kindPatch }
func (c Patch) about() About                       { return About{Known: true, ID: c.ID, Changes: 1} }
func (c Patch) applyTo(m *Machine) (Result, error) { return m.patch(c), nil }

// patch changes fields of a task that is not claimed and has not ended.
func (m *Machine) patch(c Patch) Result {
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

func (c Patch) appendBody(b []byte) []byte {
	b = wire.PutID(b, 1, c.ID)
	b = wire.PutBool(b, 2, c.SetPriority)
	b = wire.PutSint(b, 3, c.Priority)
	b = wire.PutBool(b, 4, c.SetRunAt)
	b = wire.PutInt(b, 5, c.RunAt)
	b = wire.PutBool(b, 6, c.SetLabels)
	return record.AppendLabels(b, 7, c.Labels)
}

func (Patch) decode(r fieldReader) (Command, error) {
	var c Patch
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.ID()
		case 2:
			c.SetPriority = r.Bool()
		case 3:
			c.Priority = r.Sint32()
		case 4:
			c.SetRunAt = r.Bool()
		case 5:
			c.RunAt = r.Int64()
		case 6:
			c.SetLabels = r.Bool()
		case 7:
			c.Labels = r.AddLabel(c.Labels)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

package fsm

import "github.com/claimq/claimq/fsm/record"

// parentState is what is derived of a parent and its steps. It is there while
// one of them is.
type parentState struct {
	tasks  int32                             // the parent and its steps, those that are included
	counts [record.StatusCancelled + 1]int32 // of the steps, by Status
	asked  int32                             // claimed steps that were asked to be cancelled
	ended  bool                              // the parent has ended: Machine.endedBytes counts bytes
	bytes  int64                             // what the steps take
	// waiting says by place how many of the step's dependencies have not completed.
	waiting []uint16
}

// newParentState returns what is derived of a parent none of whose steps is there.
func newParentState(p *record.Plan) *parentState {
	ps := &parentState{waiting: make([]uint16, len(p.Steps))}
	for place := range p.Steps {
		ps.waiting[place] = uint16(len(p.Steps[place].DependsOn))
	}
	return ps
}

// open returns how many steps have not ended.
func (ps *parentState) open() int {
	return int(ps.unclaimed() + ps.counts[record.StatusClaimed])
}

// done returns how many steps have completed or failed.
func (ps *parentState) done() int32 {
	return ps.counts[record.StatusCompleted] + ps.counts[record.StatusFailed]
}

// unclaimed returns how many steps have not ended and are not claimed.
func (ps *parentState) unclaimed() int32 {
	return ps.counts[record.StatusPending] + ps.counts[record.StatusScheduled] + ps.counts[record.StatusBlocked]
}

// unasked returns how many steps are claimed and were not asked to be cancelled.
func (ps *parentState) unasked() int32 { return ps.counts[record.StatusClaimed] - ps.asked }

// joinParent begins what is derived of the task's parent, or of the task if it is
// one. A task that is neither has no part in it.
func (m *derived) joinParent(t *record.Task) {
	id, plan := record.ParentOf(t)
	if plan == nil {
		return
	}
	ps := m.parents[id]
	if ps == nil {
		ps = newParentState(plan)
		m.parents[id] = ps
	}
	ps.tasks++
}

// quitParent undoes joinParent.
func (m *derived) quitParent(t *record.Task) {
	id, plan := record.ParentOf(t)
	if plan == nil {
		return
	}
	ps := m.parents[id]
	if ps.tasks--; ps.tasks == 0 {
		delete(m.parents, id)
	}
}

// enterSteps puts a parent or step that takes so many bytes where its fields
// place it.
func (m *derived) enterSteps(t *record.Task, o *record.Options, bytes int64) {
	switch {
	case o.Step != nil:
		m.countStep(t, o.Step, 1, bytes)
	case o.Parent != nil && t.Status.Ended():
		ps := m.parents[t.ID]
		ps.ended = true
		m.endedBytes += ps.bytes
	}
}

// leaveSteps undoes enterSteps.
func (m *derived) leaveSteps(t *record.Task, o *record.Options, bytes int64) {
	switch {
	case o.Step != nil:
		m.countStep(t, o.Step, -1, -bytes)
	case o.Parent != nil && t.Status.Ended():
		ps := m.parents[t.ID]
		ps.ended = false
		m.endedBytes -= ps.bytes
	}
}

// countStep adds by, 1 or -1, steps like t, and their bytes.
func (m *derived) countStep(t *record.Task, s *record.Step, by int32, bytes int64) {
	ps := m.parents[s.ParentID]
	ps.counts[t.Status] += by
	if t.Status == record.StatusClaimed && t.CancelRequested {
		ps.asked += by
	}
	ps.bytes += bytes
	if ps.ended {
		m.endedBytes += bytes
	}
	if t.Status == record.StatusCompleted {
		for _, place := range s.Plan.Steps[t.StepPlace()].Dependents {
			ps.waiting[place] -= uint16(by) // wraps round for -1, as it should
		}
	}
}

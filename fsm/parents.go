package fsm

// What parents take in memory, beside what every task takes. A step has its place
// in the plan, which it shares, and nothing of its own.
const (
	parentBytes       = 320 // the plan and what is derived of its steps, by themselves
	plannedStepBytes  = 68
	dependencyBytes   = 4 // of one place in DependsOn and one in dependents
	finalizationBytes = 96
	attemptedBytes    = 56 // of one attempt to claim a finalization
)

// parentState is what is derived of a parent and its steps. It is there while
// one of them is.
type parentState struct {
	tasks  int32                      // the parent and its steps, those that are included
	counts [StatusCancelled + 1]int32 // of the steps, by Status
	asked  int32                      // claimed steps that were asked to be cancelled
	ended  bool                       // the parent has ended: Machine.endedBytes counts bytes
	bytes  int64                      // what the steps take
	// waiting says by place how many of the step's dependencies have not completed.
	waiting []uint16
}

// newParentState returns what is derived of a parent none of whose steps is there.
func newParentState(p *Plan) *parentState {
	ps := &parentState{waiting: make([]uint16, len(p.Steps))}
	for place := range p.Steps {
		ps.waiting[place] = uint16(len(p.Steps[place].DependsOn))
	}
	return ps
}

// open returns how many steps have not ended.
func (ps *parentState) open() int {
	return int(ps.unclaimed() + ps.counts[StatusClaimed])
}

// done returns how many steps have completed or failed.
func (ps *parentState) done() int32 {
	return ps.counts[StatusCompleted] + ps.counts[StatusFailed]
}

// unclaimed returns how many steps have not ended and are not claimed.
func (ps *parentState) unclaimed() int32 {
	return ps.counts[StatusPending] + ps.counts[StatusScheduled] + ps.counts[StatusBlocked]
}

// unasked returns how many steps are claimed and were not asked to be cancelled.
func (ps *parentState) unasked() int32 { return ps.counts[StatusClaimed] - ps.asked }

// joinParent begins what is derived of the task's parent, or of the task if it is
// one. A task that is neither has no part in it.
func (m *derived) joinParent(t *Task) {
	id, plan := parentOf(t)
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
func (m *derived) quitParent(t *Task) {
	id, plan := parentOf(t)
	if plan == nil {
		return
	}
	ps := m.parents[id]
	if ps.tasks--; ps.tasks == 0 {
		delete(m.parents, id)
	}
}

// parentOf returns the id of the task's parent, or its own if it is one, and
// their plan; nil if it is neither a parent nor a step.
func parentOf(t *Task) (id uint64, plan *Plan) {
	o := t.options()
	switch {
	case o.Step != nil:
		return o.Step.ParentID, o.Step.Plan
	case o.Parent != nil:
		return t.ID, o.Parent.Plan
	}
	return 0, nil
}

// enterSteps puts a parent or step that takes so many bytes where its fields
// place it.
func (m *derived) enterSteps(t *Task, o *Options, bytes int64) {
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
func (m *derived) leaveSteps(t *Task, o *Options, bytes int64) {
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
func (m *derived) countStep(t *Task, s *Step, by int32, bytes int64) {
	ps := m.parents[s.ParentID]
	ps.counts[t.Status] += by
	if t.Status == StatusClaimed && t.CancelRequested {
		ps.asked += by
	}
	ps.bytes += bytes
	if ps.ended {
		m.endedBytes += bytes
	}
	if t.Status == StatusCompleted {
		for _, place := range s.Plan.Steps[t.StepPlace()].dependents {
			ps.waiting[place] -= uint16(by) // wraps round for -1, as it should
		}
	}
}

// bytesOfSteps estimates what parents take beside.
func bytesOfSteps(o *Options) int {
	if o.Parent == nil {
		return 0
	}
	n := parentBytes + o.Parent.Plan.bytes
	if f := o.Parent.Finalization; f != nil {
		n += finalizationBytes + len(f.ProcessorID)
		for i := range f.Attempts {
			n += attemptedBytes + len(f.Attempts[i].ProcessorID) + len(f.Attempts[i].Holder)
		}
	}
	return n
}

package fsm

import "github.com/claimq/claimq/fsm/record"

// parents holds what is derived of parents and their steps.
type parents struct {
	byID       map[uint64]*parentState
	endedBytes int64 // memory of the steps whose parents have ended
}

func (p *parents) reset() { p.byID, p.endedBytes = map[uint64]*parentState{}, 0 }

// parentState is derived of a parent and its steps. It exists as long as any of them does.
type parentState struct {
	tasks  int32                             // the parent and its included steps
	counts [record.StatusCancelled + 1]int32 // of the steps, by Status
	asked  int32                             // claimed steps that were asked to stop
	ended  bool                              // the parent has ended, so parents.endedBytes includes bytes
	bytes  int64                             // memory of the steps
	// waiting counts for each place the step's dependencies that have not completed.
	waiting []uint16
}

// newParentState returns the state of a parent before any step is included.
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

// unasked returns how many steps are claimed and were not asked to stop.
func (ps *parentState) unasked() int32 { return ps.counts[record.StatusClaimed] - ps.asked }

// join adds the task to the parentState of its parent, or its own if it is a parent.
// Other tasks are ignored.
func (p *parents) join(t *record.Task) {
	id, plan := record.ParentOf(t)
	if plan == nil {
		return
	}
	ps := p.byID[id]
	if ps == nil {
		ps = newParentState(plan)
		p.byID[id] = ps
	}
	ps.tasks++
}

// quit undoes join.
func (p *parents) quit(t *record.Task) {
	id, plan := record.ParentOf(t)
	if plan == nil {
		return
	}
	ps := p.byID[id]
	if ps.tasks--; ps.tasks == 0 {
		delete(p.byID, id)
	}
}

// enter adds a parent or step to the counts. bytes is its size in memory.
func (p *parents) enter(t *record.Task, o *record.Options, bytes int64) {
	switch {
	case o.Step != nil:
		p.count(t, o.Step, 1, bytes)
	case o.Parent != nil && t.Status.Ended():
		ps := p.byID[t.ID]
		ps.ended = true
		p.endedBytes += ps.bytes
	}
}

// leave undoes enter.
func (p *parents) leave(t *record.Task, o *record.Options, bytes int64) {
	switch {
	case o.Step != nil:
		p.count(t, o.Step, -1, -bytes)
	case o.Parent != nil && t.Status.Ended():
		ps := p.byID[t.ID]
		ps.ended = false
		p.endedBytes -= ps.bytes
	}
}

// count adds by steps like t, which is 1 or -1, and their bytes.
func (p *parents) count(t *record.Task, s *record.Step, by int32, bytes int64) {
	ps := p.byID[s.ParentID]
	ps.counts[t.Status] += by
	if t.Status == record.StatusClaimed && t.CancelRequested {
		ps.asked += by
	}
	ps.bytes += bytes
	if ps.ended {
		p.endedBytes += bytes
	}
	if t.Status == record.StatusCompleted {
		for _, place := range s.Plan.Steps[t.StepPlace()].Dependents {
			ps.waiting[place] -= uint16(by) // wraps around for -1, as intended
		}
	}
}

// grow makes room for the steps that the plan of the parent has in addition to those there are.
// completed reports whether the step at a place has completed.
func (p *parents) grow(id uint64, plan *record.Plan, completed func(place uint16) bool) {
	ps := p.byID[id]
	for place := len(ps.waiting); place < len(plan.Steps); place++ {
		waits := uint16(0)
		for _, on := range plan.Steps[place].DependsOn {
			if !completed(on) {
				waits++
			}
		}
		ps.waiting = append(ps.waiting, waits)
	}
}

// grown adds the bytes that an included step has gained.
func (p *parents) grown(s *record.Step, bytes int64) {
	ps := p.byID[s.ParentID]
	ps.bytes += bytes
	if ps.ended {
		p.endedBytes += bytes
	}
}

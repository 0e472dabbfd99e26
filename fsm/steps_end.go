package fsm

import "github.com/claimq/claimq/fsm/record"

// followSteps does what follows from the steps that have ended, first come first
// served: what it ends itself comes last. It is over when nothing follows any
// more: each step ends once.
func (m *Machine) followSteps() {
	m.following = true
	for i := 0; i < len(m.stepsEnded); i++ {
		m.followStep(m.stepsEnded[i])
	}
	m.stepsEnded, m.following = m.stepsEnded[:0], false // at most some thousands
}

// followStep does what follows from the end of the step: it frees those that wait
// for it, or cancels them, or all of its parent; and if it was the last one, it
// ends the parent.
func (m *Machine) followStep(id uint64) {
	t := m.tasks.Get(id)
	s := t.Step()
	ps := m.parents[s.ParentID]
	switch {
	case t.Status != record.StatusCompleted && !s.Plan.Continue:
		m.stopSteps(s.ParentID, ps)
	case ps.counts[record.StatusBlocked] > 0:
		m.followDependents(t, ps)
	}
	if ps.open() == 0 {
		m.endWithSteps(s.ParentID)
	}
}

// followDependents frees the blocked steps that waited for this one alone, which
// has completed, or cancels those that waited for it and never can begin.
func (m *Machine) followDependents(t *record.Task, ps *parentState) {
	s := t.Step()
	for _, place := range s.Plan.Steps[t.StepPlace()].Dependents {
		id := s.ParentID + 1 + uint64(place)
		switch {
		case m.tasks.Get(id).Status != record.StatusBlocked:
		case t.Status != record.StatusCompleted:
			m.stop(id)
		case ps.waiting[place] == 0:
			m.unblock(id)
		}
	}
}

// unblock lets a blocked step be claimed, once its time has come.
func (m *Machine) unblock(id uint64) {
	t := m.edit(id)
	m.setRunAt(t, t.RunAt)
	m.edited(t)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
}

// stopSteps cancels the parent's steps that are not claimed, in the plan's order,
// and asks those that are. It looks at them only if there is one of these.
func (m *Machine) stopSteps(parentID uint64, ps *parentState) {
	if ps.unclaimed() == 0 && ps.unasked() == 0 {
		return
	}
	for place := range ps.waiting {
		id := parentID + 1 + uint64(place)
		if t := m.tasks.Get(id); !t.Status.Ended() && !t.CancelRequested {
			m.stop(id)
		}
	}
}

// endWithSteps ends the parent, whose steps have all ended, if it ends by itself.
func (m *Machine) endWithSteps(id uint64) {
	t := m.tasks.Get(id)
	switch {
	case t.Status.Ended():
	case t.CancelRequested:
		m.endParent(id, parentEnd{To: record.StatusCancelled})
	case !t.Parent().Plan.ByClaim:
		m.endParent(id, m.autoEnd(t))
	}
}

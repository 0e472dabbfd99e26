package fsm

import "github.com/claimq/claimq/fsm/record"

// attachSteps looks at what a saved task has to do with its parent or its steps,
// and gives the steps of a parent its plan. It returns what is wrong, "" if
// nothing is. Parents come before their steps, and all records are there.
func (m *saved) attachSteps(t *record.Task) (problem string) {
	switch o := t.Opts(); {
	case o.Parent != nil:
		return m.attachPlan(t, o.Parent.Plan)
	case o.Step != nil:
		return m.problemOfStep(t, o.Step)
	}
	return ""
}

// problemOfStep returns what is wrong with a saved step, "" if nothing is. Its
// parent has looked at the rest.
func (m *saved) problemOfStep(t *record.Task, s *record.Step) string {
	parent := m.tasks.Get(s.ParentID)
	switch {
	case parent == nil || parent.Parent() == nil:
		return "its parent is not there"
	case t.ID <= s.ParentID || t.ID-s.ParentID > uint64(len(parent.Parent().Plan.Steps)):
		return "its parent has no place for it"
	case t.RemoveAt != 0:
		return "it is a step that is removed before its parent"
	}
	return ""
}

// attachPlan gives the plan of a saved parent to its steps. It returns what is
// wrong with them, "" if nothing is.
func (m *saved) attachPlan(t *record.Task, p *record.Plan) (problem string) {
	if !p.Sound() {
		return "its steps depend on each other, or on what is not there"
	}
	completed := make([]bool, len(p.Steps))
	step := &record.Step{ParentID: t.ID, Plan: p}
	for place := range p.Steps {
		s := m.tasks.Get(t.ID + 1 + uint64(place))
		switch {
		case s == nil || s.Step() == nil || s.Step().ParentID != t.ID:
			return "it lacks a step"
		case t.Status.Ended() && !s.Status.Ended():
			return "it has ended before a step of it"
		case s.Step().Plan == nil:
			s.Options.Step = step // nobody has seen it yet
		}
		completed[place] = s.Status == record.StatusCompleted
	}
	for place := range p.Steps {
		s := m.tasks.Get(t.ID + 1 + uint64(place))
		if !p.Suits(place, s.Status, completed) {
			return "a step waits for others, or does not, as it should not"
		}
	}
	return ""
}

package trail

import (
	"github.com/claimq/claimq/jepsen/history"
)

// family is a parent and its steps, as far as the trail has told of them.
type family struct {
	id        uint64
	plan      *history.Plan
	submitted *history.Told
	finalized *history.Told // the last time
	ended     *history.Told // nil: it runs
	retried   uint64        // the entry that retried it last
	steps     []stepLife
}

// stepLife is the outcome of a step.
type stepLife struct {
	ended     string // the kind of the event, "" = it has not ended
	completed bool
	index     uint64 // of its submit
	sub       uint32
}

// member is a step's place in its family.
type member struct {
	*family
	place int
}

// findFamilies finds the parents: those whose submit was answered, and those that
// the state at the end has.
func (c *checker) findFamilies() {
	byKey := map[string]*history.Plan{}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Kind == history.Finalize && op.Outcome != history.Failed {
			c.askedToEnd[finalizer{op.TaskID, op.Worker}] = true
		}
		if op.Kind != history.Submit || op.Plan == nil {
			continue
		}
		byKey[op.Key] = op.Plan
		if op.Outcome == history.OK {
			c.addFamily(op.TaskID, op.Plan)
		}
	}
	if c.h.Final == nil {
		return
	}
	for i := range c.h.Final.Tasks {
		if t := &c.h.Final.Tasks[i]; t.Finalize != "" && byKey[t.Key] != nil {
			c.addFamily(t.ID, byKey[t.Key])
		}
	}
}

func (c *checker) addFamily(id uint64, plan *history.Plan) {
	if c.families[id] != nil {
		return
	}
	f := &family{id: id, plan: plan, steps: make([]stepLife, len(plan.Steps))}
	c.families[id] = f
	for place := range plan.Steps {
		c.members[id+1+uint64(place)] = member{f, place}
	}
	c.report.Parents++
}

// stepsOf returns the ids of the task's steps, if it is a parent.
func (c *checker) stepsOf(id uint64) (ids []uint64) {
	if f := c.families[id]; f != nil {
		for place := range f.steps {
			ids = append(ids, id+1+uint64(place))
		}
	}
	return ids
}

// takeParent takes an event of a parent, which has no claims of workers.
func (c *checker) takeParent(f *family, t *life, e *history.Told) {
	switch e.Kind {
	case "submitted":
		f.submitted = e
		c.note(e)
	case "finalization_claimed":
		c.note(e)
		if f.ended != nil {
			c.violate(RuleSteps, f.id, nil, "after %s: %s", describe(f.ended), describe(e))
		}
	case "finalized":
		f.finalized = e
	case "completed", "failed", "cancelled":
		c.takeEnd(f, e)
		t.completed = e.Kind == "completed"
	case "retried":
		t.retried++
		f.ended, f.retried = nil, e.Index
	case "deleted":
		c.note(e)
		t.deleted = true
		if f.ended == nil {
			c.violate(RuleSteps, f.id, nil, "it had not ended: %s", describe(e))
		}
	case "cancel_requested":
	default:
		c.violate(RuleSteps, f.id, nil, "a parent has no such event: %s", describe(e))
	}
}

// takeEnd takes the end of a parent.
func (c *checker) takeEnd(f *family, e *history.Told) {
	if f.ended != nil {
		c.violate(RuleSteps, f.id, nil, "a parent ends twice: %s and %s", describe(f.ended), describe(e))
	}
	if z := f.finalized; e.Kind != "cancelled" && (z == nil || z.Index != e.Index || z.Sub+1 != e.Sub || z.Message != e.Kind || z.Worker != e.Worker || z.Token != e.Token) {
		c.violate(RuleSteps, f.id, nil, "it was not finalized right before, and so: %s", describe(e))
	}
	for place := range f.steps {
		if f.steps[place].ended == "" {
			c.violate(RuleSteps, f.id, nil, "its step %s had not ended: %s", f.plan.Steps[place].Name, describe(e))
		}
	}
	f.ended = e
}

// takeStep takes an event of a step into its family.
func (c *checker) takeStep(m member, e *history.Told) {
	s := &m.steps[m.place]
	if m.ended != nil && e.Kind != "deleted" {
		c.violate(RuleSteps, e.TaskID, nil, "its parent has ended, %s: %s", describe(m.ended), describe(e))
	}
	switch e.Kind {
	case "submitted":
		s.index, s.sub = e.Index, e.Sub
	case "claimed":
		if s.ended != "" {
			c.violate(RuleSteps, e.TaskID, nil, "the step was %s: %s", s.ended, describe(e))
		}
		for _, on := range m.plan.Steps[m.place].DependsOn {
			if !m.steps[on].completed {
				c.violate(RuleSteps, e.TaskID, nil, "step %s, which it depends on, has not completed: %s", m.plan.Steps[on].Name, describe(e))
			}
		}
	case "completed", "failed", "cancelled":
		s.ended, s.completed = e.Kind, e.Kind == "completed"
	case "requeued", "scheduled", "retried":
		s.ended = ""
	}
}

// checkFamilies checks what is left of the parents at the end: one that runs has
// steps to do, or waits for its processor; all were submitted with their steps.
func (c *checker) checkFamilies() {
	for id, f := range c.families {
		if f.submitted == nil {
			continue // its submit has no event: that is another rule's
		}
		open := 0
		for place := range f.steps {
			s := &f.steps[place]
			if s.ended == "" {
				open++
			}
			if s.index != f.submitted.Index || s.sub < f.submitted.Sub+1+uint32(place) {
				c.violate(RuleSteps, id, nil, "its step %s was not submitted with it: %s", f.plan.Steps[place].Name, describe(f.submitted))
			}
		}
		if f.ended == nil && open == 0 && !f.plan.ByClaim {
			c.violate(RuleSteps, id, nil, "all its steps have ended, and it has not")
		}
	}
}

// finalizedBy reports whether the event is of a parent that ended by itself, or
// one that the processor was asked to end.
func (c *checker) finalizedBy(e *history.Told) bool {
	f := c.families[e.TaskID]
	if f == nil || !f.plan.ByClaim {
		return e.Worker == ""
	}
	return c.askedToEnd[finalizer{e.TaskID, e.Worker}]
}

// finalizer is a processor and a parent that it may have ended.
type finalizer struct {
	parent    uint64
	processor string
}

// checkFinalized looks for the event of each call that ended a parent.
func (c *checker) checkFinalized() {
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		f := c.families[op.TaskID]
		if op.Kind != history.Finalize || op.Outcome != history.OK || !op.Done || f == nil {
			continue
		}
		c.report.Answers++
		z := f.finalized
		switch {
		case z == nil:
			c.violate(RuleAcked, op.TaskID, []int{i}, "acknowledged, and the trail has no such event")
		case f.retried > 0: // it may have been before that
		case z.Worker != op.Worker || z.Message != op.Goal || op.Token != 0 && z.Token != op.Token || op.Index != 0 && op.Index != z.Index:
			c.violate(RuleAcked, op.TaskID, []int{i}, "acknowledged to %s at index %d, and the trail says %s", op.Worker, op.Index, describe(z))
		}
	}
}

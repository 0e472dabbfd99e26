package check

import (
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// family is a parent and its steps, as far as the trail has told of them.
type family struct {
	*task
	submitted *history.Told
	finalized *history.Told // the last time
	ended     *history.Told // nil: it runs
	retried   bool
	steps     []stepLife
}

// stepLife is the outcome of a step.
type stepLife struct {
	ended     string // the kind of the event, "" = it has not ended
	completed bool
	index     uint64 // of its submit
	sub       uint32
}

// familyOf returns the family of the step with the id, and its place there, nil if it is
// none.
func (c *trailChecker) familyOf(id uint64) (f *family, place int) {
	t := c.tasks[id]
	if t == nil || t.parentID == 0 {
		return nil, 0
	}
	return c.families[t.parentID], t.place
}

// takeParent takes an event of a parent, which has no claims of workers.
func (c *trailChecker) takeParent(f *family, t *life, e *history.Told) {
	switch e.Kind {
	case "submitted":
		f.submitted = e
		c.note(e)
	case "finalization_claimed":
		c.note(e)
		if f.ended != nil {
			c.Violate(RuleTrailSteps, f.id, nil, "after %s: %s", tell(f.ended), tell(e))
		}
	case "finalized":
		f.finalized = e
	case "completed", "failed", "cancelled":
		c.takeEnd(f, e)
		t.completed = e.Kind == "completed"
	case "retried":
		t.retried++
		f.ended, f.retried = nil, true
	case "deleted":
		c.note(e)
		t.deleted = true
		if f.ended == nil {
			c.Violate(RuleTrailSteps, f.id, nil, "it had not ended: %s", tell(e))
		}
	case "cancel_requested":
	default:
		c.Violate(RuleTrailSteps, f.id, nil, "a parent has no such event: %s", tell(e))
	}
}

// takeHidden takes an event of a parent of whose steps and end nothing is known.
func (c *trailChecker) takeHidden(t *life, e *history.Told) {
	switch e.Kind {
	case "submitted", "finalization_claimed":
		c.note(e)
	case "completed":
		t.completed = true
	case "retried":
		t.retried++
	case "deleted":
		c.note(e)
		t.deleted = true
	}
}

// takeEnd takes the end of a parent.
func (c *trailChecker) takeEnd(f *family, e *history.Told) {
	if f.ended != nil {
		c.Violate(RuleTrailSteps, f.id, nil, "a parent ends twice: %s and %s", tell(f.ended), tell(e))
	}
	if z := f.finalized; e.Kind != "cancelled" && (z == nil || z.Index != e.Index || z.Sub+1 != e.Sub || z.Message != e.Kind || z.Worker != e.Worker || z.Token != e.Token) {
		c.Violate(RuleTrailSteps, f.id, nil, "it was not finalized right before, and so: %s", tell(e))
	}
	for place := range f.steps {
		if f.steps[place].ended == "" {
			c.Violate(RuleTrailSteps, f.id, nil, "its step %s had not ended: %s", f.plan.Steps[place].Name, tell(e))
		}
	}
	f.ended = e
}

// takeStep takes an event of a step into its family.
func (c *trailChecker) takeStep(f *family, place int, e *history.Told) {
	s := &f.steps[place]
	if f.ended != nil && e.Kind != "deleted" {
		c.Violate(RuleTrailSteps, e.TaskID, nil, "its parent has ended, %s: %s", tell(f.ended), tell(e))
	}
	switch e.Kind {
	case "submitted":
		s.index, s.sub = e.Index, e.Sub
	case "claimed":
		if s.ended != "" {
			c.Violate(RuleTrailSteps, e.TaskID, nil, "the step was %s: %s", s.ended, tell(e))
		}
		for _, on := range f.plan.Steps[place].DependsOn {
			if !f.steps[on].completed {
				c.Violate(RuleTrailSteps, e.TaskID, nil, "step %s, which it depends on, has not completed: %s", f.plan.Steps[on].Name, tell(e))
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
func (c *trailChecker) checkFamilies() {
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
				c.Violate(RuleTrailSteps, id, nil, "its step %s was not submitted with it: %s", f.plan.Steps[place].Name, tell(f.submitted))
			}
		}
		if f.ended == nil && open == 0 && !f.plan.ByClaim {
			c.Violate(RuleTrailSteps, id, nil, "all its steps have ended, and it has not")
		}
	}
}

// finalizedBy reports whether the event is of a parent that ended by itself, or
// one that the processor was asked to end.
func (c *trailChecker) finalizedBy(e *history.Told) bool {
	f := c.families[e.TaskID]
	switch byClaim := f != nil && f.plan.ByClaim; {
	case !byClaim && e.Worker == "":
		return true
	case !byClaim && !c.isHidden(e.TaskID):
		return false
	}
	return slices.ContainsFunc(c.tasks[e.TaskID].ops, func(i int) bool {
		op := &c.h.Ops[i]
		return op.Kind == history.Finalize && op.Outcome != history.Failed && op.Worker == e.Worker
	})
}

// checkFinalized looks for the event of each call that ended a parent.
func (c *trailChecker) checkFinalized() {
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		f := c.families[op.TaskID]
		if op.Kind != history.Finalize || op.Outcome != history.OK || !op.Done || f == nil {
			continue
		}
		c.answers++
		z := f.finalized
		switch {
		case z == nil:
			c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged, and the trail has no such event")
		case f.retried: // it may have been before that
		case z.Worker != op.Worker || z.Message != op.Goal || op.Token != 0 && z.Token != op.Token || op.Index != 0 && op.Index != z.Index:
			c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged to %s at index %d, and the trail says %s", op.Worker, op.Index, tell(z))
		}
	}
}

package check

import (
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// step returns the step at the place, an empty one before its submit.
func (c *trailChecker) step(parent *task, place int) *life {
	id := parent.stepID(place)
	if t := c.lives[id]; t != nil {
		return t
	}
	return &life{task: c.known(id), status: statusBlocked}
}

// blocked returns the first dependency of the step that has not completed, "" if all have.
func (c *trailChecker) blocked(t *task) string {
	if t.parentID == 0 {
		return ""
	}
	parent := c.tasks[t.parentID]
	for _, on := range parent.plan.Steps[t.place].DependsOn {
		if c.step(parent, on).status != statusCompleted {
			return parent.plan.Steps[on].Name
		}
	}
	return ""
}

// takeParent applies an event of a parent, which workers never claim.
func (c *trailChecker) takeParent(t *life, e *history.Told) {
	switch e.Kind {
	case "submitted", "cancel_requested":
	case "steps_added":
		if t.ended != nil {
			c.fails(RuleTrailSteps, e, "after %s", tell(t.ended))
		}
		t.grew = append(t.grew, e)
	case "finalization_claimed":
		if t.ended != nil {
			c.fails(RuleTrailSteps, e, "after %s", tell(t.ended))
		}
	case "finalized":
		t.finalized = e
	case "completed", "failed", "cancelled":
		c.takeEnd(t, e)
	case "retried":
		t.ended = nil
	case "deleted":
		if t.ended == nil {
			c.fails(RuleTrailSteps, e, "it had not ended")
		}
	default:
		c.fails(RuleTrailSteps, e, "a parent has no such event")
	}
}

// takeEnd applies the end of a parent.
func (c *trailChecker) takeEnd(t *life, e *history.Told) {
	if t.ended != nil {
		c.fails(RuleTrailSteps, e, "a parent ends twice, after %s", tell(t.ended))
	}
	if z := t.finalized; e.Kind != statusCancelled && (z == nil || z.Index != e.Index || z.Sub+1 != e.Sub || z.Message != e.Kind || z.Worker != e.Worker || z.Token != e.Token) {
		c.fails(RuleTrailSteps, e, "it was not finalized right before, and so")
	}
	if name := c.open(t); name != "" {
		c.fails(RuleTrailSteps, e, "its step %s had not ended", name)
	}
	if own := c.ownEnd(t); own != "" && e.Kind != own && e.Kind != statusCancelled {
		c.fails(RuleTrailSteps, e, "by its steps it has %s", own)
	}
	t.ended = e
}

// ownEnd returns how the parent ends once its steps have ended, "" if a processor decides or if it
// is not known.
func (c *trailChecker) ownEnd(t *life) string {
	if t.plan == nil || t.plan.ByClaim {
		return ""
	}
	completed, steps := 0, 0
	if t.openPlan {
		return ""
	}
	for place := range t.plan.Steps {
		if c.later(t, place) {
			continue
		}
		steps++
		if c.step(t.task, place).status == statusCompleted {
			completed++
		}
	}
	if completed == steps || t.plan.Continue && completed > 0 {
		return statusCompleted
	}
	return statusFailed
}

// open returns a step of the parent that has not ended, "" if all have.
func (c *trailChecker) open(t *life) string {
	for place := range t.steps() {
		if !c.later(t, place) && !hasEnded(c.step(t.task, place).status) {
			return t.plan.Steps[place].Name
		}
	}
	return ""
}

// later reports whether the step at the place has not been added yet.
func (c *trailChecker) later(t *life, place int) bool {
	return place >= len(t.plan.Steps)-len(t.added) && c.lives[t.stepID(place)] == nil
}

// steps returns the steps of the parent, none if no call shows them.
func (t *task) steps() []history.Step {
	if t.plan == nil {
		return nil
	}
	return t.plan.Steps
}

// takeStep applies an event of a step, if the task is one.
func (c *trailChecker) takeStep(t *life, e *history.Told) {
	parent := c.lives[t.parentID]
	if parent == nil {
		return
	}
	if parent.ended != nil && e.Kind != "deleted" {
		c.fails(RuleTrailSteps, e, "its parent has ended, %s", tell(parent.ended))
	}
	if on := c.blocked(t.task); on != "" && e.Kind == "claimed" {
		c.fails(RuleTrailSteps, e, "step %s, which it depends on, has not completed", on)
	}
}

// checkFamilies checks the families at the end: a running parent has open steps or waits for its
// processor, all steps were submitted with their parents, and a step whose cancellation was
// requested is still claimed or cancelled.
func (c *trailChecker) checkFamilies() {
	for _, t := range c.all {
		if t.cancelling && t.live == 0 {
			c.Violate(RuleTrailLife, t.id, nil, "the cancel of task %d was asked for, and it is %q", t.id, t.status)
		}
		if t.plan == nil || t.submitted == nil {
			continue // another rule reports a submit without an event
		}
		submitted := len(t.plan.Steps) - len(t.added)
		for place, s := range t.plan.Steps[submitted:] {
			e := c.step(t.task, submitted+place).submitted
			if e == nil || !slices.ContainsFunc(t.grew, func(g *history.Told) bool { return g.Index == e.Index && g.Sub < e.Sub }) {
				c.fails(RuleTrailSteps, t.submitted, "its step %s was not added to it", s.Name)
			}
		}
		for place, s := range t.plan.Steps[:submitted] {
			if e := c.step(t.task, place).submitted; e == nil || e.Index != t.submitted.Index || e.Sub < t.submitted.Sub+1+uint32(place) {
				c.fails(RuleTrailSteps, t.submitted, "its step %s was not submitted with it", s.Name)
			}
		}
		if t.ended == nil && !t.plan.ByClaim && !t.openPlan && c.open(t) == "" {
			c.fails(RuleTrailSteps, t.submitted, "all its steps have ended, and it has not")
		}
	}
}

// finalizedBy reports whether the parent of the event ended by itself or as a processor asked.
func (c *trailChecker) finalizedBy(e *history.Told) bool {
	t := c.known(e.TaskID)
	byItself := t.plan == nil || !t.plan.ByClaim
	if e.Worker == "" || t.plan != nil && byItself {
		return e.Worker == "" && byItself
	}
	for _, op := range c.of(t, history.Finalize) {
		if op.Worker == e.Worker {
			return true
		}
	}
	return false
}

// checkFinalized looks for the event of a call that ended a parent.
func (c *trailChecker) checkFinalized(i int, op *history.Op) {
	t := c.lives[op.TaskID]
	switch {
	case t == nil || t.finalized == nil:
		c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged, and the trail has no such event")
	case t.retried > 0: // it may have ended before that
	case t.finalized.Worker != op.Worker || t.finalized.Message != op.Goal || op.Token != 0 && t.finalized.Token != op.Token || op.Index != 0 && op.Index != t.finalized.Index:
		c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged to %s at index %d, and the trail says %s", op.Worker, op.Index, tell(t.finalized))
	}
}

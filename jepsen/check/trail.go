package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// trailChecker holds the trail against the answers.
type trailChecker struct {
	*index
	Part
	lives map[uint64]*life
	told  map[end]*history.Told // events of claims, submits and deletes
	// families are the parents, by id.
	families map[uint64]*family
	ticks    []*history.Told // submitted by the schedule
	set      *history.Told   // the last time that the schedule was set
	gone     *history.Told   // its deletion
	deeds    []deed          // in order
	token    uint64          // the last that was given out

	answers int // that have an event
	slots   int // of the schedule, that came
	pauses  int // of types
	actions int // on many
}

// end names what is in the trail once at most: an event of a claim, or, with
// token 0, of a task.
type end struct {
	kind  string
	task  uint64
	token uint64
}

// life is what is known of a task.
type life struct {
	live, last uint64 // tokens: of the claim that lives, of the last one
	lapsed     bool   // its last event is the end of a lease
	cancelling bool   // the cancel of its claim was asked for
	completed  bool
	deleted    bool
	retried    int
}

// checkTrail checks the trail of x.
func checkTrail(x *index) *trailChecker {
	started := time.Now()
	c := &trailChecker{index: x, lives: map[uint64]*life{}, told: map[end]*history.Told{}, families: map[uint64]*family{}}
	c.Name = "trail"
	for id, t := range x.tasks {
		if t.plan != nil {
			c.families[id] = &family{task: t, steps: make([]stepLife, len(t.plan.Steps))}
		}
	}
	c.checkEqual()
	for i := range x.h.Trail {
		c.checkOrder(i)
		c.take(&x.h.Trail[i])
	}
	c.checkFamilies()
	c.checkAnswers()
	c.checkUnasked()
	c.checkWhole()
	c.checkPaused()
	c.checkCancels()
	c.checkActs()
	c.checkSlots()
	c.Summary = fmt.Sprintf("%d events on %d nodes, %d parents, %d of %d slots, %d pauses, %d actions on many, %d answers, in %v",
		len(x.h.Trail), len(x.h.Dumps), len(c.families), len(c.ticks), c.slots, c.pauses, c.actions, c.answers, time.Since(started).Round(time.Millisecond))
	return c
}

func (c *trailChecker) checkEqual() {
	for i := range c.h.Dumps {
		if d, first := &c.h.Dumps[i], &c.h.Dumps[0]; d.TrailHash != first.TrailHash || d.Events != first.Events {
			c.Violate(RuleTrailEqual, 0, nil, "%s tells %d events and %s tells %d, and they differ: %s", first.Node, first.Events, d.Node, d.Events, d.TrailDiffers)
		}
	}
}

// checkOrder checks an event against the one before.
func (c *trailChecker) checkOrder(i int) {
	e := &c.h.Trail[i]
	if e.Kind == "claimed" || e.Kind == "finalization_claimed" {
		if e.Token <= c.token {
			c.Violate(RuleTrailOrder, e.TaskID, nil, "token %d is given out after token %d: %s", e.Token, c.token, tell(e))
		}
		c.token = e.Token
	}
	if i == 0 {
		return
	}
	before := &c.h.Trail[i-1]
	switch {
	case e.Index < before.Index || e.Index == before.Index && e.Sub != before.Sub+1 || e.Index > before.Index && e.Sub != 0:
		c.Violate(RuleTrailOrder, e.TaskID, nil, "%s comes behind %s", tell(e), tell(before))
	case e.At < before.At:
		c.Violate(RuleTrailOrder, e.TaskID, nil, "%s is of an earlier time than %s", tell(e), tell(before))
	}
}

// take takes an event into the life of its task.
func (c *trailChecker) take(e *history.Told) {
	if e.TaskID == 0 {
		c.takeAct(e)
		return
	}
	t := c.lives[e.TaskID]
	if (t == nil) != (e.Kind == "submitted") {
		c.Violate(RuleTrailLife, e.TaskID, nil, "a task begins with submitted, once: %s", tell(e))
	}
	if t == nil {
		t = &life{}
		c.lives[e.TaskID] = t
	}
	if t.deleted || t.completed && e.Kind != "deleted" {
		c.Violate(RuleTrailLife, e.TaskID, nil, "after the end of the task: %s", tell(e))
	}
	if f := c.families[e.TaskID]; f != nil {
		c.takeParent(f, t, e)
		return
	}
	if f, place := c.familyOf(e.TaskID); f != nil {
		c.takeStep(f, place, e)
	}
	if c.isHidden(e.TaskID) {
		c.takeHidden(t, e)
		return
	}
	c.note(e)
	lapsed := t.lapsed
	t.lapsed = false
	switch e.Kind {
	case "submitted":
		if c.h.Schedule != nil && e.Message == "schedule "+c.h.Schedule.Name {
			c.ticks = append(c.ticks, e)
		}
	case "claimed":
		if t.live != 0 {
			c.Violate(RuleTrailLife, e.TaskID, nil, "claimed while the claim %d lives: %s", t.live, tell(e))
		}
		t.live, t.last = e.Token, e.Token
	case "failed":
		if lapsed && e.Token == t.last {
			return // the last attempt's lease has ended
		}
		c.endClaim(t, e)
	case "completed", "released", "lease_expired":
		t.lapsed, t.completed = e.Kind == "lease_expired", e.Kind == "completed"
		c.endClaim(t, e)
	case "retried":
		t.retried++
		if e.Token != 0 || t.live != 0 {
			c.endClaim(t, e)
		}
	case "deleted":
		t.deleted = true
		if t.live != 0 {
			c.Violate(RuleTrailLife, e.TaskID, nil, "deleted while the claim %d lives", t.live)
		}
	}
	c.noteDeed(t, e)
}

// takeAct takes what was done to the schedule. What an earlier one of that name
// submitted does not count.
func (c *trailChecker) takeAct(e *history.Told) {
	name, _, _ := strings.Cut(e.Message, " ") // whose key it was may follow
	switch {
	case c.h.Schedule == nil || name != c.h.Schedule.Name:
	case e.Kind == "schedule_set":
		c.set, c.ticks = e, nil
	case e.Kind == "schedule_deleted":
		c.gone = e
	}
}

// endClaim ends the claim that lives, which must be the event's.
func (c *trailChecker) endClaim(t *life, e *history.Told) {
	if t.live == 0 || t.live != e.Token {
		c.Violate(RuleTrailLife, e.TaskID, nil, "the claim that lives is %d: %s", t.live, tell(e))
	}
	t.live = 0
}

// note notes the event under what it is once at most.
func (c *trailChecker) note(e *history.Told) {
	k := end{kind: e.Kind, task: e.TaskID}
	switch e.Kind {
	case "submitted", "deleted":
	case "claimed", "completed", "released", "lease_expired", "failed", "finalization_claimed":
		k.token = e.Token
	default:
		return
	}
	if before := c.told[k]; before != nil {
		c.Violate(RuleTrailLife, e.TaskID, nil, "told twice: %s and %s", tell(before), tell(e))
	}
	c.told[k] = e
}

// tell says an event in a line.
func tell(e *history.Told) string {
	s := fmt.Sprintf("%d.%d %s", e.Index, e.Sub, e.Kind)
	if e.TaskID != 0 {
		s += fmt.Sprintf(" task %d", e.TaskID)
	}
	if e.Token != 0 {
		s += fmt.Sprintf(" token %d of %s", e.Token, e.Worker)
	}
	if e.Message != "" {
		s += " " + e.Message
	}
	return s
}

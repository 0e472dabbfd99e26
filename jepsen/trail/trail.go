package trail

import (
	"fmt"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// The rules.
const (
	RuleEqual   check.Rule = "trail-equal"   // all nodes have the same trail
	RuleOrder   check.Rule = "trail-order"   // places and tokens grow, the calendar does not go back
	RuleLife    check.Rule = "trail-life"    // the events of a task are one life
	RuleAcked   check.Rule = "trail-acked"   // what was acknowledged has its event, once
	RuleUnasked check.Rule = "trail-unasked" // what nobody asked for has none
	RuleSlots   check.Rule = "trail-slots"   // each slot of a schedule has one task
	RuleWhole   check.Rule = "trail-whole"   // what is one step is one entry
	RulePaused  check.Rule = "trail-paused"  // no claim takes a task of a paused type
	RuleActs    check.Rule = "trail-acts"    // an action on many changed as many as it says
	RuleSteps   check.Rule = "trail-steps"   // steps wait for each other, and their parent for all of them
)

// Report is what Check found.
type Report struct {
	Events, Nodes int
	Answers       int // that have an event
	Ticks, Slots  int // tasks of the schedule, and slots that came
	Pauses        int // of types
	Acts          int // on many
	Parents       int // whose steps and ends were looked at
	// Violations are the first of ViolationCount.
	Violations     []check.Violation
	ViolationCount int
	Elapsed        time.Duration
}

// OK reports whether the trail passes.
func (r Report) OK() bool { return r.ViolationCount == 0 }

const violationsMax = 50

// checker is one run of Check.
type checker struct {
	h      *history.History
	report Report
	tasks  map[uint64]*life
	ends   map[end]*history.Told // events of claims, submits and deletes
	// families are the parents, and members the steps, by id.
	families   map[uint64]*family
	members    map[uint64]member
	askedToEnd map[finalizer]bool // by a call that may have had an effect
	ticks      []*history.Told    // submitted by the schedule
	set        *history.Told      // the last time that the schedule was set
	gone       *history.Told      // its deletion
	deeds      []deed             // in order
	token      uint64             // the last that was given out
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

// Check checks the trail of h.
func Check(h *history.History) Report {
	started := time.Now()
	c := &checker{
		h: h, tasks: map[uint64]*life{}, ends: map[end]*history.Told{},
		families: map[uint64]*family{}, members: map[uint64]member{}, askedToEnd: map[finalizer]bool{},
	}
	c.findFamilies()
	c.report.Events, c.report.Nodes = len(h.Trail), len(h.Dumps)
	c.checkEqual()
	for i := range h.Trail {
		c.checkOrder(i)
		c.take(&h.Trail[i])
	}
	c.checkFamilies()
	c.checkAnswers()
	c.checkUnasked()
	c.checkWhole()
	c.checkPaused()
	c.checkCancels()
	c.checkActs()
	c.checkSlots()
	c.report.Elapsed = time.Since(started)
	return c.report
}

func (c *checker) checkEqual() {
	for i := range c.h.Dumps {
		if d, first := &c.h.Dumps[i], &c.h.Dumps[0]; d.TrailHash != first.TrailHash || d.Events != first.Events {
			c.violate(RuleEqual, 0, nil, "%s tells %d events and %s tells %d, and they differ: %s", first.Node, first.Events, d.Node, d.Events, d.TrailDiffers)
		}
	}
}

// checkOrder checks an event against the one before.
func (c *checker) checkOrder(i int) {
	e := &c.h.Trail[i]
	if e.Kind == "claimed" || e.Kind == "finalization_claimed" {
		if e.Token <= c.token {
			c.violate(RuleOrder, e.TaskID, nil, "token %d is given out after token %d: %s", e.Token, c.token, describe(e))
		}
		c.token = e.Token
	}
	if i == 0 {
		return
	}
	before := &c.h.Trail[i-1]
	switch {
	case e.Index < before.Index || e.Index == before.Index && e.Sub != before.Sub+1 || e.Index > before.Index && e.Sub != 0:
		c.violate(RuleOrder, e.TaskID, nil, "%s comes behind %s", describe(e), describe(before))
	case e.At < before.At:
		c.violate(RuleOrder, e.TaskID, nil, "%s is of an earlier time than %s", describe(e), describe(before))
	}
}

// take takes an event into the life of its task.
func (c *checker) take(e *history.Told) {
	if e.TaskID == 0 {
		c.takeAct(e)
		return
	}
	t := c.tasks[e.TaskID]
	if (t == nil) != (e.Kind == "submitted") {
		c.violate(RuleLife, e.TaskID, nil, "a task begins with submitted, once: %s", describe(e))
	}
	if t == nil {
		t = &life{}
		c.tasks[e.TaskID] = t
	}
	if t.deleted || t.completed && e.Kind != "deleted" {
		c.violate(RuleLife, e.TaskID, nil, "after the end of the task: %s", describe(e))
	}
	if f := c.families[e.TaskID]; f != nil {
		c.takeParent(f, t, e)
		return
	}
	if m, ok := c.members[e.TaskID]; ok {
		c.takeStep(m, e)
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
			c.violate(RuleLife, e.TaskID, nil, "claimed while the claim %d lives: %s", t.live, describe(e))
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
			c.violate(RuleLife, e.TaskID, nil, "deleted while the claim %d lives", t.live)
		}
	}
	c.noteDeed(t, e)
}

// takeAct takes what was done to the schedule. What an earlier one of that name
// submitted does not count.
func (c *checker) takeAct(e *history.Told) {
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
func (c *checker) endClaim(t *life, e *history.Told) {
	if t.live == 0 || t.live != e.Token {
		c.violate(RuleLife, e.TaskID, nil, "the claim that lives is %d: %s", t.live, describe(e))
	}
	t.live = 0
}

// note notes the event under what it is once at most.
func (c *checker) note(e *history.Told) {
	k := end{kind: e.Kind, task: e.TaskID}
	switch e.Kind {
	case "submitted", "deleted":
	case "claimed", "completed", "released", "lease_expired", "failed", "finalization_claimed":
		k.token = e.Token
	default:
		return
	}
	if before := c.ends[k]; before != nil {
		c.violate(RuleLife, e.TaskID, nil, "told twice: %s and %s", describe(before), describe(e))
	}
	c.ends[k] = e
}

func (c *checker) violate(rule check.Rule, taskID uint64, ops []int, format string, args ...any) {
	c.report.ViolationCount++
	if len(c.report.Violations) < violationsMax {
		c.report.Violations = append(c.report.Violations, check.Violation{Rule: rule, Task: taskID, Text: fmt.Sprintf(format, args...), Ops: ops})
	}
}

func describe(e *history.Told) string {
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

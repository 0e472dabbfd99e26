package check

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// trailChecker goes through the trail once, event by event, and so knows at each what the
// state is. It holds against it what the answers say.
type trailChecker struct {
	*index
	Part
	lives map[uint64]*life
	all   []*life               // in the order of their ids
	told  map[end]*history.Told // events of claims, submits and deletes
	deeds []deed                // in order
	token uint64                // the last that was given out
	id    uint64                // the last that was given to a task

	sights  []int                  // ops that show the state after an entry, by index
	shows   map[end]int            // ops that show the state behind their own event
	done    int                    // the op of these whose event was the last one, -1 = none
	pending map[uint64]*life       // tasks that claims may take for certain
	claims  map[end]int            // ops that took what comes first
	limited map[string]bool        // types that were paused, or got a limit, at any time
	changes map[uint64]*history.Op // by entry: what it changes of a type, nil if that is not certain
	types   map[string]settings    // what is certain of them
	crowds  map[crowd]int          // how many claims of them live
	delays  map[uint64]int64       // by the token of the claim that a release ends: the least, in ms
	ticking bool                   // there is the schedule that runs every second
	idle    int64                  // ms in which the log went on and it did not

	answers, actions, chosen, shown int // how much was looked at
}

// settings are what is in force of a type: which event paused it, and how many of its claims
// may live, 0 = nobody knows of a bound.
type settings struct {
	paused *history.Told
	most   int32
}

// crowd names tasks of which few may be claimed at a time: those of a group, or with group ""
// all of the type.
type crowd struct{ kind, group string }

// end names what is in the trail once at most: an event of a claim, or, with
// token 0, of a task.
type end struct {
	kind  string
	task  uint64
	token uint64
}

// life is what the trail has told of a task.
type life struct {
	*task
	status     string // "" = it was deleted
	since      uint64 // the entry that gave it the status
	waits      bool   // it is pending once its time has come, which is no event
	until      int64  // no claim of it may begin before, by the calendar
	attempts   int32
	live, last uint64 // tokens: of the claim that lives, of the last one
	lapsed     bool   // its last event is the end of a lease
	cancelling bool   // the cancel of its claim was asked for

	// Of a parent: how often it was retried, and its events.
	retried                     int
	submitted, finalized, ended *history.Told // ended is nil while it runs
}

// becomes says the status that an event gives to a task.
var becomes = map[string]string{
	"submitted": statusPending, "scheduled": statusPending, "requeued": statusPending, "retried": statusPending, "claimed": statusClaimed,
	"completed": statusCompleted, "failed": statusFailed, "cancelled": statusCancelled, "deleted": "",
}

// checkTrail checks the trail of x.
func checkTrail(x *index) *trailChecker {
	c := &trailChecker{
		index: x, lives: map[uint64]*life{}, told: map[end]*history.Told{}, pending: map[uint64]*life{},
		claims: map[end]int{}, limited: map[string]bool{}, changes: map[uint64]*history.Op{}, types: map[string]settings{}, crowds: map[crowd]int{},
		delays: map[uint64]int64{}, shows: map[end]int{}, done: -1,
	}
	c.Name = "trail"
	c.findSights()
	for i := range c.trail {
		e := &c.trail[i]
		if i > 0 {
			c.checkOrder(&c.trail[i-1], e)
			c.look(e.Index)
			c.takeSlot(&c.trail[i-1], e)
		}
		c.take(e)
	}
	c.look(never)
	c.showDone(&history.Told{})
	if c.final != nil && len(c.trail) > 0 {
		c.checkList(-1, &history.Op{Index: c.trail[len(c.trail)-1].Index, Listed: c.final.Tasks})
	}
	c.checkFamilies()
	c.checkAnswers()
	c.checkUnasked()
	c.checkWhole()
	c.checkActs()
	c.Summary = fmt.Sprintf("%d events, %d actions on many, %d answers, %d claims' choices, %d reads and lists",
		len(c.trail), c.actions, c.answers, c.chosen, c.shown)
	return c
}

// fails notes a violation by an event.
func (c *trailChecker) fails(rule Rule, e *history.Told, format string, args ...any) {
	c.Violate(rule, e.TaskID, nil, "%s: %s", fmt.Sprintf(format, args...), tell(e))
}

// checkOrder checks an event against the one before.
func (c *trailChecker) checkOrder(before, e *history.Told) {
	switch {
	case e.Index < before.Index || e.Index == before.Index && e.Sub != before.Sub+1 || e.Index > before.Index && e.Sub != 0:
		c.fails(RuleTrailOrder, e, "it comes behind %s", tell(before))
	case e.At < before.At:
		c.fails(RuleTrailOrder, e, "it is of an earlier time than %s", tell(before))
	}
}

// idleMax is how many ms the log may go on without a slot of the schedule that runs every
// second. A gap between two events counts as idleStep at most: nothing may go on then.
const idleMax, idleStep = 10_000, 100

// takeSlot checks that the schedule goes on.
func (c *trailChecker) takeSlot(before, e *history.Told) {
	c.idle += min(e.At-before.At, idleStep)
	switch {
	case e.Kind == "schedule_set", e.Kind == "schedule_deleted":
		c.ticking, c.idle = e.Kind == "schedule_set", 0
	case e.Message == "schedule "+history.Tick:
		c.idle = 0
	case c.ticking && c.idle > idleMax:
		c.fails(RuleSlots, e, "the schedule %s had no slot for long", history.Tick)
	}
}

// grow checks a number that is given out against the last one.
func (c *trailChecker) grow(last *uint64, n uint64, what string, e *history.Told) {
	if n <= *last {
		c.fails(RuleTrailOrder, e, "%s %d is given out after %d", what, n, *last)
	}
	*last = n
}

// take takes an event into the life of its task.
func (c *trailChecker) take(e *history.Told) {
	c.showDone(e)
	if e.TaskID == 0 {
		c.takeAct(e)
		return
	}
	t := c.lives[e.TaskID]
	if (t == nil) != (e.Kind == "submitted") {
		c.fails(RuleTrailLife, e, "a task begins with submitted, once")
	}
	if t == nil {
		t = &life{task: c.known(e.TaskID), status: statusPending}
		c.lives[e.TaskID] = t
		c.all = append(c.all, t)
	}
	if t.status == "" || t.status == statusCompleted && e.Kind != "deleted" {
		c.fails(RuleTrailLife, e, "after the end of the task")
	}
	switch e.Kind {
	case "submitted":
		c.grow(&c.id, e.TaskID, "id", e)
		t.submitted = e
	case "claimed":
		c.grow(&c.token, e.Token, "token", e)
		c.checkPaused(t, e)
		c.checkChoice(t, e)
	case "finalization_claimed":
		c.grow(&c.token, e.Token, "token", e)
	case "retried":
		t.retried++
	}
	c.note(t, e)
	c.takeTime(t, e)
	claimed := t.live != 0
	if t.parent {
		c.takeParent(t, e)
	} else {
		c.takeStep(t, e)
		c.takeClaim(t, e)
		c.noteDeed(t, e)
	}
	if claimed != (t.live != 0) {
		c.takeCrowd(t, e)
	}
	if status, ok := becomes[e.Kind]; ok {
		t.status, t.since, t.waits = status, e.Index, e.Kind == "scheduled"
		c.follow(t)
	}
	for _, k := range [...]end{{e.Kind, e.TaskID, e.Token}, {e.Kind + " at", e.TaskID, e.Index}} {
		if i, ok := c.shows[k]; ok && !t.parent {
			c.done = i
		}
	}
}

// takeAct takes what was done to a type.
func (c *trailChecker) takeAct(e *history.Told) {
	if name, _, _ := strings.Cut(e.Message, " "); e.Kind == "type_changed" { // whose key it was may follow
		c.types[name] = c.changed(name, e)
	}
}

// changed returns what is certain of a type once the event has changed it.
func (c *trailChecker) changed(name string, e *history.Told) settings {
	switch op := c.changes[e.Index]; {
	case op == nil || op.TaskType != name:
		return settings{}
	case op.Paused == nil:
		return settings{most: op.MaxClaimed}
	case *op.Paused:
		return settings{e, c.types[name].most}
	}
	return settings{most: c.types[name].most}
}

// takeCrowd counts the claim that began or ended among those of the task's group and type,
// and checks that it may live beside them.
func (c *trailChecker) takeCrowd(t *life, e *history.Told) {
	begun := 1
	if t.live == 0 {
		begun = -1
	}
	all, group := crowd{kind: t.kind}, crowd{t.kind, t.group}
	c.crowds[all] += begun
	if t.group != "" {
		c.crowds[group] += begun
	}
	most := int(c.types[t.kind].most)
	switch {
	case begun < 0 || t.kind == "":
	case t.group != "" && c.crowds[group] > 1:
		c.fails(RuleGroup, e, "%d claims of group %q of type %s live", c.crowds[group], t.group, t.kind)
	case most > 0 && c.crowds[all] > most:
		c.fails(RuleLimit, e, "%d claims of type %s live, %d may", c.crowds[all], t.kind, most)
	}
}

// takeClaim takes what an event of a task that is no parent says of its claims.
func (c *trailChecker) takeClaim(t *life, e *history.Told) {
	lapsed := t.lapsed
	t.lapsed = e.Kind == "lease_expired"
	switch e.Kind {
	case "claimed":
		if t.status != statusPending || t.live != 0 {
			c.fails(RuleTrailLife, e, "claimed while it is %q, by the claim %d", t.status, t.live)
		}
		t.live, t.last = e.Token, e.Token
		t.attempts++
	case "failed":
		if !lapsed || e.Token != t.last { // else the last attempt's lease has ended
			c.endClaim(t, e)
		}
	case "completed", "lease_expired":
		c.endClaim(t, e)
	case "released":
		c.endClaim(t, e)
		t.attempts--
	case "retried":
		if e.Token != 0 || t.live != 0 {
			c.endClaim(t, e)
		}
	case "deleted":
		if t.live != 0 {
			c.fails(RuleTrailLife, e, "the claim %d lives", t.live)
		}
	}
}

// endClaim ends the claim that lives, which must be the event's.
func (c *trailChecker) endClaim(t *life, e *history.Told) {
	if t.live == 0 || t.live != e.Token {
		c.fails(RuleTrailLife, e, "the claim that lives is %d", t.live)
	}
	t.live = 0
}

// note notes the event under what it is once at most.
func (c *trailChecker) note(t *life, e *history.Told) {
	k := end{kind: e.Kind, task: e.TaskID}
	switch e.Kind {
	case "submitted", "deleted":
	case "claimed", "completed", "released", "lease_expired", "failed", "finalization_claimed":
		if t.parent && e.Kind != "finalization_claimed" {
			return
		}
		k.token = e.Token
	default:
		return
	}
	if before := c.told[k]; before != nil {
		c.fails(RuleTrailLife, e, "told before as %s", tell(before))
	}
	c.told[k] = e
}

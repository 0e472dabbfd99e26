package check

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// trailChecker goes through the trail event by event and thus knows the state at each of them. It
// compares the answers with it.
type trailChecker struct {
	*index
	Part
	lives map[uint64]*life
	all   []*life               // by id
	told  map[end]*history.Told // events of claims, submits and deletes
	deeds []deed                // in order
	token uint64                // the highest so far
	id    uint64                // the highest id of a task so far

	sights  []int                  // ops that show the state after an entry, by index
	shows   map[end]int            // ops that show the state after their own event
	done    int                    // the op in shows with the latest event, -1 = none
	pending map[uint64]*life       // tasks that a claim certainly may take
	claims  map[end]int            // ops that claimed the first task in order
	limited map[string]bool        // types that were ever paused or limited
	changes map[uint64]*history.Op // by entry: its change of a type, nil if not certain
	types   map[string]settings    // their certain settings
	crowds  map[crowd]int          // their live claims
	fair    map[string]*fairType   // types whose shares take turns
	hidden  bool                   // a task of unknown type was claimed
	// claimedBy are the ops that tell how a claim was made, by its token.
	claimedBy map[uint64]*history.Op
	delays    map[uint64]int64 // by the token of the claim that a release ends: the smallest delay, in ms
	ticking   bool             // the schedule with a slot each second exists
	idle      int64            // ms in which the log went on without a slot of that schedule

	answers, actions, chosen, turns, shown int // how many of each were checked
}

// settings holds what is certain of a type: the event that paused it, and the bound on its live
// claims, 0 if no bound is known.
type settings struct {
	paused *history.Told
	most   int32
}

// crowd names tasks of which only some may be claimed at a time: those of a group, or of a share, or
// without either all of the type.
type crowd struct{ kind, group, share string }

// end names an event that the trail has at most once: of a claim or, with token 0, of a task.
type end struct {
	kind  string
	task  uint64
	token uint64
}

// life is the state of a task by its events so far.
type life struct {
	*task
	status     string // "" = deleted
	since      uint64 // the entry that gave it the status
	waits      bool   // it becomes pending at its time, without an event
	until      int64  // calendar time before which no claim may begin
	attempts   int32
	live, last uint64 // tokens of the live and of the latest claim
	lapsed     bool   // its last event ended a lease
	stands     bool   // it counts in its lane
	cancelling bool   // its cancellation was requested

	// Of a parent: the number of retries, and its events.
	retried                     int
	submitted, finalized, ended *history.Told   // ended is nil until it has ended
	grew                        []*history.Told // steps were added to it
}

// becomes maps an event to the status that the task has after it.
var becomes = map[string]string{
	"submitted": statusPending, "scheduled": statusPending, "requeued": statusPending, "retried": statusPending, "claimed": statusClaimed,
	"completed": statusCompleted, "failed": statusFailed, "cancelled": statusCancelled, "deleted": "",
}

// checkTrail checks the trail of x.
func checkTrail(x *index) *trailChecker {
	c := &trailChecker{
		index: x, lives: map[uint64]*life{}, told: map[end]*history.Told{}, pending: map[uint64]*life{},
		claims: map[end]int{}, limited: map[string]bool{}, changes: map[uint64]*history.Op{}, types: map[string]settings{}, crowds: map[crowd]int{},
		delays: map[uint64]int64{}, shows: map[end]int{}, done: -1, fair: map[string]*fairType{}, claimedBy: map[uint64]*history.Op{},
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
	c.Summary = fmt.Sprintf("%d events, %d actions on many, %d answers, %d claims' choices, %d turns, %d reads and lists",
		len(c.trail), c.actions, c.answers, c.chosen, c.turns, c.shown)
	return c
}

// fails records a violation that an event shows.
func (c *trailChecker) fails(rule Rule, e *history.Told, format string, args ...any) {
	c.Violate(rule, e.TaskID, nil, "%s: %s", fmt.Sprintf(format, args...), tell(e))
}

// checkOrder checks an event against the previous one.
func (c *trailChecker) checkOrder(before, e *history.Told) {
	switch {
	case e.Index < before.Index || e.Index == before.Index && e.Sub != before.Sub+1 || e.Index > before.Index && e.Sub != 0:
		c.fails(RuleTrailOrder, e, "it comes behind %s", tell(before))
	case e.At < before.At:
		c.fails(RuleTrailOrder, e, "it is of an earlier time than %s", tell(before))
	}
}

// idleMax bounds the ms for which the log may go on without a slot of the schedule that fires every second.
// A gap between two events counts as at most idleStep, because the log may have been idle.
const idleMax, idleStep = 10_000, 100

// takeSlot checks that the schedule continues.
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

// grow checks that a new number is above the last one.
func (c *trailChecker) grow(last *uint64, n uint64, what string, e *history.Told) {
	if n <= *last {
		c.fails(RuleTrailOrder, e, "%s %d is given out after %d", what, n, *last)
	}
	*last = n
}

// take applies an event to its task.
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
	again := e.Kind == "retried" && t.plan != nil && t.plan.Continue // for the sake of a step
	if t.status == "" || t.status == statusCompleted && e.Kind != "deleted" && !again {
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
		c.checkTurn(t, e)
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
	c.followShare(t)
	for _, k := range [...]end{{e.Kind, e.TaskID, e.Token}, {e.Kind + " at", e.TaskID, e.Index}} {
		if i, ok := c.shows[k]; ok && !t.parent {
			c.done = i
		}
	}
}

// takeAct applies an event of a type.
func (c *trailChecker) takeAct(e *history.Told) {
	if name, _, _ := strings.Cut(e.Message, " "); e.Kind == "type_changed" { // the caller's key may follow
		c.types[name] = c.changed(name, e)
	}
}

// changed returns the certain settings of a type after the event.
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

// takeCrowd counts the claim that began or ended among those of the task's group and type, and
// checks that the limits permit it.
func (c *trailChecker) takeCrowd(t *life, e *history.Told) {
	begun := 1
	if t.live == 0 {
		begun = -1
	}
	all, group, share := crowd{kind: t.kind}, crowd{kind: t.kind, group: t.group}, crowd{kind: t.kind, share: t.share}
	c.crowds[all] += begun
	if t.share != "" {
		c.crowds[share] += begun
	}
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
	case t.share != "" && c.fair[t.kind] != nil:
		if most := c.fair[t.kind].share(t.share).most; most > 0 && c.crowds[share] > most {
			c.fails(RuleLimit, e, "%d claims of share key %q of type %s live, %d may", c.crowds[share], t.share, t.kind, most)
		}
	}
}

// takeClaim applies an event about a claim of a task that is no parent.
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
		if !lapsed || e.Token != t.last { // otherwise the last attempt's lease has ended
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

// endClaim ends the live claim, whose token the event must have.
func (c *trailChecker) endClaim(t *life, e *history.Told) {
	if t.live == 0 || t.live != e.Token {
		c.fails(RuleTrailLife, e, "the claim that lives is %d", t.live)
	}
	t.live = 0
}

// note records an event that the trail may have once.
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

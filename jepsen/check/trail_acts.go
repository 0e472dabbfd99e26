package check

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// deed is the effect of a cancel, a retry or a delete on a task, as far as the trail tells. The end
// of a claim whose cancellation was requested is not counted.
type deed struct {
	action history.Kind
	task   uint64
	index  uint64
	told   *history.Told
}

// deeds maps the events to the calls that cause them.
var deeds = map[string]history.Kind{"cancel_requested": history.Cancel, "retried": history.Retry, "deleted": history.Delete}

// noteDeed records the event of such a call for a task that is no parent, and checks it against the
// live claim.
func (c *trailChecker) noteDeed(t *life, e *history.Told) {
	action := deeds[e.Kind]
	switch e.Kind {
	case "cancel_requested":
		t.cancelling = true
		if t.live == 0 {
			c.fails(RuleTrailLife, e, "no claim lives")
		}
	case "cancelled":
		if !t.cancelling {
			action = history.Cancel
		}
		// A retry of a claimed task whose cancellation was requested also ends the claim.
		if byRetry := t.cancelling && t.live == e.Token; t.live != 0 && !byRetry {
			c.fails(RuleTrailLife, e, "the claim %d lives", t.live)
		}
		t.live, t.cancelling = 0, false
	case "completed":
		t.cancelling = false
	case "requeued", "scheduled", "retried":
		if t.cancelling || t.status == statusCancelled && e.Kind != "retried" {
			c.fails(RuleTrailLife, e, "it was cancelled, or is to be")
		}
	}
	if action != "" {
		c.deeds = append(c.deeds, deed{action, e.TaskID, e.Index, e})
	}
}

// checkActs checks that each action on many tasks caused as many events as it reports changed
// tasks, between the answer to the previous action and its own. Events that a call for one task may
// have caused may or may not count. An action of unknown outcome may act at any later time, so that
// later ones of its kind find fewer tasks and more events.
func (c *trailChecker) checkActs() {
	alone := map[deed]bool{} // a call for the task alone asked for it
	for _, op := range c.took(history.Cancel, history.Retry, history.Delete) {
		alone[deed{action: op.Kind, task: op.TaskID}] = true
	}
	var acts []int
	for i := range c.took(history.Act) {
		acts = append(acts, i)
	}
	slices.SortStableFunc(acts, func(a, b int) int { return cmp.Compare(c.ops[a].Call, c.ops[b].Call) })
	unknown := map[string]bool{} // actions with an unknown outcome
	before := uint64(0)
	for _, i := range acts {
		op := &c.ops[i]
		if op.Outcome == history.Unknown {
			unknown[op.Action] = true
			continue
		}
		c.actions++
		least, most := int64(0), int64(0)
		for _, d := range c.deeds {
			t := c.known(d.task)
			if d.index <= before || d.index > op.Index || t.kind != "" && t.kind != op.TaskType || t.isStep() {
				continue
			}
			sure := t.kind != "" && !unknown[string(d.action)] && !alone[deed{action: d.action, task: d.task}]
			switch {
			case string(d.action) == op.Action && sure:
				least, most = least+1, most+1
			case string(d.action) == op.Action:
				most++
			case sure:
				c.fails(RuleTrailActs, d.told, "no action on many was under way that does so")
			}
		}
		if op.Count < least || op.Count > most {
			c.Violate(RuleTrailActs, 0, []int{i}, "an action says that it changed %d tasks; the trail has %d to %d such events from index %d to %d", op.Count, least, most, before+1, op.Index)
		}
		before = op.Index
	}
}

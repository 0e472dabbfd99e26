package check

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// deed is what a cancel, a retry or a delete did to a task, as far as can be told: not
// the end of a claim whose cancel had been asked for.
type deed struct {
	action history.Kind
	task   uint64
	index  uint64
	told   *history.Told
}

// deeds are what the calls are told as.
var deeds = map[string]history.Kind{"cancel_requested": history.Cancel, "retried": history.Retry, "deleted": history.Delete}

// noteDeed notes what the event of a task that is no parent tells of such a call, and what
// it says of the claim that lives.
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
		// A retry of a claimed task whose cancel had been asked for ends the claim so.
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

// checkActs checks that each action on many has made as many events as it says that it has
// changed tasks, between the answer to the action before it and its own. What calls about
// one task may have made counts or does not. One whose outcome is unknown may act at any
// later time, so that those of its kind after it may find less, and others' events.
func (c *trailChecker) checkActs() {
	alone := map[deed]bool{} // asked for by a call about the task alone
	for _, op := range c.took(history.Cancel, history.Retry, history.Delete) {
		alone[deed{action: op.Kind, task: op.TaskID}] = true
	}
	var acts []int
	for i := range c.took(history.Act) {
		acts = append(acts, i)
	}
	slices.SortStableFunc(acts, func(a, b int) int { return cmp.Compare(c.ops[a].Call, c.ops[b].Call) })
	unknown := map[string]bool{} // actions of which an outcome is
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

package check

import (
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// deed is an event that a cancel, a retry or a delete made, as far as can be told: not
// the end of a claim whose cancel had been asked for.
type deed struct {
	*history.Told
	action history.Kind
}

// noteDeed notes what the event of a task that is no parent tells of such a call, and what
// it says of the claim that lives.
func (c *trailChecker) noteDeed(t *life, e *history.Told) {
	action := history.Kind("")
	switch e.Kind {
	case "cancel_requested":
		action, t.cancelling = history.Cancel, true
		if t.live == 0 {
			c.Violate(RuleTrailLife, e.TaskID, nil, "no claim lives: %s", tell(e))
		}
	case "cancelled":
		if !t.cancelling {
			action = history.Cancel
		}
		// A retry of a claimed task whose cancel had been asked for ends the claim so.
		if byRetry := t.cancelling && t.live == e.Token; t.live != 0 && !byRetry {
			c.Violate(RuleTrailLife, e.TaskID, nil, "the claim %d lives: %s", t.live, tell(e))
		}
		t.live, t.cancelling = 0, false
	case "retried":
		action = history.Retry
	case "deleted":
		action = history.Delete
	case "completed":
		t.cancelling = false
		return
	default:
		return
	}
	if f, _ := c.familyOf(e.TaskID); action != "" && f == nil {
		c.deeds = append(c.deeds, deed{e, action})
	}
}

// checkCancels checks that each acknowledged cancel has its event, and that nobody is
// cancelled whom nobody cancelled.
func (c *trailChecker) checkCancels() {
	type at struct{ task, index uint64 }
	told, asked := map[at]bool{}, map[uint64]bool{}
	for _, d := range c.deeds {
		if d.action == history.Cancel {
			told[at{d.TaskID, d.Index}] = true
		}
	}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		switch {
		case op.Outcome == history.Failed:
		case op.Kind == history.Cancel:
			asked[op.TaskID] = true
			if op.Outcome == history.OK && !op.Repeated {
				c.answers++
				if !told[at{op.TaskID, op.Index}] {
					c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged at index %d, and the trail has no such event there", op.Index)
				}
			}
		}
	}
	acted := c.actedTypes(history.Cancel)
	for _, d := range c.deeds {
		if kind := c.kindOf(d.TaskID); d.action == history.Cancel && kind != "" && !asked[d.TaskID] && !acted[kind] {
			c.Violate(RuleTrailUnasked, d.TaskID, nil, "nobody asked for it, or it was refused: %s", tell(d.Told))
		}
	}
}

// actedTypes returns the types with whose tasks somebody may have done the action, all at
// once.
func (x *index) actedTypes(action history.Kind) map[string]bool {
	return x.types(func(op *history.Op) bool { return op.Kind == history.Act && op.Action == string(action) })
}

// checkActs checks that each action on many has made as many events as it says that it has
// changed tasks, between the answer to the action before it and its own. What calls about
// one task may have made counts or does not. One whose outcome is unknown may act at any
// later time, so that those of its kind after it may find less, and others' events.
func (c *trailChecker) checkActs() {
	var acts []int
	alone := map[deedOf]bool{} // asked for by a call about the task alone
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		switch {
		case op.Outcome == history.Failed:
		case op.Kind == history.Act:
			acts = append(acts, i)
		default:
			alone[deedOf{op.TaskID, op.Kind}] = true
		}
	}
	slices.SortStableFunc(acts, func(a, b int) int { return int(min(max(c.h.Ops[a].Call-c.h.Ops[b].Call, -1), 1)) })
	unknown := map[string]bool{} // actions of which an outcome is
	before := uint64(0)
	for _, i := range acts {
		op := &c.h.Ops[i]
		if op.Outcome == history.Unknown {
			unknown[op.Action] = true
			continue
		}
		c.actions++
		least, most := int64(0), int64(0)
		for _, d := range c.deeds {
			kind := c.kindOf(d.TaskID)
			if d.Index <= before || d.Index > op.Index || string(d.action) != op.Action || kind != "" && kind != op.TaskType {
				continue
			}
			most++
			if kind != "" && !unknown[op.Action] && !alone[deedOf{d.TaskID, d.action}] {
				least++
			}
		}
		if op.Count < least || op.Count > most {
			c.Violate(RuleTrailActs, 0, []int{i}, "an action says that it changed %d tasks; the trail has %d to %d such events from index %d to %d", op.Count, least, most, before+1, op.Index)
		}
		before = op.Index
	}
}

// deedOf names what a call about one task asks for.
type deedOf struct {
	task   uint64
	action history.Kind
}

package check

import (
	"github.com/claimq/claimq/jepsen/history"
)

// toldAs are what the calls are told as.
var toldAs = map[history.Kind]string{
	history.Submit: "submitted", history.Claim: "claimed", history.ClaimTask: "claimed", history.Complete: "completed",
	history.Fail: "failed", history.Release: "released", history.Delete: "deleted",
	history.ClaimFinalization: "finalization_claimed", history.Finalize: "finalized",
}

// eventOf returns what the trail has of the call, once at most. ok is false if it
// may have none.
func eventOf(op *history.Op) (k end, ok bool) {
	k = end{kind: toldAs[op.Kind], task: op.TaskID}
	switch op.Kind {
	case history.Submit, history.Delete:
		return k, op.TaskID != 0
	case history.Claim, history.ClaimTask, history.Complete, history.Fail, history.Release, history.ClaimFinalization:
		k.token = op.Token
		return k, op.TaskID != 0 && op.Token != 0
	}
	return k, false
}

// checkAnswers looks for the event of each call that was acknowledged.
func (c *trailChecker) checkAnswers() {
	retried := map[uint64][]int{}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Outcome == history.OK && op.Kind == history.Retry && !op.Repeated && (op.Seen == nil || op.Seen.Status != "cancelled") {
			retried[op.TaskID] = append(retried[op.TaskID], i)
		}
		k, ok := eventOf(op)
		if op.Outcome != history.OK || !ok {
			continue
		}
		c.answers++
		e := c.told[k]
		switch {
		case e == nil:
			c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged, and the trail has no such event")
		case e.Worker != op.Worker && k.token != 0:
			c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged to %s, and the trail says %s", op.Worker, tell(e))
		case op.Index != 0 && op.Index != e.Index && did(op):
			c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged at index %d, and the trail says %s", op.Index, tell(e))
		case op.Index != 0 && op.Index < e.Index:
			c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged at index %d, before %s", op.Index, tell(e))
		}
	}
	c.checkFinalized()
	for id, ops := range retried {
		if c.families[id] != nil {
			continue // that of a parent that runs is told of its steps
		}
		if t := c.lives[id]; t == nil || t.retried < len(ops) {
			c.Violate(RuleTrailAcked, id, ops, "%d retries acknowledged, the trail has fewer", len(ops))
		}
	}
}

// did reports whether the answer says that this call, and none before, did it.
func did(op *history.Op) bool {
	if op.Kind == history.Submit {
		return op.Created
	}
	return !op.Repeated
}

// checkUnasked looks for events of calls that nobody made, or that were all
// refused.
func (c *trailChecker) checkUnasked() {
	asked := map[end]bool{}
	unknown := map[string]bool{} // kinds of which an outcome is unknown, with the worker
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Outcome == history.Failed {
			continue
		}
		if k, ok := eventOf(op); ok {
			asked[k] = true
			if f := c.families[op.TaskID]; f != nil && (op.Kind == history.Submit || op.Kind == history.Delete) {
				for place := range f.steps { // they come and go with their parent
					asked[end{kind: k.kind, task: f.id + 1 + uint64(place)}] = true
				}
			}
		}
		if op.Outcome == history.Unknown {
			unknown[toldAs[op.Kind]+" "+op.Worker] = true
		}
	}
	acted := c.actedTypes(history.Delete)
	for i := range c.h.Trail {
		e := &c.h.Trail[i]
		k := end{kind: e.Kind, task: e.TaskID, token: e.Token}
		excused := false
		switch e.Kind {
		case "submitted":
			excused = c.h.Schedule != nil && e.Message == "schedule "+c.h.Schedule.Name || unknown["submitted "]
		case "claimed", "finalization_claimed", "finalized":
			excused = unknown[e.Kind+" "+e.Worker]
			if e.Kind == "finalized" {
				excused = excused || c.finalizedBy(e)
			}
		case "failed":
			excused = c.families[e.TaskID] != nil || c.isHidden(e.TaskID) || c.told[end{"lease_expired", e.TaskID, e.Token}] != nil
		case "released": // a claim whose caller has gone is given back
			excused = !asked[end{"claimed", e.TaskID, e.Token}]
		case "deleted":
			k.token = 0
			kind := c.kindOf(e.TaskID)
			excused = acted[kind] || kind == "" && len(acted) > 0 || c.ofHidden(e.TaskID) // with its parent
		case "completed":
			excused = c.families[e.TaskID] != nil || c.isHidden(e.TaskID) // finalized, then: that is looked at
		default:
			continue
		}
		if !excused && !asked[k] {
			c.Violate(RuleTrailUnasked, e.TaskID, nil, "nobody asked for it, or it was refused: %s", tell(e))
		}
	}
}

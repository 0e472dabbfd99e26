package check

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// toldAs maps calls to events that the trail has at most once.
var toldAs = map[history.Kind]string{
	history.Submit: "submitted", history.Claim: "claimed", history.ClaimTask: "claimed", history.Complete: "completed",
	history.Fail: "failed", history.Release: "released", history.Delete: "deleted", history.ClaimFinalization: "finalization_claimed",
}

// eventOf names the event of the call that the trail has at most once. ok is false if there may be
// no event.
func eventOf(op *history.Op) (k end, ok bool) {
	k = end{toldAs[op.Kind], op.TaskID, op.Token}
	if op.Kind == history.Submit || op.Kind == history.Delete {
		k.token = 0
		return k, op.TaskID != 0
	}
	return k, k.kind != "" && op.TaskID != 0 && op.Token != 0
}

// checkAnswers looks for the event of each acknowledged call.
func (c *trailChecker) checkAnswers() {
	done := map[deed]bool{}
	for _, d := range c.deeds {
		done[deed{action: d.action, task: d.task, index: d.index}] = true
	}
	for i, op := range c.took() {
		if op.Outcome != history.OK {
			continue
		}
		switch k, ok := eventOf(op); {
		case ok:
			c.answers++
			c.checkAnswer(i, op, c.told[k], k.token != 0)
		case op.Kind == history.AddSteps && !op.Repeated:
			c.answers++
			c.checkAdded(i, op)
		case op.Kind == history.Finalize && op.Done:
			c.answers++
			c.checkFinalized(i, op)
		case op.Repeated || c.known(op.TaskID).parent: // for a running parent the steps have the events
		case op.Kind == history.Cancel, op.Kind == history.Retry && (op.Seen == nil || op.Seen.Status != statusCancelled):
			c.answers++
			if !done[deed{action: op.Kind, task: op.TaskID, index: op.Index}] {
				c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged at index %d, and the trail has no such event there", op.Index)
			}
		}
	}
}

// checkAdded looks for the event of a call that added steps to a parent.
func (c *trailChecker) checkAdded(i int, op *history.Op) {
	p := c.lives[op.Added.ParentID]
	if p == nil || !slices.ContainsFunc(p.grew, func(e *history.Told) bool {
		return e.Token == op.Token && e.Worker == op.Worker && (op.Index == 0 || op.Index == e.Index)
	}) {
		c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged at index %d, and the trail has no such event there", op.Index)
	}
}

// checkAnswer compares an answer with its event. byClaim says that it names a claim.
func (c *trailChecker) checkAnswer(i int, op *history.Op, e *history.Told, byClaim bool) {
	switch {
	case e == nil:
		c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged, and the trail has no such event")
	case e.Worker != op.Worker && byClaim:
		c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged to %s, and the trail says %s", op.Worker, tell(e))
	case op.Index != 0 && op.Index != e.Index && did(op):
		c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged at index %d, and the trail says %s", op.Index, tell(e))
	case op.Index != 0 && op.Index < e.Index:
		c.Violate(RuleTrailAcked, op.TaskID, []int{i}, "acknowledged at index %d, before %s", op.Index, tell(e))
	}
}

// did reports whether the answer says that this call, and not an earlier one, took effect.
func did(op *history.Op) bool {
	return op.Kind == history.Submit && op.Created || op.Kind != history.Submit && !op.Repeated
}

// checkUnasked looks for events without a call, or all of whose calls were refused.
func (c *trailChecker) checkUnasked() {
	asked := map[end]bool{}
	unknown := map[string]bool{} // kinds with an unknown outcome, with the worker
	adds := map[uint64]bool{}    // tokens of claims that may have added steps
	deleted := map[string]bool{} // types whose tasks a call may have deleted all at once
	for _, op := range c.took() {
		if k, ok := eventOf(op); ok {
			asked[k] = true
			if k.token == 0 {
				t := c.known(op.TaskID)
				for place := range t.steps() { // they are submitted and deleted with their parent
					asked[end{kind: k.kind, task: t.stepID(place)}] = true
				}
			}
		}
		if op.Kind == history.Act && op.Action == string(history.Delete) {
			deleted[op.TaskType] = true
		}
		if op.Kind == history.AddSteps {
			adds[op.Token] = true
		}
		if op.Added != nil {
			for _, id := range op.Added.IDs {
				asked[end{kind: "submitted", task: id}] = true
			}
		}
		if op.Outcome == history.Unknown {
			unknown[toldAs[op.Kind]+" "+op.Worker] = true
		}
	}
	for i := range c.trail {
		e := &c.trail[i]
		k, t := end{e.Kind, e.TaskID, e.Token}, c.known(e.TaskID)
		excused := false
		switch e.Kind {
		case "submitted":
			excused = e.Message == "schedule "+history.Tick || unknown["submitted "] || len(c.hiddenAdds) > 0
		case "steps_added":
			excused = adds[e.Token]
		case "claimed", "finalization_claimed":
			excused = unknown[e.Kind+" "+e.Worker]
		case "finalized":
			excused = c.finalizedBy(e)
		case "failed":
			excused = t.parent || c.expired(e)
		case "released": // the leader gives back a claim whose caller has gone
			excused = !asked[end{"claimed", e.TaskID, e.Token}]
		case "deleted":
			k.token = 0
			excused = deleted[t.kind] || t.kind == "" && len(deleted) > 0 || c.ofHidden(t) // with its parent
		case "completed":
			excused = t.parent // it was finalized, which is checked elsewhere
		default:
			continue
		}
		if !excused && !asked[k] {
			c.fails(RuleTrailUnasked, e, "nobody asked for it, or it was refused")
		}
	}
	for _, d := range c.deeds {
		if t := c.known(d.task); d.action != history.Delete && !t.isStep() && t.kind != "" && !c.mayHave(t, d.action) {
			c.fails(RuleTrailUnasked, d.told, "nobody asked for it, or it was refused")
		}
	}
}

// expired reports whether the task of the event failed because its lease expired.
func (c *trailChecker) expired(e *history.Told) bool {
	return e.Kind == "failed" && c.told[end{"lease_expired", e.TaskID, e.Token}] != nil
}

// checkWhole checks that the parts of an atomic call were applied in one entry or
// not, with any answer. Another rule checks that a refused call did nothing.
func (c *trailChecker) checkWhole() {
	asked := map[end]requests{}
	for _, op := range c.took() {
		if k, ok := eventOf(op); ok {
			r := asked[k]
			r.times++
			r.alone = r.alone || !op.Whole
			asked[k] = r
		}
	}
	var call []int
	for i, op := range c.took() {
		if len(call) > 0 && madeBy(&c.ops[call[0]]) != madeBy(op) {
			c.checkParts(call, asked)
			call = nil
		}
		if op.Whole {
			call = append(call, i)
		}
	}
	c.checkParts(call, asked)
}

// requests are those for one event.
type requests struct {
	times int
	alone bool // one of them was no part of an atomic call
}

// checkParts checks the ops of one atomic call.
func (c *trailChecker) checkParts(ops []int, requested map[end]requests) {
	var first *history.Told
	missing, unnamed := -1, 0 // a part without an event; how many of such parts are submits
	for _, i := range ops {
		asked := c.ops[i]
		if k := c.keys[asked.Key]; asked.TaskID == 0 && k != nil {
			for id := range k.seen {
				asked.TaskID = max(asked.TaskID, id)
			}
		}
		k, ok := eventOf(&asked)
		e := c.told[k]
		if e != nil && c.expired(e) {
			e = nil // caused by another call
		}
		unsure := asked.Outcome == history.Unknown
		switch {
		case !ok && asked.Kind != history.Submit:
		case unsure && requested[k].alone, asked.Repeated && requested[k].times > 1: // another call may have done it
		case e == nil && unsure && c.final != nil:
			missing = i
			if asked.TaskID == 0 {
				unnamed++
			}
		case e == nil: // other rules report a missing event
		case first == nil:
			first = e
		case first.Index != e.Index:
			c.Violate(RuleTrailWhole, e.TaskID, []int{i}, "one step, and the trail has it in two entries: %s and %s", tell(first), tell(e))
		}
	}
	if first != nil && missing >= 0 && (c.ops[missing].TaskID != 0 || c.submittedUnnamed(first.Index) < unnamed) {
		c.Violate(RuleTrailWhole, first.TaskID, ops, "one step, and the trail has it in part: %s, but not the %s", tell(first), c.ops[missing].Kind)
	}
}

// submittedUnnamed returns how many tasks the entry submitted whose keys no answer shows, because
// they were soon deleted. Each may come from any submit of unknown outcome.
func (c *trailChecker) submittedUnnamed(index uint64) int {
	count := 0
	from, _ := slices.BinarySearchFunc(c.trail, index, func(e history.Told, index uint64) int { return cmp.Compare(e.Index, index) })
	for _, e := range c.trail[from:] {
		if e.Index != index {
			break
		}
		if e.Kind == "submitted" && c.known(e.TaskID).key == "" {
			count++
		}
	}
	return count
}

package check

import (
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// processorEnds reports whether only a processor ends the parent: it does not end by
// itself, and nothing shows that it was cancelled.
func (c *checker) processorEnds(t *task) bool {
	if t.plan != nil && !t.plan.ByClaim {
		return false
	}
	return !slices.ContainsFunc(t.ops, func(i int) bool {
		op := &c.h.Ops[i]
		return op.Outcome == history.OK && (op.Action == statusCancelled || op.State == statusCancelled)
	})
}

// checkFinalizations checks that tokens of a parent's finalization grow, and that nobody
// ended the parent while another one certainly had it, or with an older token.
func (c *checker) checkFinalizations(t *task, holds []*hold) {
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		claimed, ended := op.Kind == history.ClaimFinalization && claims(op), op.Kind == history.Finalize && op.Outcome == history.OK && op.Done
		for _, h := range holds {
			switch {
			case claimed && h.ret < op.Call && h.token > op.Token:
				c.violate(RuleTokenOrder, t.id, []int{h.op, i}, "task %d: token %d was handed out by a claim made after token %d had been answered; tokens must grow", t.id, op.Token, h.token)
			case ended && h.worker != op.Worker && h.ret <= op.Call && op.Return < h.until():
				c.violate(RuleFinalizers, t.id, []int{h.op, i}, "task %d: %s finalized it, although %s held token %d until %s at least", t.id, op.Worker, h.worker, h.token, clock(h.until()))
			case ended && op.Token != 0 && h.ret < op.Call && h.token > op.Token:
				c.violate(RuleFinalizers, t.id, []int{h.op, i}, "task %d was finalized with token %d after token %d had been handed out to %s", t.id, op.Token, h.token, h.worker)
			}
		}
	}
}

package check

import (
	"cmp"
	"maps"
	"slices"
)

// checkTokens checks that a token is in the answers of one claim only.
func (c *checker) checkTokens() {
	type use struct {
		task uint64
		*claim
	}
	first := map[uint64]use{}
	for _, id := range c.ids {
		t := c.tasks[id]
		for i := range t.claims {
			cl := &t.claims[i]
			if before, ok := first[cl.token]; ok {
				c.violate(RuleTokenReused, id, []int{before.op, cl.op},
					"token %d was handed out twice: for task %d to %s (request %q) and for task %d to %s (request %q)",
					cl.token, before.task, before.worker, before.request, id, cl.worker, cl.request)
				continue
			}
			first[cl.token] = use{id, cl}
		}
	}
}

// checkRepeats checks that every answer to one claim_request_id names the
// same tasks and tokens, and that one worker used it.
func (c *checker) checkRepeats() {
	type taken struct{ task, token uint64 }
	for _, id := range slices.Sorted(maps.Keys(c.requests)) {
		r := c.requests[id]
		var first, answer []taken
		firstOp := -1
		for n, i := range r.answers {
			op := &c.h.Ops[i]
			answer = append(answer, taken{op.TaskID, op.Token})
			if n+1 < len(r.answers) {
				next := &c.h.Ops[r.answers[n+1]]
				if next.Process == op.Process && next.Call == op.Call {
					continue // the same answer goes on
				}
			}
			slices.SortFunc(answer, func(a, b taken) int { return cmp.Compare(a.token, b.token) })
			if firstOp < 0 {
				first, firstOp = answer, i
			} else if !slices.Equal(first, answer) {
				c.violate(RuleRepeat, op.TaskID, []int{firstOp, i},
					"claim request %q was answered with %v and, repeated, with %v (task and token)", id, first, answer)
			}
			answer = nil
		}
	}
}

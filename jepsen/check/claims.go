package check

import (
	"cmp"
	"maps"
	"slices"
)

// checkTokens checks that a token is in the answers of one claim only.
func (c *checker) checkTokens() {
	first := map[uint64]*claim{}
	for _, id := range c.ids {
		for i := range c.tasks[id].claims {
			cl := &c.tasks[id].claims[i]
			before := first[cl.token]
			if before == nil {
				first[cl.token] = cl
				continue
			}
			c.Violate(RuleTokenReused, id, []int{before.op, cl.op},
				"token %d was handed out twice: for task %d to %s (request %q) and for task %d to %s (request %q)",
				cl.token, before.task, before.worker, before.request, id, cl.worker, cl.request)
		}
	}
}

// checkRepeats checks that every answer to one claim_request_id names the
// same tasks and tokens.
func (c *checker) checkRepeats() {
	type taken struct{ task, token uint64 }
	for _, id := range slices.Sorted(maps.Keys(c.requests)) {
		answers := c.requests[id].answers
		var first, answer []taken
		for n, i := range answers {
			op := &c.ops[i]
			answer = append(answer, taken{op.TaskID, op.Token})
			if n+1 < len(answers) && madeBy(&c.ops[answers[n+1]]) == madeBy(op) {
				continue // the same answer goes on
			}
			slices.SortFunc(answer, func(a, b taken) int { return cmp.Compare(a.token, b.token) })
			if first == nil {
				first = answer
			} else if !slices.Equal(first, answer) {
				c.Violate(RuleRepeat, op.TaskID, []int{answers[0], i},
					"claim request %q was answered with %v and, repeated, with %v (task and token)", id, first, answer)
			}
			answer = nil
		}
	}
}

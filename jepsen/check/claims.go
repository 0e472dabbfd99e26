package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
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

// checkStepWaits checks that a step was not handed out before somebody had begun to complete
// each step that it depends on. The trail says so more exactly, if the run could be finished.
func (c *checker) checkStepWaits(t *task) {
	if t.parentID == 0 {
		return
	}
	parent := c.tasks[t.parentID]
	for _, on := range parent.plan.Steps[t.place].DependsOn {
		begun := int64(never)
		for _, op := range c.of(c.tasks[parent.id+1+uint64(on)], history.Complete) {
			begun = min(begun, op.Call)
		}
		for i := range t.claims {
			if cl := &t.claims[i]; cl.ret < begun {
				c.Violate(RuleStepEarly, t.id, []int{cl.op}, "task %d, step %s of task %d, was claimed by %s, and nobody had begun to complete step %s, which it depends on",
					t.id, parent.plan.Steps[t.place].Name, parent.id, clock(cl.ret), parent.plan.Steps[on].Name)
			}
		}
	}
}

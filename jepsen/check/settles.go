package check

import "github.com/claimq/claimq/jepsen/history"

// checkSettles checks that nothing was done with a token after a later one had
// been answered, and that the task was completed once.
func (c *checker) checkSettles(t *task) {
	latest := newHighest(t.claims)
	completed, completedNew := -1, -1
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if op.Outcome != history.OK {
			continue
		}
		switch op.Kind {
		case history.Complete, history.Fail, history.Extend, history.Release:
		default:
			continue
		}
		if newer := latest.before(op.Call); newer != nil && newer.token > op.Token && !op.Repeated {
			c.violate(RuleStaleSettle, t.id, []int{newer.op, i},
				"task %d: %s with token %d was acknowledged after token %d had been handed out to %s",
				t.id, op.Kind, op.Token, newer.token, newer.worker)
		}
		if op.Kind != history.Complete {
			continue
		}
		if completed >= 0 && c.h.Ops[completed].Token != op.Token {
			c.violate(RuleCompleted, t.id, []int{completed, i},
				"task %d was completed twice, with token %d and with token %d", t.id, c.h.Ops[completed].Token, op.Token)
		}
		completed = i
		if op.Repeated {
			continue
		}
		if completedNew >= 0 {
			c.violate(RuleCompleted, t.id, []int{completedNew, i},
				"task %d was completed twice: two answers say that they did it, neither is called repeated", t.id)
		}
		completedNew = i
	}
}

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

// checkTokenOrder checks that a claim that was called after another claim of
// the task had returned has the higher token.
func (c *checker) checkTokenOrder(t *task) {
	latest := newHighest(t.claims)
	for i := range t.claims {
		cl := &t.claims[i]
		if before := latest.before(cl.call); before != nil && before.token > cl.token {
			c.violate(RuleTokenOrder, t.id, []int{before.op, cl.op},
				"task %d: token %d was handed out by a claim made after token %d had been answered; tokens must grow", t.id, cl.token, before.token)
		}
	}
}

// highest answers which of a task's claims that had returned before a given
// time has the highest token.
type highest struct {
	byRet []*claim // by the time they returned
	best  []*claim // best[i] has the highest token of byRet[:i+1]
}

func newHighest(claims []claim) highest {
	var h highest
	for i := range claims {
		h.byRet = append(h.byRet, &claims[i])
	}
	slices.SortStableFunc(h.byRet, func(a, b *claim) int { return cmp.Compare(a.ret, b.ret) })
	for i, cl := range h.byRet {
		if i > 0 && h.best[i-1].token > cl.token {
			cl = h.best[i-1]
		}
		h.best = append(h.best, cl)
	}
	return h
}

// before returns the claim, nil if none had returned before the time.
func (h highest) before(at int64) *claim {
	n, _ := slices.BinarySearchFunc(h.byRet, at, func(cl *claim, at int64) int { return cmp.Compare(cl.ret, at) })
	if n == 0 {
		return nil
	}
	return h.best[n-1]
}

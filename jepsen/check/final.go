package check

import "github.com/claimq/claimq/jepsen/history"

// checkFinal checks that all has ended, and how often each task was claimed. What the
// state at the end has is a last read, for the search.
func (c *checker) checkFinal() {
	if c.h.Final == nil {
		if c.drained {
			c.violate(RuleMalformed, 0, nil, "the run is said to be drained, and the final state was not read")
		}
		return
	}
	for _, id := range c.ids {
		t := c.tasks[id]
		if t.final == nil {
			continue
		}
		if c.drained && !hasEnded(t.final.Status) {
			c.violate(RuleUnfinished, id, t.ops, "task %d is %s at the end, though the queue was drained", id, t.final.Status)
		}
		if !t.parent {
			c.checkFinalAttempts(t)
		}
	}
}

// checkFinalAttempts checks the count of attempts at the end: one for each
// claim, but for those that were released. Claims that nobody saw may add to
// it, in all tasks together as many as there were.
func (c *checker) checkFinalAttempts(t *task) {
	low, high := c.attempts(t)
	got := int(t.final.Attempts)
	c.hiddenUsed += max(got-high, 0)
	if got < low || c.hiddenUsed > c.hiddenClaims {
		c.violate(RuleAttempts, t.id, t.ops, "task %d counts %d attempts at the end; its %d claims make at least %d and at most %d (%d claims of all tasks may be unseen)",
			t.id, got, len(t.claims), low, high, c.hiddenClaims)
	}
}

// attempts returns how many attempts the claims of t that were seen make: a
// release of unknown outcome may have taken one off.
func (x *index) attempts(t *task) (low, high int) {
	released, maybeReleased := map[uint64]bool{}, map[uint64]bool{}
	for _, i := range t.ops {
		op := &x.h.Ops[i]
		switch {
		case op.Kind == history.Release && op.Outcome == history.OK:
			released[op.Token] = true
		case op.Kind == history.Release && op.Outcome == history.Unknown:
			maybeReleased[op.Token] = true
		}
	}
	for token := range released {
		delete(maybeReleased, token)
	}
	high = len(t.claims) - len(released)
	return high - len(maybeReleased), high
}

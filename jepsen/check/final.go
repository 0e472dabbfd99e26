package check

import "github.com/claimq/claimq/jepsen/history"

// checkFinal checks the state at the end against what was acknowledged.
func (c *checker) checkFinal() {
	if c.h.Final == nil {
		if c.opts.Drained {
			c.violate(RuleMalformed, 0, nil, "the run is said to be drained, and the final state was not read")
		}
		return
	}
	for _, id := range c.ids {
		t := c.tasks[id]
		if t.final == nil {
			c.checkMissing(t)
			continue
		}
		if c.opts.Drained && !hasEnded(t.final.Status) {
			c.violate(RuleUnfinished, id, t.ops, "task %d is %s at the end, though the queue was drained", id, t.final.Status)
		}
		c.checkFinalComplete(t)
		c.checkFinalAttempts(t)
	}
}

// checkMissing checks a task that the final state does not have.
func (c *checker) checkMissing(t *task) {
	if c.mayBeDeleted(t.id) {
		return
	}
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if op.Outcome == history.OK && (op.Kind != history.Get || op.Seen.Status != "") {
			c.violate(RuleLost, t.id, []int{i}, "task %d is lost: its %s was acknowledged, and the final state does not have it", t.id, op.Kind)
			return
		}
	}
}

// checkFinalComplete checks that an acknowledged complete is what the task
// ended with, and that a completed task was completed by somebody.
func (c *checker) checkFinalComplete(t *task) {
	f := t.final
	var asked []int // completes that may have been it
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if op.Kind != history.Complete || op.Outcome == history.Failed {
			continue
		}
		if op.Token == f.Token {
			asked = append(asked, i)
		}
		if op.Outcome != history.OK {
			continue
		}
		switch {
		case f.Status != statusCompleted:
			c.violate(RuleLost, t.id, []int{i}, "task %d: an acknowledged complete is lost: the final state says %s", t.id, f.Status)
		case f.Token != op.Token:
			c.violate(RuleLost, t.id, []int{i}, "task %d: the complete with token %d was acknowledged, and the final state says that token %d completed it", t.id, op.Token, f.Token)
		case !op.Repeated && op.Result != "" && f.Result != "" && f.Result != op.Result:
			c.violate(RuleLost, t.id, []int{i}, "task %d: the acknowledged result is %s, the final state has %s", t.id, op.Result, f.Result)
		}
	}
	if f.Status == statusCompleted && len(asked) == 0 && t.plan == nil { // checkParents looks at parents
		c.violate(RuleCompleted, t.id, t.ops, "task %d is completed with token %d at the end, and nobody asked for that", t.id, f.Token)
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
func (c *checker) attempts(t *task) (low, high int) {
	released, maybeReleased := map[uint64]bool{}, map[uint64]bool{}
	for _, i := range t.ops {
		op := &c.h.Ops[i]
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

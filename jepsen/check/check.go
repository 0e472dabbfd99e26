package check

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// checker is one run of the rules of what was answered.
type checker struct {
	*index
	Part
}

// Parts checks h by all that it has. drained says that workers went on until nothing was
// left: every task must have ended.
func Parts(h *history.History, drained bool) []Part {
	x := newIndex(h)
	parts := []Part{checkAnswers(h, x, drained).Part, checkLog(x).Part}
	if h.Trail != nil {
		parts = append(parts, checkTrail(x).Part)
	}
	if h.Run != nil {
		parts = append(parts, checkLate(h, x), recovery(h), equality(h), processes(h))
		if h.Run.Neighbours != nil {
			parts = append(parts, readers(h), tenants(h))
		}
	}
	return parts
}

// checkAnswers checks all but that the calls about each task have an order.
func checkAnswers(h *history.History, x *index, drained bool) *checker {
	c := &checker{index: x}
	c.Name = "history"
	c.checkKeys()
	c.checkUnsubmitted()
	c.checkSent()
	c.checkRepeats()
	for _, id := range c.ids {
		t := c.tasks[id]
		c.checkLeases(t)
		c.checkDelays(t)
		c.checkWaits(t)
		if f := t.final; drained && f != nil && !hasEnded(f.Status) && !c.mayBeNew(t) {
			c.Violate(RuleUnfinished, id, t.ops, "task %d is %s at the end, though the queue was drained", id, f.Status)
		}
	}
	c.Summary = fmt.Sprintf("%d calls (%d of unknown outcome) on %d tasks", len(h.Ops), h.UnknownCount(), len(c.tasks))
	return c
}

// mayBeNew reports whether the task, which is there at the end, may have come after it was seen
// that none was left to do: the outcome of all calls that submit it is unknown, and nobody was
// told of it. Had it come before, the drain would not have ended.
func (c *checker) mayBeNew(t *task) bool {
	return t.submit != nil && t.submit.acked < 0 && t.final.Attempts == 0 && t.final.Token == 0 &&
		!slices.ContainsFunc(t.ops, func(i int) bool { return c.ops[i].Outcome == history.OK })
}

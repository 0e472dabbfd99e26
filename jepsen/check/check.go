package check

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// checker applies the rules for answers to one history.
type checker struct {
	*index
	Part
}

// Parts checks h by every rule that it has data for. drained says that workers continued until no
// task was left, so that every task must have ended.
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

// checkAnswers applies every rule except the search for an order of each task's calls.
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

// mayBeNew reports whether the task, which exists at the end, may have been submitted after the
// drain saw no task left. That is possible if every call that submits it has an unknown outcome:
// had it been there before, the drain would have gone on.
func (c *checker) mayBeNew(t *task) bool {
	return t.submit != nil && t.submit.acked < 0 && t.final.Attempts == 0 && t.final.Token == 0 &&
		!slices.ContainsFunc(t.ops, func(i int) bool { return c.ops[i].Outcome == history.OK })
}

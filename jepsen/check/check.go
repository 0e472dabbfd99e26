package check

import (
	"fmt"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Options say what is known of the run beside its history.
type Options struct {
	// Drained says that workers went on until nothing was left: every task must
	// have ended.
	Drained bool
}

// Report is what Check found.
type Report struct {
	Part
	Ops int // that were looked at

	history *history.History
}

// String says what was found, each violation with the calls it is about.
func (r Report) String() string {
	verdict := "passes"
	if !r.OK() {
		verdict = "FAILS"
	}
	return fmt.Sprintf("history %s: %s, %d violations, %d tasks undecided\n", verdict, r.Summary, r.ViolationCount, len(r.Undecided)) + r.Found(r.history)
}

// checker is one run of the rules of what was answered.
type checker struct {
	*index
	Part
	drained bool
}

// Check checks what was answered, by the times of the calls. It keeps no reference to
// h but in the report.
func Check(h *history.History, opts Options) Report {
	c := checkAnswers(h, opts)
	if c.index != nil {
		c.checkOrders(c.index, RuleLinearizable, "")
	}
	c.Name = ""
	return Report{Part: c.Part, Ops: len(h.Ops), history: h}
}

// Parts checks h by all that it has. The answers about a task are held against the log
// indexes that they carry instead of the times of the calls.
func Parts(h *history.History, opts Options) []Part {
	c := checkAnswers(h, opts)
	parts := []Part{c.Part}
	if c.index != nil {
		parts = append(parts, checkLog(c.index).Part)
		if len(h.Trail) > 0 {
			parts = append(parts, checkTrail(c.index).Part)
		}
	}
	return parts
}

// checkAnswers checks all but that the calls about each task have an order. Its index is
// nil if h has not the form that the rest relies on.
func checkAnswers(h *history.History, opts Options) *checker {
	started := time.Now()
	c := &checker{drained: opts.Drained}
	c.Name = "history"
	c.checkForm(h.Ops)
	if opts.Drained && h.Final == nil {
		c.Violate(RuleMalformed, 0, nil, "the run is said to be drained, and the final state was not read")
	}
	if !c.OK() {
		return c
	}
	c.index = newIndex(h)
	c.checkKeys()
	c.checkUnsubmitted()
	c.checkTokens()
	c.checkRepeats()
	for _, id := range c.ids {
		t := c.tasks[id]
		c.checkLeases(t)
		c.checkStepWaits(t)
		c.checkDelays(t)
		c.checkWaits(t)
		c.checkFinal(t)
	}
	c.Summary = fmt.Sprintf("%d calls (%d of unknown outcome) on %d tasks, in %v",
		len(h.Ops), h.UnknownCount(), len(c.tasks), time.Since(started).Round(time.Millisecond))
	return c
}

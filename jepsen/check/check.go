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
	Ops, Unknown, Tasks int
	Elapsed             time.Duration

	history *history.History
}

// String says what was found, each violation with the calls it is about.
func (r Report) String() string {
	verdict := "passes"
	if !r.OK() {
		verdict = "FAILS"
	}
	return fmt.Sprintf("history %s: %d calls (%d with unknown outcome) on %d tasks, %d violations, %d tasks undecided, checked in %v\n",
		verdict, r.Ops, r.Unknown, r.Tasks, r.ViolationCount, len(r.Undecided), r.Elapsed.Round(time.Millisecond)) + r.Found(r.history)
}

// checker is one run of the rules of what was answered.
type checker struct {
	*index
	Part
	drained bool
	// broken are the tasks that a rule has already found something about; the
	// search for an order would only say it again.
	broken map[uint64]bool
	// hiddenUsed counts the unseen claims that the state at the end shows.
	hiddenUsed int
}

// Check checks what was answered, by the times of the calls. It keeps no reference to
// h but in the report.
func Check(h *history.History, opts Options) Report {
	started := time.Now()
	c := &checker{drained: opts.Drained, broken: map[uint64]bool{}}
	if c.checkRules(h) {
		c.checkOrders(c.index, c.broken, RuleLinearizable, "")
	}
	return c.report(h, started)
}

// Parts checks h by all that it has. The answers about a task are held against the log
// indexes that they carry instead of the times of the calls.
func Parts(h *history.History, opts Options) []Part {
	started := time.Now()
	c := &checker{drained: opts.Drained, broken: map[uint64]bool{}}
	formed := c.checkRules(h)
	r := c.report(h, started)
	c.Name = "history"
	c.Summary = fmt.Sprintf("%d calls (%d of unknown outcome) on %d tasks, in %v", r.Ops, r.Unknown, r.Tasks, r.Elapsed.Round(time.Millisecond))
	parts := []Part{c.Part}
	if formed {
		parts = append(parts, checkLog(c.index).Part)
	}
	if formed && len(h.Trail) > 0 {
		parts = append(parts, checkTrail(c.index).Part)
	}
	return parts
}

func (c *checker) report(h *history.History, started time.Time) Report {
	r := Report{Part: c.Part, Ops: len(h.Ops), Unknown: h.UnknownCount(), Elapsed: time.Since(started), history: h}
	if c.index != nil {
		r.Tasks = len(c.tasks)
	}
	return r
}

// checkRules checks all but that the calls about each task have an order. formed is
// false if h has not the form that the rest relies on.
func (c *checker) checkRules(h *history.History) (formed bool) {
	c.checkForm(h)
	if c.ViolationCount > 0 {
		return false
	}
	c.index = newIndex(h)
	c.checkKeys()
	c.checkUnsubmitted()
	c.checkTokens()
	c.checkRepeats()
	for _, id := range c.ids {
		c.checkLeases(c.tasks[id])
		c.checkWaits(c.tasks[id])
	}
	c.checkTogether()
	c.checkWhole()
	c.checkDelays()
	c.checkParents()
	c.checkFinal()
	return true
}

// violate notes a violation by ops.
func (c *checker) violate(rule Rule, taskID uint64, ops []int, format string, args ...any) {
	if taskID != 0 {
		c.broken[taskID] = true
	}
	c.Violate(rule, taskID, ops, format, args...)
}

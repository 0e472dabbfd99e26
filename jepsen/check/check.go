package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Options say what is known of the run beside its history.
type Options struct {
	// Drained says that workers went on until nothing was left: every task must
	// have ended.
	Drained bool
	// TaskTimeout bounds the search for an order of one task's calls. 0 = 10 s.
	// A task whose search runs out is undecided, which is not a pass.
	TaskTimeout time.Duration
	// ViolationsMax bounds the violations kept. 0 = 100. All are counted.
	ViolationsMax int
}

const (
	defaultTaskTimeout   = 10 * time.Second
	defaultViolationsMax = 100
)

// Rule names what a violation broke.
type Rule string

// The rules.
const (
	RuleMalformed    Rule = "malformed"     // the history itself cannot be
	RuleKey          Rule = "key"           // one key, one task
	RuleUnsubmitted  Rule = "unsubmitted"   // a task that nobody submitted
	RuleTokenReused  Rule = "token-reused"  // one token, two claims
	RuleTokenOrder   Rule = "token-order"   // tokens grow in real time
	RuleRepeat       Rule = "repeat"        // a repeat gets the first answer
	RuleOverlap      Rule = "overlap"       // claims of one task do not overlap
	RuleGroup        Rule = "group"         // claims of one group do not overlap
	RuleLimit        Rule = "max-claimed"   // no more claims of a type live than it allows
	RuleLeaseEarly   Rule = "lease-early"   // a lease never ends early
	RuleDelay        Rule = "delay-early"   // no claim before the task's time
	RuleStaleSettle  Rule = "stale-settle"  // a stale token never changes a task
	RuleCompleted    Rule = "completed"     // one complete per task
	RuleStaleRead    Rule = "stale-read"    // reads are linearizable
	RuleWait         Rule = "wait-early"    // a read that waits does, or shows the end
	RuleLost         Rule = "lost"          // nothing acknowledged is missing
	RuleUnfinished   Rule = "unfinished"    // after draining, all have ended
	RuleAttempts     Rule = "attempts"      // attempts count the claims
	RuleLinearizable Rule = "linearization" // some order explains the answers
	RuleWhole        Rule = "whole"         // what is one step is done whole or not at all
	RuleStepEarly    Rule = "step-early"    // a step waits for what it depends on
	RuleParentEnd    Rule = "parent-end"    // a parent ends after its steps, as they make it, and never changes then
	RuleFinalizers   Rule = "finalizers"    // one processor at a time has a parent
	RuleFinalized    Rule = "finalized"     // one call ends a parent, and all are told the same
)

// Violation is one thing that a correct queue would not have answered.
type Violation struct {
	Rule Rule
	Task uint64 // 0 = none in particular
	Text string
	Ops  []int // indexes into the history's ops
}

// Report is what Check found.
type Report struct {
	Ops, Unknown, Tasks int
	// Violations are the first of ViolationCount, in the order of the rules.
	Violations     []Violation
	ViolationCount int
	// Undecided are the tasks whose search for an order ran out of time.
	Undecided []uint64
	Elapsed   time.Duration

	history *history.History
}

// OK reports whether the history passes.
func (r Report) OK() bool { return r.ViolationCount == 0 && len(r.Undecided) == 0 }

// String says what was found, each violation with the calls it is about.
func (r Report) String() string {
	var b strings.Builder
	verdict := "passes"
	if !r.OK() {
		verdict = "FAILS"
	}
	fmt.Fprintf(&b, "history %s: %d calls (%d with unknown outcome) on %d tasks, %d violations, %d tasks undecided, checked in %v\n",
		verdict, r.Ops, r.Unknown, r.Tasks, r.ViolationCount, len(r.Undecided), r.Elapsed.Round(time.Millisecond))
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\n[%s] %s\n", v.Rule, v.Text)
		for _, i := range v.Ops {
			fmt.Fprintf(&b, "    #%d %s\n", i, describe(&r.history.Ops[i]))
		}
	}
	if more := r.ViolationCount - len(r.Violations); more > 0 {
		fmt.Fprintf(&b, "\n... and %d more\n", more)
	}
	if len(r.Undecided) > 0 {
		fmt.Fprintf(&b, "\nundecided tasks: %v\n", r.Undecided)
	}
	return b.String()
}

// checker is one run of Check.
type checker struct {
	*index
	opts   Options
	report Report
	// broken are the tasks that a rule has already found something about; the
	// search for an order would only say it again.
	broken map[uint64]bool
	// hiddenUsed counts the unseen claims that the state at the end shows.
	hiddenUsed int
}

// Check checks h. It keeps no reference to h but in the report.
func Check(h *history.History, opts Options) Report {
	started := time.Now()
	c := newChecker(h, opts)
	c.checkForm(h)
	if c.report.ViolationCount == 0 { // the rest relies on the form
		c.index = newIndex(h)
		c.report.Tasks = len(c.tasks)
		c.checkKeys()
		c.checkUnsubmitted()
		c.checkTokens()
		c.checkRepeats()
		for _, id := range c.ids {
			c.checkTask(c.tasks[id])
		}
		c.checkTogether()
		c.checkWhole()
		c.checkDelays()
		c.checkParents()
		c.checkFinal()
		c.checkLinearizable()
	}
	c.report.Elapsed = time.Since(started)
	return c.report
}

// checkTask checks the rules that look at one task.
func (c *checker) checkTask(t *task) {
	c.checkTokenOrder(t)
	c.checkLeases(t)
	c.checkSettles(t)
	c.checkReads(t)
}

// violate notes a violation by ops.
func (c *checker) violate(rule Rule, taskID uint64, ops []int, format string, args ...any) {
	c.report.ViolationCount++
	if taskID != 0 {
		c.broken[taskID] = true
	}
	if len(c.report.Violations) < c.opts.ViolationsMax {
		ops = slices.Clone(ops)
		slices.Sort(ops)
		c.report.Violations = append(c.report.Violations,
			Violation{Rule: rule, Task: taskID, Text: fmt.Sprintf(format, args...), Ops: slices.Compact(ops)})
	}
}

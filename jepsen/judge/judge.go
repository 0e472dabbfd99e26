package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// Rules of this package.
const (
	RuleRecovery   check.Rule = "recovery"    // the cluster recovers in time
	RuleEqual      check.Rule = "equal"       // all nodes hold the same
	RuleTrailEqual check.Rule = "trail-equal" // and tell the same trail
	RuleExit       check.Rule = "exit"        // no process ends by itself
	RuleBounds     check.Rule = "bounds"      // memory, files and goroutines are bounded
	RuleInternal   check.Rule = "internal"    // no answer is a bug's
)

// Verdict is what was found in a run.
type Verdict struct {
	Parts   []check.Part
	Elapsed time.Duration

	history *history.History
}

// OK reports whether the run passes.
func (v Verdict) OK() bool {
	return !slices.ContainsFunc(v.Parts, func(p check.Part) bool { return !p.OK() })
}

// Judge judges h.
func Judge(h *history.History) Verdict {
	started := time.Now()
	v := Verdict{history: h}
	drained := (h.Run == nil || h.Run.Drained) && h.Final != nil // else the run could not be finished
	v.Parts = check.Parts(h, drained)
	if h.Run != nil {
		v.Parts = append(v.Parts, recovery(h), equality(h), processes(h))
	}
	v.Elapsed = time.Since(started)
	return v
}

// String says what was found, each violation with the calls it is about.
func (v Verdict) String() string {
	var b strings.Builder
	for _, p := range v.Parts {
		mark := "ok  "
		if !p.OK() {
			mark = "FAIL"
		}
		fmt.Fprintf(&b, "%s %-9s %s\n", mark, p.Name, p.Summary)
	}
	for _, p := range v.Parts {
		b.WriteString(p.Found(v.history))
	}
	verdict := "the run passes"
	if !v.OK() {
		verdict = "THE RUN FAILS"
	}
	fmt.Fprintf(&b, "%s (judged in %v)\n", verdict, v.Elapsed.Round(time.Millisecond))
	return b.String()
}

// First returns the first rule that was broken, in the order of the parts, and
// the part. ok is false if nothing was found.
func (v Verdict) First() (part string, rule check.Rule, ok bool) {
	for _, p := range v.Parts {
		if len(p.Violations) > 0 {
			return p.Name, p.Violations[0].Rule, true
		}
	}
	return "", "", false
}

// CaughtAfter returns when the calls had returned that show the first thing that can be
// seen of what was found: the run's end if no calls do.
func (v Verdict) CaughtAfter() time.Duration {
	first := end(v.history)
	for _, p := range v.Parts {
		for _, found := range p.Violations {
			shown := time.Duration(0)
			for _, i := range found.Ops {
				shown = max(shown, time.Duration(v.history.Ops[i].Return))
			}
			if len(found.Ops) > 0 {
				first = min(first, shown)
			}
		}
	}
	return first
}

// end returns when the last call returned.
func end(h *history.History) time.Duration {
	last := int64(0)
	for i := range h.Ops {
		last = max(last, h.Ops[i].Return)
	}
	return time.Duration(last)
}

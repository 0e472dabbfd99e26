package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Verdict is the result of all checks of a run.
type Verdict struct {
	Parts   []Part
	Elapsed time.Duration

	history *history.History
}

// OK reports whether the run passes.
func (v Verdict) OK() bool {
	return !slices.ContainsFunc(v.Parts, func(p Part) bool { return !p.OK() })
}

// Judge applies all checks to h.
func Judge(h *history.History) Verdict {
	started := time.Now()
	v := Verdict{history: h}
	drained := (h.Run == nil || h.Run.Drained) && h.Final != nil // otherwise the run could not finish
	v.Parts = Parts(h, drained)
	v.Elapsed = time.Since(started)
	return v
}

// String lists the violations, each with its calls.
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

// First returns the first broken rule in the order of the parts, its part, and when the calls that
// show it had returned (the end of the run if there are no such calls). ok is false if no rule was
// broken.
func (v Verdict) First() (part string, rule Rule, shown time.Duration, ok bool) {
	for _, p := range v.Parts {
		if len(p.Violations) == 0 {
			continue
		}
		found := p.Violations[0]
		shown = time.Duration(found.At)
		for _, i := range found.Ops {
			shown = max(shown, time.Duration(v.history.Ops[i].Return))
		}
		return p.Name, found.Rule, cmp.Or(shown, lastReturn(v.history)), true
	}
	return "", "", 0, false
}

// lastReturn returns the time of the last return.
func lastReturn(h *history.History) time.Duration {
	last := int64(0)
	for i := range h.Ops {
		last = max(last, h.Ops[i].Return)
	}
	return time.Duration(last)
}

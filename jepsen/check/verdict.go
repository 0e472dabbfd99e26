package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Verdict is what was found in a run.
type Verdict struct {
	Parts   []Part
	Elapsed time.Duration

	history *history.History
}

// OK reports whether the run passes.
func (v Verdict) OK() bool {
	return !slices.ContainsFunc(v.Parts, func(p Part) bool { return !p.OK() })
}

// Judge judges h.
func Judge(h *history.History) Verdict {
	started := time.Now()
	v := Verdict{history: h}
	drained := (h.Run == nil || h.Run.Drained) && h.Final != nil // else the run could not be finished
	v.Parts = Parts(h, drained)
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

// First returns the first rule that was broken, in the order of the parts, the part, and when
// the calls had returned that show it: the run's end if no calls do. ok is false if nothing was
// found.
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

// lastReturn returns when the last call returned.
func lastReturn(h *history.History) time.Duration {
	last := int64(0)
	for i := range h.Ops {
		last = max(last, h.Ops[i].Return)
	}
	return time.Duration(last)
}

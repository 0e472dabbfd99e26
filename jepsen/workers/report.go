package workers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claimq/claimq/jepsen/check"
)

// The rules.
const (
	ruleHolders  check.Rule = "two holders"         // once a handler holds a task, none with an older token finds that it does
	ruleDeadline check.Rule = "deadline"            // no claim counts as held after the end of its lease
	ruleHandler  check.Rule = "one handler"         // every handler has a separate claim, and tokens increase
	ruleSettled  check.Rule = "settled as returned" // a claim ends as its handler returned, or expires
	ruleOnce     check.Rule = "once"                // every task ends exactly once, as intended
	ruleEffect   check.Rule = "effect"              // the last write was by the claim that completed the task
	ruleStop     check.Rule = "stop"                // a worker that is asked to end does so
	ruleNodes    check.Rule = "nodes decide"        // no call is decided by an answer from something in between
)

// Report holds the result of a run.
type Report struct {
	check.Part // the problems

	done map[string]int // counts of what was done to workers and leaders

	kinds   map[string]int // calls of workers
	late    int            // calls that arrived after their caller had given up
	dropped int            // answers that did not reach the caller
	strayed int            // answers by the proxies
	answers map[string]int // counts of who decided the calls of bare workers

	tasks    int
	outcomes map[string]int // counts of how claims ended, from the trail
	handlers int            // that began
	looks    int            // looks at contexts that found the claim held
	lost     int            // handlers whose contexts ended because the claim was over
	refused  int            // writes with an old token that the store refused

	overlaps int // times that two workers believed to hold the same task
	past     int // looks that found a claim held after its deadline
}

func newReport() *Report {
	return &Report{Part: check.Part{Name: "workers"}, done: map[string]int{}, kinds: map[string]int{}, answers: map[string]int{}, outcomes: map[string]int{}}
}

// found records a problem.
func (r *Report) found(rule check.Rule, format string, args ...any) {
	r.Violate(rule, 0, nil, format, args...)
}

// count counts what happened to a task.
func (s *story) count(r *Report) {
	for _, g := range s.granted {
		r.outcomes[g.outcome]++
	}
	for _, h := range s.order {
		r.handlers += len(h.begins)
		r.looks += len(h.held)
		if h.returned == "lost" {
			r.lost++
		}
	}
}

// String formats the report as a table, with the problems.
func (r *Report) String() string {
	var b strings.Builder
	for _, line := range []struct{ name, text string }{
		{"calls of workers", counts(r.kinds)},
		{"  arrived late", fmt.Sprintf("%d, after their callers had given up; %d answers dropped, %d made by the proxies", r.late, r.dropped, r.strayed)},
		{"bare workers' calls", counts(r.answers)},
		{"tasks", fmt.Sprint(r.tasks)},
		{"claims", counts(r.outcomes)},
		{"handlers", fmt.Sprintf("%d, which found %d times that they hold their claim, and %d times that they have lost it", r.handlers, r.looks, r.lost)},
		{"late writes refused", fmt.Sprintf("%d, by their tokens", r.refused)},
		{"two holders at once", fmt.Sprint(r.overlaps)},
		{"holders past a deadline", fmt.Sprint(r.past)},
		{"what was done", ""},
	} {
		fmt.Fprintf(&b, "%-26s%s\n", line.name, line.text)
	}
	for _, what := range slices.Sorted(maps.Keys(r.done)) {
		fmt.Fprintf(&b, "  %5d  %s\n", r.done[what], what)
	}
	fmt.Fprintf(&b, "violations                %d\n%s", r.ViolationCount, r.Found(nil))
	return b.String()
}

// counts formats the sum, and the counts by name.
func counts(m map[string]int) string {
	total := 0
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		total += m[name]
		parts = append(parts, fmt.Sprintf("%d %s", m[name], strings.ReplaceAll(name, "_", " ")))
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}

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
	ruleHolders  check.Rule = "two holders"         // once a handler holds a task, none of an older token finds so
	ruleDeadline check.Rule = "deadline"            // no claim is found held whose lease has ended
	ruleHandler  check.Rule = "one handler"         // every handler has a claim of its own, and tokens grow
	ruleSettled  check.Rule = "settled as returned" // a claim ends as its handler returned, or expires
	ruleOnce     check.Rule = "once"                // every task ends once, as it was to
	ruleEffect   check.Rule = "effect"              // the work wrote last by the claim that completed the task
	ruleStop     check.Rule = "stop"                // a worker that is asked to end does
	ruleNodes    check.Rule = "nodes decide"        // no call ends by what something between answers by itself
)

// Report is what a run found.
type Report struct {
	check.Part // what is wrong

	done map[string]int // what was done to workers and leaders, and how often

	kinds   map[string]int // calls of workers
	late    int            // calls that arrived after their caller had given up
	dropped int            // answers that did not get to who asked
	strayed int            // answers of the proxies' own
	answers map[string]int // who decided over the calls of bare workers, and how often

	tasks    int
	outcomes map[string]int // how claims ended, by the trail
	handlers int            // that began
	looks    int            // at their contexts, that found the claim held
	lost     int            // handlers whose contexts ended because the claim was over
	refused  int            // writes with an old token that the store refused

	overlaps int // times that two believed to hold one task
	past     int // looks that found a claim held after its deadline
}

func newReport() *Report {
	return &Report{Part: check.Part{Name: "workers"}, done: map[string]int{}, kinds: map[string]int{}, answers: map[string]int{}, outcomes: map[string]int{}}
}

// found notes what is wrong.
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

// String is the report as a table, and what is wrong.
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

// counts is how many there are, and lists them by name.
func counts(m map[string]int) string {
	total := 0
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		total += m[name]
		parts = append(parts, fmt.Sprintf("%d %s", m[name], strings.ReplaceAll(name, "_", " ")))
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}

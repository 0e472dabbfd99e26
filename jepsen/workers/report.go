package workers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// violationsMax bounds the violations that are kept. All are counted.
const violationsMax = 50

// Report is what a run found.
type Report struct {
	Done  map[string]int // what was done to workers and leaders, and how often
	Calls int            // of workers, by kind in Kinds

	Kinds   map[string]int
	Late    int // calls that arrived after their caller had given up
	Dropped int // answers that did not get to who asked

	Tasks    int
	Claims   int            // by the trail
	Outcomes map[string]int // how they ended
	Handlers int            // that began
	Looks    int            // at their contexts, that found the claim held
	Lost     int            // handlers whose contexts ended because the claim was over
	Refused  int            // writes with an old token that the store refused

	Overlaps int // times that two believed to hold one task
	Past     int // looks that found a claim held after its deadline

	Violations     []string // the first of ViolationCount
	ViolationCount int
}

// OK reports whether the run passes.
func (r *Report) OK() bool { return r.ViolationCount == 0 }

func (r *Report) violate(format string, args ...any) {
	if r.ViolationCount++; len(r.Violations) < violationsMax {
		r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
	}
}

// count counts what happened to a task.
func (s *story) count(r *Report) {
	if r.Outcomes == nil {
		r.Outcomes = map[string]int{}
	}
	for _, g := range s.granted {
		r.Claims++
		r.Outcomes[g.outcome]++
	}
	for _, h := range s.order {
		r.Handlers += len(h.begins)
		r.Looks += len(h.held)
		if h.returned == "lost" {
			r.Lost++
		}
	}
}

// String is the report as a table, and what is wrong.
func (r *Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-26s", name)
		fmt.Fprintf(&b, format+"\n", args...)
	}
	line("calls of workers", "%d: %s", r.Calls, counts(r.Kinds))
	line("  arrived late", "%d, after their callers had given up; %d answers dropped", r.Late, r.Dropped)
	line("tasks", "%d", r.Tasks)
	line("claims", "%d: %s", r.Claims, counts(r.Outcomes))
	line("handlers", "%d, which found %d times that they hold their claim, and %d times that they have lost it", r.Handlers, r.Looks, r.Lost)
	line("late writes refused", "%d, by their tokens", r.Refused)
	line("two holders at once", "%d", r.Overlaps)
	line("holders past a deadline", "%d", r.Past)
	line("what was done", "")
	for _, what := range slices.Sorted(maps.Keys(r.Done)) {
		fmt.Fprintf(&b, "  %5d  %s\n", r.Done[what], what)
	}
	line("violations", "%d", r.ViolationCount)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	if more := r.ViolationCount - len(r.Violations); more > 0 {
		fmt.Fprintf(&b, "  ... and %d more\n", more)
	}
	return b.String()
}

// counts lists counts by name.
func counts(m map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[name], strings.ReplaceAll(name, "_", " ")))
	}
	return strings.Join(parts, ", ")
}

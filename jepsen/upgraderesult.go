package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

// upgradeResult is what an upgrade showed.
type upgradeResult struct {
	History  *history.History
	Report   check.Report
	Restarts []restart
	Crew     crewReport
	Wall     time.Duration

	Pauses  []time.Duration // of the writes, at each restart
	Refused map[string]int  // calls that were not done, by code
	Odd     []string        // codes that no client should see of an upgrade
}

// OK reports whether the run passes.
func (r upgradeResult) OK() bool { return r.Report.OK() && len(r.Crew.Errors) == 0 && len(r.Odd) == 0 }

// passing are the codes that say to try again, there or elsewhere. Clients do.
var passing = []string{
	"no_leader", "overloaded", "shutting_down", "outcome_unknown", recorder.CodeNotConnected, recorder.CodeNoAnswer,
	// Answers that an upgrade has nothing to do with.
	"no_pending_tasks", "stale_claim", "wrong_worker", "task_not_claimed", "task_completed", "task_failed", "task_cancelled", "max_attempts_reached", "task_not_found",
}

// measure fills in what follows from the history.
func (r *upgradeResult) measure() {
	var acked []int64
	r.Refused = map[string]int{}
	for i := range r.History.Ops {
		switch op := &r.History.Ops[i]; {
		case op.Outcome != history.OK:
			if r.Refused[op.Code]++; r.Refused[op.Code] == 1 && !slices.Contains(passing, op.Code) {
				r.Odd = append(r.Odd, op.Code)
			}
		case op.Kind != history.Get:
			acked = append(acked, op.Return)
		}
	}
	slices.Sort(acked)
	for _, one := range r.Restarts {
		r.Pauses = append(r.Pauses, longestGap(acked, one.from, one.ready))
	}
}

// longestGap returns the longest time without an acknowledged write that has a
// part in between from and to.
func longestGap(acked []int64, from, to int64) time.Duration {
	first, _ := slices.BinarySearch(acked, from)
	longest := int64(0)
	for i := max(first, 1); i < len(acked) && acked[i-1] <= to; i++ {
		longest = max(longest, acked[i]-acked[i-1])
	}
	return time.Duration(longest)
}

// String is the summary of the run.
func (r upgradeResult) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\ncalls                 %d, %d of unknown outcome\n", r.Report.Ops, r.Report.Unknown)
	fmt.Fprintf(&b, "not done, by code     %v\n", r.Refused)
	for i, one := range r.Restarts {
		role := "follower"
		if one.leader {
			role = "leader"
		}
		fmt.Fprintf(&b, "restart %-2d            %s, the %-8s to the %s version: ready after %-6v writes paused for %v\n", i+1, one.node, role+",", one.to,
			time.Duration(one.ready-one.from).Round(time.Millisecond), r.Pauses[i].Round(time.Millisecond))
	}
	if len(r.Pauses) > 0 {
		fmt.Fprintf(&b, "longest pause         %v\n", slices.Max(r.Pauses).Round(time.Millisecond))
	}
	fmt.Fprintf(&b, "ordinary client       %d calls, the longest %v, errors: %v\n", r.Crew.Calls, r.Crew.Longest.Round(time.Millisecond), r.Crew.Errors)
	if len(r.Odd) > 0 {
		fmt.Fprintf(&b, "ODD ANSWERS           %v\n", r.Odd)
	}
	fmt.Fprintf(&b, "wall time             %v\n", r.Wall.Round(time.Second))
	b.WriteString(r.Report.String())
	return b.String()
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// killResult is what a kill test found.
type killResult struct {
	History *history.History
	Report  check.Report
	Kills   []int64 // when a leader was killed
	Wall    time.Duration

	// Outages are how long, after each kill, no mutation was acknowledged that
	// had been asked for after it.
	Outages  []time.Duration
	Statuses map[string]int // at the end
	Internal int            // answers of code internal: bugs
}

// OK reports whether the run passes.
func (r killResult) OK() bool { return r.Report.OK() && r.Internal == 0 }

// measure fills in what follows from the history.
func (r *killResult) measure() {
	for _, at := range r.Kills {
		if back, ok := firstMutation(r.History, at); ok {
			r.Outages = append(r.Outages, time.Duration(back-at))
		}
	}
	r.Statuses = map[string]int{}
	for _, t := range r.History.Final.Tasks {
		r.Statuses[t.Status]++
	}
	for i := range r.History.Ops {
		if r.History.Ops[i].Code == "internal" {
			r.Internal++
		}
	}
}

// firstMutation returns when the first mutation that was asked for after at
// was acknowledged.
func firstMutation(h *history.History, at int64) (back int64, ok bool) {
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Kind == history.Get || op.Outcome != history.OK || op.Repeated || op.Call < at {
			continue
		}
		if !ok || op.Return < back {
			back, ok = op.Return, true
		}
	}
	return back, ok
}

// String is the summary of the run.
func (r killResult) String() string {
	var b strings.Builder
	submitted, acked := 0, map[uint64]bool{}
	for i := range r.History.Ops {
		if op := &r.History.Ops[i]; op.Kind == history.Submit && op.Outcome == history.OK {
			acked[op.TaskID] = true
		}
	}
	submitted = len(acked)
	var longest, sum time.Duration
	for _, o := range r.Outages {
		longest = max(longest, o)
		sum += o
	}
	fmt.Fprintf(&b, "\ncalls                 %d, %d of unknown outcome\n", r.Report.Ops, r.Report.Unknown)
	fmt.Fprintf(&b, "tasks                 %d submitted and acknowledged; at the end %v\n", submitted, r.Statuses)
	fmt.Fprintf(&b, "leaders killed        %d\n", len(r.Kills))
	if len(r.Outages) > 0 {
		fmt.Fprintf(&b, "writes again after    %v on average, %v at the longest\n",
			(sum / time.Duration(len(r.Outages))).Round(time.Millisecond), longest.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, "internal errors       %d\n", r.Internal)
	fmt.Fprintf(&b, "wall time             %v\n", r.Wall.Round(time.Second))
	b.WriteString(r.Report.String())
	return b.String()
}

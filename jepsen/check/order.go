package check

import (
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Linearize is the part of Check that looks for an order of each task's calls,
// and nothing else. The times of h need not be times: anything will do that says
// which call comes before which.
func Linearize(h *history.History, opts Options) Report {
	started := time.Now()
	c := newChecker(h, opts)
	c.index = newIndex(h)
	c.report.Tasks = len(c.tasks)
	c.checkLinearizable()
	c.report.Elapsed = time.Since(started)
	return c.report
}

// newChecker returns the checker of h, with the defaults of opts filled in.
func newChecker(h *history.History, opts Options) *checker {
	if opts.TaskTimeout == 0 {
		opts.TaskTimeout = defaultTaskTimeout
	}
	if opts.ViolationsMax == 0 {
		opts.ViolationsMax = defaultViolationsMax
	}
	c := &checker{opts: opts, broken: map[uint64]bool{}}
	c.report = Report{Ops: len(h.Ops), Unknown: h.UnknownCount(), history: h}
	return c
}

// Describe says one op in a line: when, who, what, and what came of it.
func Describe(op *history.Op) string { return describe(op) }

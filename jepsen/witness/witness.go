package witness

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// The rules.
const (
	RuleIndex  check.Rule = "index"          // every answer carries its index
	RuleTime   check.Rule = "index-time"     // indexes keep real time
	RuleOrder  check.Rule = "index-order"    // the log's order explains each task's answers
	RuleChoice check.Rule = "choice"         // a claim takes the first task that it can
	RuleNone   check.Rule = "no-task"        // "no task" only when there is none
	RuleList   check.Rule = "list"           // lists show what there is
	RuleIDs    check.Rule = "ids"            // ids grow
	RuleFirst  check.Rule = "first-answer"   // the first answer comes first
	RuleEntry  check.Rule = "order-in-entry" // an entry's commands have an order
)

// violationsMax bounds the violations that are kept. All are counted.
const violationsMax = 100

// Report is what Check found.
type Report struct {
	// Answers is how many ops carry an index, Claims how many claims' choices
	// were looked at, Nones how many answers of "no task", Lists how many lists.
	Answers, Claims, Nones, Lists int
	// Pending is how many stretches of the log are known through which a task was
	// certainly pending.
	Pending        int
	Violations     []check.Violation
	ViolationCount int
	Undecided      []uint64
	Elapsed        time.Duration
}

// OK reports whether nothing was found.
func (r Report) OK() bool { return r.ViolationCount == 0 && len(r.Undecided) == 0 }

// witness is one run of Check.
type witness struct {
	h      *history.History
	calls  []call
	tasks  map[uint64]*task
	report Report
}

// call is the ops of one HTTP request, which share everything but their task. What
// a complete claims is a call of its own.
type call struct {
	ops   []int
	first *history.Op
	index uint64
	inLog bool // it is a command in the log for certain, not a read
}

// Check checks h.
func Check(h *history.History) Report {
	started := time.Now()
	w := &witness{h: h}
	w.group()
	w.checkIndexes()
	w.checkTime()
	w.checkIDs()
	w.checkFirst()
	w.checkOrder()
	w.tasks = w.sightings()
	w.sweep()
	w.report.Elapsed = time.Since(started)
	return w.report
}

// group arranges the ops by call.
func (w *witness) group() {
	type key struct {
		process int
		call    int64
		request string // of a claim
	}
	at := map[key]int{}
	for i := range w.h.Ops {
		op := &w.h.Ops[i]
		k := key{process: op.Process, call: op.Call}
		if op.Kind == history.Claim {
			k.request = op.RequestID
		}
		if n, ok := at[k]; ok {
			w.calls[n].ops = append(w.calls[n].ops, i)
			continue
		}
		at[k] = len(w.calls)
		w.calls = append(w.calls, call{ops: []int{i}, first: op, index: op.Index, inLog: inLog(op) && !mayBeJudged(op)})
		if op.Index > 0 {
			w.report.Answers++
		}
	}
}

// inLog reports whether the op's answer was made in the log. "No task" may have
// been, but need not.
func inLog(op *history.Op) bool {
	switch op.Kind {
	case history.Get, history.List:
		return false
	case history.Act: // one that has nothing to do is none
		return false
	case history.Claim:
		return !saysNoTask(op)
	}
	return true
}

// mayBeJudged reports whether the op is a settle, or the claim that came with one, that
// was refused or repeated: the leader may have answered it from its state, as a read.
func mayBeJudged(op *history.Op) bool {
	switch op.Kind {
	case history.Complete, history.Fail, history.Extend, history.Release, history.Finalize, history.Claim:
		return op.Outcome == history.Failed || op.Repeated
	}
	return false
}

// saysNoTask reports whether the op is a claim's answer that there is no task.
func saysNoTask(op *history.Op) bool {
	return op.Kind == history.Claim && (op.Outcome == history.OK && op.TaskID == 0 ||
		op.Outcome == history.Failed && op.Code == "no_pending_tasks")
}

func (w *witness) violate(rule check.Rule, taskID uint64, ops []int, format string, args ...any) {
	w.report.ViolationCount++
	if len(w.report.Violations) < violationsMax {
		ops = slices.Clone(ops)
		slices.Sort(ops)
		w.report.Violations = append(w.report.Violations, check.Violation{Rule: rule, Task: taskID, Text: fmt.Sprintf(format, args...), Ops: slices.Compact(ops)})
	}
}

// checkIndexes checks that every answer that says anything of the state has an
// index, at least the one that was asked for.
func (w *witness) checkIndexes() {
	for _, c := range w.calls {
		op := c.first
		// A stale read of a node that has just started is of index 0.
		if c.index == 0 && !op.Stale && answered(op) {
			w.violate(RuleIndex, op.TaskID, c.ops[:1], "an answer without an index")
		}
		if c.index > 0 && c.index < op.MinIndex {
			w.violate(RuleIndex, op.TaskID, c.ops[:1], "a read that asked for index %d at least was answered at index %d", op.MinIndex, c.index)
		}
	}
}

// answered reports whether the op's answer was made by looking at the state.
func answered(op *history.Op) bool {
	return op.Outcome == history.OK || op.Outcome == history.Failed && saysOfState(op.Code)
}

// saysOfState reports whether a refusal was made by looking at tasks.
func saysOfState(code string) bool {
	switch code {
	case "task_not_found", "no_pending_tasks", "task_already_claimed", "task_not_claimed", "task_not_claimable", "wrong_worker",
		"stale_claim", "task_completed", "task_failed", "task_cancelled", "task_not_terminal", "max_attempts_reached", "steps_unfinished":
		return true
	}
	return false
}

// checkTime checks that indexes keep real time.
func (w *witness) checkTime() {
	var answered []*call
	for i := range w.calls {
		if w.calls[i].index > 0 {
			answered = append(answered, &w.calls[i])
		}
	}
	byReturn := slices.Clone(answered)
	slices.SortFunc(byReturn, func(a, b *call) int { return cmp.Compare(a.first.Return, b.first.Return) })
	slices.SortFunc(answered, func(a, b *call) int { return cmp.Compare(a.first.Call, b.first.Call) })
	var highest *call // of those that had returned
	for _, c := range answered {
		for len(byReturn) > 0 && byReturn[0].first.Return < c.first.Call {
			if highest == nil || byReturn[0].index > highest.index {
				highest = byReturn[0]
			}
			byReturn = byReturn[1:]
		}
		switch {
		case highest == nil || c.first.Stale:
		case c.index < highest.index:
			w.violate(RuleTime, c.first.TaskID, []int{highest.ops[0], c.ops[0]},
				"index %d was answered after index %d had been answered", c.index, highest.index)
		case c.index == highest.index && c.inLog:
			w.violate(RuleTime, c.first.TaskID, []int{highest.ops[0], c.ops[0]},
				"a command got index %d, which had been answered before it was called", c.index)
		}
	}
}

// checkIDs checks that tasks that were created later in the log have higher
// ids.
func (w *witness) checkIDs() {
	var created []int
	for i := range w.h.Ops {
		if op := &w.h.Ops[i]; op.Kind == history.Submit && op.Created && op.Index > 0 {
			created = append(created, i)
		}
	}
	slices.SortStableFunc(created, func(a, b int) int {
		return cmp.Or(cmp.Compare(w.h.Ops[a].Index, w.h.Ops[b].Index), cmp.Compare(w.h.Ops[a].TaskID, w.h.Ops[b].TaskID))
	})
	for n := 1; n < len(created); n++ {
		a, b := &w.h.Ops[created[n-1]], &w.h.Ops[created[n]]
		if a.TaskID >= b.TaskID {
			w.violate(RuleIDs, b.TaskID, []int{created[n-1], created[n]}, "task %d was created at index %d, and task %d at index %d: ids must grow", a.TaskID, a.Index, b.TaskID, b.Index)
		}
	}
}

// checkFirst checks that what an answer calls repeated was done at a lower
// index, or in the same entry.
func (w *witness) checkFirst() {
	first := map[string]int{} // of a key or request: the op that did it
	name := func(op *history.Op) string {
		switch {
		case op.Outcome != history.OK || op.Index == 0:
		case op.Kind == history.Submit && op.Key != "":
			return "key " + op.Key
		case op.Kind == history.Claim && op.RequestID != "" && op.TaskID != 0:
			return "request " + op.RequestID
		}
		return ""
	}
	did := func(op *history.Op) bool { return op.Created || op.Kind == history.Claim && !op.Repeated }
	for i := range w.h.Ops {
		if op := &w.h.Ops[i]; did(op) {
			if n := name(op); n != "" {
				first[n] = i
			}
		}
	}
	for i := range w.h.Ops {
		op := &w.h.Ops[i]
		n := name(op)
		if n == "" || did(op) {
			continue
		}
		if f, ok := first[n]; ok && w.h.Ops[f].Index > op.Index {
			w.violate(RuleFirst, op.TaskID, []int{f, i}, "%s: answered as repeated at index %d, and done at index %d", n, op.Index, w.h.Ops[f].Index)
		}
	}
}

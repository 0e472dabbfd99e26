package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// logChecker compares the answers with the log indexes in them.
type logChecker struct {
	*index
	Part
	// before has, for each op, the op with the highest index that had returned before the call; -1
	// if none.
	before  []int
	answers int // that have an index
}

// checkLog checks the answers of x by their log indexes.
func checkLog(x *index) *logChecker {
	w := &logChecker{index: x}
	w.Name = "witness"
	w.findBefore()
	for i := range w.ops {
		if op := &w.ops[i]; !w.goesOn(i) {
			w.checkIndex(i, op)
			w.checkTime(i, op)
		}
	}
	w.checkOrders(newIndex(w.byIndex()))
	w.Summary = fmt.Sprintf("%d answers with an index", w.answers)
	return w
}

func (w *logChecker) findBefore() {
	byCall, byReturn := make([]int, len(w.ops)), make([]int, len(w.ops))
	for i := range w.ops {
		byCall[i], byReturn[i] = i, i
	}
	slices.SortFunc(byCall, func(a, b int) int { return cmp.Compare(w.ops[a].Call, w.ops[b].Call) })
	slices.SortFunc(byReturn, func(a, b int) int { return cmp.Compare(w.ops[a].Return, w.ops[b].Return) })
	w.before = make([]int, len(w.ops))
	highest := -1
	for _, i := range byCall {
		for ; len(byReturn) > 0 && w.ops[byReturn[0]].Return < w.ops[i].Call; byReturn = byReturn[1:] {
			if w.ops[byReturn[0]].Index > w.highest(highest) {
				highest = byReturn[0]
			}
		}
		w.before[i] = highest
	}
}

// highest returns the index of the op in before, 0 if there was no such op.
func (w *logChecker) highest(op int) uint64 {
	if op < 0 {
		return 0
	}
	return w.ops[op].Index
}

// checkIndex checks that every answer that shows the state has an index, and that it is not below
// the one asked for.
func (w *logChecker) checkIndex(i int, op *history.Op) {
	switch {
	case op.Index > 0:
		w.answers++
		if op.Index < op.MinIndex {
			w.Violate(RuleIndex, op.TaskID, []int{i}, "a read that asked for index %d at least was answered at index %d", op.MinIndex, op.Index)
		}
	case !op.Stale && answered(op): // a stale read of a node that has just started may have index 0
		w.Violate(RuleIndex, op.TaskID, []int{i}, "an answer without an index")
	}
}

// checkTime checks that indexes never go back in real time.
func (w *logChecker) checkTime(i int, op *history.Op) {
	b := w.before[i]
	switch {
	case op.Index == 0 || b < 0 || op.Stale:
	case op.Index < w.ops[b].Index:
		w.Violate(RuleTime, op.TaskID, []int{b, i}, "index %d was answered after index %d had been answered", op.Index, w.ops[b].Index)
	case op.Index == w.ops[b].Index && inLog(op) && !mayBeJudged(op):
		w.Violate(RuleTime, op.TaskID, []int{b, i}, "a command got index %d, which had been answered before it was called", op.Index)
	}
}

// inLog reports whether the op's answer certainly comes from an entry of the log. "No task", and an
// action that found nothing to do, may come from the state alone.
func inLog(op *history.Op) bool {
	switch op.Kind {
	case history.Get, history.List, history.Act:
		return false
	}
	return !saysNoTask(op)
}

// settles lists the kinds of calls that settle a claim.
var settles = []history.Kind{history.Complete, history.Fail, history.Extend, history.Release}

// mayBeJudged reports whether the op is a settle, or the claim made with one, that was refused or
// repeated: the leader may have answered it from its state like a read.
func mayBeJudged(op *history.Op) bool {
	return (op.Outcome == history.Failed || op.Repeated) &&
		(slices.Contains(settles, op.Kind) || op.Kind == history.Finalize || op.Kind == history.Claim)
}

// saysNoTask reports whether the op is a claim's answer that there is no task.
func saysNoTask(op *history.Op) bool {
	return op.Kind == history.Claim && (op.Outcome == history.OK && op.TaskID == 0 ||
		op.Outcome == history.Failed && op.Code == "no_pending_tasks")
}

// answered reports whether the op's answer comes from the state.
func answered(op *history.Op) bool {
	return op.Outcome == history.OK || op.Outcome == history.Failed && (saysOfTask(op.Code) ||
		slices.Contains([]string{"no_pending_tasks", "task_not_claimable", "max_attempts_reached", "steps_unfinished"}, op.Code))
}

// byIndex counts four steps of time for each entry of the log: its commands are ordered within the
// first three, and reads with its index come after them all.
const (
	stepsOfEntry = 4
	stepOfReads  = 3
)

// byIndex returns the history ordered by log index instead of time. The ops keep their positions.
func (w *logChecker) byIndex() *history.History {
	ordered := &history.History{Ops: slices.Clone(w.ops), Trail: w.trail}
	for i := range ordered.Ops {
		op := &ordered.Ops[i]
		lowest := w.highest(w.before[i]) // a command takes effect after it
		asked, end := int64(lowest)*stepsOfEntry+stepOfReads, int64(op.Index)*stepsOfEntry+stepOfReads
		switch {
		case !answered(op) || op.Index == 0 && !op.Stale:
			op.Call, op.Return = asked, asked
			continue
		case op.Kind == history.Act: // it looks first and then acts, in entries up to this one
			op.Call, op.Return = asked, max(asked, end)
			continue
		case !inLog(op) || lowest == op.Index: // called after an answer from this entry, so it saw the state after it
			op.Call, op.Return = end, end
		default:
			op.Call, op.Return = end-stepOfReads, end-1
		}
		op.Stale = false
	}
	if w.final != nil {
		ordered.Final = &history.Final{Call: math.MaxInt64 - 1, Return: math.MaxInt64 - 1, Tasks: w.final.Tasks}
	}
	return ordered
}

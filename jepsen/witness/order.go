package witness

import (
	"cmp"
	"math"
	"slices"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// An entry of the log is four steps of the time in which checkOrder orders the
// calls: its commands are made somewhere in the first three, and reads that are
// labelled with it see the state after them all.
const (
	stepsOfEntry = 4
	stepOfReads  = 3
)

// checkOrder checks that for each task an order of its calls that keeps to the
// log's explains all its answers.
func (w *witness) checkOrder() {
	ordered := w.byIndex()
	report := check.Linearize(ordered, check.Options{ViolationsMax: violationsMax})
	for _, v := range report.Violations {
		ops := make([]int, 0, len(v.Ops))
		for _, i := range v.Ops {
			ops = append(ops, w.origin(ordered, i))
		}
		w.violate(RuleOrder, v.Task, ops, "ordered by their indexes: %s", v.Text)
	}
	w.report.ViolationCount += report.ViolationCount - len(report.Violations)
	w.report.Undecided = report.Undecided
}

// byIndex returns the history with the log's order in place of time. The ops
// keep their places; what lists showed follows them, as reads of each task.
func (w *witness) byIndex() *history.History {
	ordered := &history.History{Ops: slices.Clone(w.h.Ops), Final: w.h.Final}
	lowest := w.lowest()
	for i := range ordered.Ops {
		op := &ordered.Ops[i]
		if !answered(op) || op.Index == 0 && !op.Stale {
			// After the highest index that had been answered when it was made.
			op.Call = int64(lowest[i])*stepsOfEntry + stepOfReads
			op.Return = op.Call
			continue
		}
		if op.Kind == history.Act { // it looks, and then it acts, in entries up to this one
			op.Call = int64(lowest[i])*stepsOfEntry + stepOfReads
			op.Return = max(op.Call, int64(op.Index)*stepsOfEntry+stepOfReads)
			continue
		}
		op.Call = int64(op.Index) * stepsOfEntry
		op.Return = op.Call + stepOfReads - 1
		if !inLog(op) {
			op.Call += stepOfReads
			op.Return = op.Call
		}
		op.Stale = false
	}
	for i := range w.h.Ops {
		for n := range w.h.Ops[i].Listed {
			seen := &w.h.Ops[i].Listed[n]
			at := ordered.Ops[i].Call
			ordered.Ops = append(ordered.Ops, history.Op{
				Process: -1 - i, Kind: history.Get, Call: at, Return: at, Outcome: history.OK, TaskID: seen.ID, Seen: seen,
			})
		}
	}
	if w.h.Final != nil {
		end := *w.h.Final
		end.Call, end.Return = math.MaxInt64-1, math.MaxInt64-1
		ordered.Final = &end
	}
	return ordered
}

// origin returns the op of the history that op i of the ordered one was made
// from.
func (w *witness) origin(ordered *history.History, i int) int {
	if i < len(w.h.Ops) {
		return i
	}
	return -1 - ordered.Ops[i].Process
}

// lowest returns, for each op, the highest index that had been answered when
// it was called: a command takes effect after it.
func (w *witness) lowest() []uint64 {
	byCall, byReturn := make([]int, len(w.h.Ops)), make([]int, len(w.h.Ops))
	for i := range w.h.Ops {
		byCall[i], byReturn[i] = i, i
	}
	ops := w.h.Ops
	slices.SortFunc(byCall, func(a, b int) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
	slices.SortFunc(byReturn, func(a, b int) int { return cmp.Compare(ops[a].Return, ops[b].Return) })
	lowest := make([]uint64, len(ops))
	highest := uint64(0)
	for _, i := range byCall {
		for len(byReturn) > 0 && ops[byReturn[0]].Return < ops[i].Call {
			highest = max(highest, ops[byReturn[0]].Index)
			byReturn = byReturn[1:]
		}
		lowest[i] = highest
	}
	return lowest
}

package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// An entry of the log is four steps of the time by which byIndex orders the calls: its commands are made somewhere in the first three, and reads that are
// labelled with it see the state after them all.
const (
	stepsOfEntry = 4
	stepOfReads  = 3
)

// byIndex returns the history with the log's order in place of time. The ops
// keep their places; what lists showed follows them, as reads of each task.
func (w *logChecker) byIndex() *history.History {
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
		// What was called after an answer of this entry looked at the state after it.
		if !inLog(op) || lowest[i] == op.Index {
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
				Process: -1 - i, Kind: history.Get, Call: at, Return: at, Outcome: history.OK, TaskID: seen.ID, Index: w.h.Ops[i].Index, Seen: seen,
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

// lowest returns, for each op, the highest index that had been answered when
// it was called: a command takes effect after it.
func (w *logChecker) lowest() []uint64 {
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

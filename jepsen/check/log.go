package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// logChecker holds the answers to the log indexes that they carry.
type logChecker struct {
	*index
	Part
	ordered *index // the same history, with the log's order in place of time
	calls   []logCall
	tracks  map[uint64]*track
	// answers is how many calls carry an index, claimed how many claims' choices were
	// looked at, nones how many answers of "no task", lists how many lists.
	answers, claimed, nones, lists int
	// pending is how many stretches of the log are known through which a task was
	// certainly pending.
	pending int
}

// logCall is the ops of one HTTP request, which share everything but their task. What
// a complete claims is a call of its own.
type logCall struct {
	ops   []int
	first *history.Op
	index uint64
	inLog bool // it is a command in the log for certain, not a read
}

// checkLog checks the answers of x by their log indexes.
func checkLog(x *index) *logChecker {
	started := time.Now()
	w := &logChecker{index: x}
	w.Name = "witness"
	w.group()
	w.checkIndexes()
	w.checkTime()
	w.checkIDs()
	w.checkFirst()
	w.ordered = newIndex(w.byIndex())
	w.checkOrders(w.ordered, nil, RuleOrder, "ordered by their indexes: ")
	w.findTracks()
	w.sweep()
	w.Summary = fmt.Sprintf("%d answers with an index, %d claims' choices, %d of no task, %d lists against %d stretches of pending, in %v",
		w.answers, w.claimed, w.nones, w.lists, w.pending, time.Since(started).Round(time.Millisecond))
	return w
}

// group arranges the ops by call.
func (w *logChecker) group() {
	type key struct {
		made
		request string // of a claim
	}
	at := map[key]int{}
	for i := range w.h.Ops {
		op := &w.h.Ops[i]
		k := key{made: made{op.Process, op.Call}}
		if op.Kind == history.Claim {
			k.request = op.RequestID
		}
		if n, ok := at[k]; ok {
			w.calls[n].ops = append(w.calls[n].ops, i)
			continue
		}
		at[k] = len(w.calls)
		w.calls = append(w.calls, logCall{ops: []int{i}, first: op, index: op.Index, inLog: inLog(op) && !mayBeJudged(op)})
		if op.Index > 0 {
			w.answers++
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

// checkIndexes checks that every answer that says anything of the state has an
// index, at least the one that was asked for.
func (w *logChecker) checkIndexes() {
	for _, c := range w.calls {
		op := c.first
		// A stale read of a node that has just started is of index 0.
		if c.index == 0 && !op.Stale && answered(op) {
			w.Violate(RuleIndex, op.TaskID, c.ops[:1], "an answer without an index")
		}
		if c.index > 0 && c.index < op.MinIndex {
			w.Violate(RuleIndex, op.TaskID, c.ops[:1], "a read that asked for index %d at least was answered at index %d", op.MinIndex, c.index)
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
	case "no_pending_tasks", "task_not_claimable", "max_attempts_reached", "steps_unfinished":
		return true
	}
	return saysOfTask(code)
}

// checkTime checks that indexes keep real time.
func (w *logChecker) checkTime() {
	var answered []*logCall
	for i := range w.calls {
		if w.calls[i].index > 0 {
			answered = append(answered, &w.calls[i])
		}
	}
	byReturn := slices.Clone(answered)
	slices.SortFunc(byReturn, func(a, b *logCall) int { return cmp.Compare(a.first.Return, b.first.Return) })
	slices.SortFunc(answered, func(a, b *logCall) int { return cmp.Compare(a.first.Call, b.first.Call) })
	var highest *logCall // of those that had returned
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
			w.Violate(RuleTime, c.first.TaskID, []int{highest.ops[0], c.ops[0]},
				"index %d was answered after index %d had been answered", c.index, highest.index)
		case c.index == highest.index && c.inLog:
			w.Violate(RuleTime, c.first.TaskID, []int{highest.ops[0], c.ops[0]},
				"a command got index %d, which had been answered before it was called", c.index)
		}
	}
}

// checkIDs checks that tasks that were created later in the log have higher
// ids.
func (w *logChecker) checkIDs() {
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
			w.Violate(RuleIDs, b.TaskID, []int{created[n-1], created[n]}, "task %d was created at index %d, and task %d at index %d: ids must grow", a.TaskID, a.Index, b.TaskID, b.Index)
		}
	}
}

// checkFirst checks that what an answer calls repeated was done at a lower
// index, or in the same entry.
func (w *logChecker) checkFirst() {
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
			w.Violate(RuleFirst, op.TaskID, []int{f, i}, "%s: answered as repeated at index %d, and done at index %d", n, op.Index, w.h.Ops[f].Index)
		}
	}
}

package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// FinalizersReport is what Finalizers found, and what it looked at.
type FinalizersReport struct {
	// Claims is how many claims of a finalization were answered, Got how many of
	// them have it, Contended how many were told that another has it.
	Claims, Got, Contended int
	// Finalizes is how many calls to end a parent were answered, Done how many did
	// it, Already how many were told what had been done, Refused the others.
	Finalizes, Done, Already, Refused int
	// Violations are the first of ViolationCount.
	Violations     []Violation
	ViolationCount int
}

// Finalizers is the part of Check that looks at the finalization of parents by
// claim, and nothing else: the ops about it are enough.
func Finalizers(h *history.History) FinalizersReport {
	c := newChecker(h, Options{})
	var r FinalizersReport
	parents := map[uint64][]int{}
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.TaskID != 0 {
			parents[op.TaskID] = append(parents[op.TaskID], i)
		}
		r.count(op)
	}
	for _, id := range slices.Sorted(maps.Keys(parents)) {
		ops := parents[id]
		slices.SortStableFunc(ops, func(a, b int) int { return cmp.Compare(h.Ops[a].Call, h.Ops[b].Call) })
		c.checkFinalizers(h, id, ops, false)
	}
	r.Violations, r.ViolationCount = c.report.Violations, c.report.ViolationCount
	return r
}

func (r *FinalizersReport) count(op *history.Op) {
	if op.Outcome == history.Unknown {
		return
	}
	switch {
	case op.Kind == history.ClaimFinalization && op.Outcome == history.OK:
		r.Claims++
		switch {
		case op.Done:
			r.Got++
		case op.Holder != "":
			r.Contended++
		}
	case op.Kind == history.Finalize:
		r.Finalizes++
		switch {
		case op.Outcome == history.Failed:
			r.Refused++
		case op.Done:
			r.Done++
		default:
			r.Already++
		}
	}
}

// tenure is what is certain of one claim of a finalization: its processor had it
// until the timeout may have run out or somebody made the first call that may
// have ended it.
type tenure struct {
	token     uint64
	worker    string
	op        int   // that was answered first
	call, ret int64 // it took effect in [call, ret]
	end       int64 // the timeout does not run out before
	letGo     int64 // when the first call was made that may have ended it
}

func (t *tenure) until() int64 { return min(t.end, t.letGo) }

// checkFinalizers checks the calls about one parent's finalization: claims do not
// overlap, no holder is turned away, one ends the parent, and all are told the
// same. ops are all that name the parent, by call. auto says that the parent ends
// by itself, whoever has the claim.
func (c *checker) checkFinalizers(h *history.History, id uint64, ops []int, auto bool) {
	held := tenures(h, ops)
	for _, a := range held {
		for _, b := range held {
			if a != b && b.ret < a.until() && (b.token > a.token || b.call > a.ret) {
				c.violate(RuleFinalizers, id, []int{a.op, b.op}, "task %d: two have its finalization: %s was given token %d by %s, and %s held token %d until %s at least",
					id, b.worker, b.token, clock(b.ret), a.worker, a.token, clock(a.until()))
			}
			if a.ret < b.call && a.token > b.token {
				c.violate(RuleTokenOrder, id, []int{a.op, b.op}, "task %d: token %d was handed out by a claim made after token %d had been answered; tokens must grow", id, b.token, a.token)
			}
		}
	}
	if !auto {
		c.checkFinalizerTurnedAway(h, id, ops, held)
	}
	c.checkFinalized(h, id, ops, held, auto)
}

// tenures returns the claims that were got, by call.
func tenures(h *history.History, ops []int) []*tenure {
	var held []*tenure
	byToken := map[uint64]*tenure{}
	for _, i := range ops {
		op := &h.Ops[i]
		if op.Kind != history.ClaimFinalization || op.Outcome != history.OK || !op.Done {
			continue
		}
		t := byToken[op.Token]
		if t == nil {
			t = &tenure{token: op.Token, worker: op.Worker, op: i, call: op.Call, ret: op.Return, letGo: never}
			byToken[op.Token], held = t, append(held, t)
		}
		t.ret, t.end = min(t.ret, op.Return), max(t.end, leaseEnd(op.Call, op.LeaseMS))
	}
	for _, i := range ops {
		op := &h.Ops[i]
		for _, t := range held {
			switch {
			case op.Outcome == history.Failed || op.Outcome == history.OK && op.Return < t.call:
			case op.Kind == history.ExtendFinalization && op.Worker == t.worker && op.Done && op.Call >= t.call:
				// It is of the claim that the processor had then, which may be a later one.
				if op.LeaseMS > 0 && last(held, op) == t {
					t.end = max(t.end, leaseEnd(op.Call, op.LeaseMS))
				}
			case (op.Kind == history.ReleaseFinalization || op.Kind == history.Finalize) && op.Worker == t.worker,
				op.Kind == history.Retry, op.Kind == history.Delete:
				t.letGo = min(t.letGo, op.Call)
			}
		}
	}
	return held
}

// last returns the claim that had been answered to the op's processor last when
// the op was called, nil if none.
func last(held []*tenure, op *history.Op) *tenure {
	var best *tenure
	for _, t := range held {
		if t.worker == op.Worker && t.ret <= op.Call && (best == nil || t.token > best.token) {
			best = t
		}
	}
	return best
}

// checkFinalizerTurnedAway checks that nobody was turned away who certainly held
// the claim.
func (c *checker) checkFinalizerTurnedAway(h *history.History, id uint64, ops []int, held []*tenure) {
	for _, i := range ops {
		op := &h.Ops[i]
		t := last(held, op)
		if t == nil || op.Return >= t.end || t.letGo < op.Call {
			continue
		}
		away := false
		switch op.Kind {
		case history.ExtendFinalization, history.ReleaseFinalization:
			away = op.Outcome == history.OK && !op.Done
		case history.Finalize:
			away = op.Outcome == history.Failed && (op.Code == "stale_claim" && op.Token == t.token || op.Code == "task_already_claimed")
		}
		if away && !endedBy(h, ops, op.Return) {
			c.violate(RuleFinalizers, id, []int{t.op, i}, "task %d: the finalization of token %d ended early: %s was turned away at %s, and held it until %s at least",
				id, t.token, t.worker, clock(op.Return), clock(t.end))
		}
	}
}

// endedBy reports whether an op that was called by then shows that the parent
// has ended: cancelled, or ended by another whose call was sooner.
func endedBy(h *history.History, ops []int, at int64) bool {
	return slices.ContainsFunc(ops, func(i int) bool {
		op := &h.Ops[i]
		if op.Kind == history.Finalize && op.Outcome == history.Unknown && op.Call <= at {
			return true
		}
		return op.Outcome == history.OK && (op.Action == statusCancelled || op.State == statusCancelled)
	})
}

// checkFinalized checks that one call ended the parent, rightly, and that all
// were told the same.
func (c *checker) checkFinalized(h *history.History, id uint64, ops []int, held []*tenure, auto bool) {
	retries, did, told := 0, -1, -1
	for _, i := range ops {
		op := &h.Ops[i]
		if op.Kind == history.Retry && op.Outcome != history.Failed {
			retries++
		}
	}
	done := 0
	for _, i := range ops {
		op := &h.Ops[i]
		if op.Kind != history.Finalize || op.Outcome != history.OK {
			continue
		}
		if told >= 0 && retries == 0 && !sameEnd(&h.Ops[told], op) {
			c.violate(RuleFinalized, id, []int{told, i}, "task %d: two processors are told different ends", id)
		}
		told = i
		if !op.Done {
			continue
		}
		if done++; done > 1+retries {
			c.violate(RuleFinalized, id, []int{did, i}, "task %d was finalized twice: two answers say that they did it", id)
		}
		did = i
		c.checkDone(h, id, i, held, auto)
	}
}

// checkDone checks a call that ended the parent.
func (c *checker) checkDone(h *history.History, id uint64, i int, held []*tenure, auto bool) {
	op := &h.Ops[i]
	if auto {
		c.violate(RuleFinalized, id, []int{i}, "task %d ends by itself, and an answer says that a processor did it", id)
	}
	if op.Action != op.Goal || op.Seen != nil && (op.Seen.Status != op.Goal || op.Seen.Worker != op.Worker || op.Result != "" && op.Seen.Result != op.Result) {
		c.violate(RuleFinalized, id, []int{i}, "task %d: %s asked for %s, and ended it as another end", id, op.Worker, op.Goal)
	}
	for _, t := range held {
		if t.worker != op.Worker && t.ret <= op.Call && op.Return < t.until() {
			c.violate(RuleFinalizers, id, []int{t.op, i}, "task %d: %s finalized it, although %s held token %d until %s at least", id, op.Worker, t.worker, t.token, clock(t.until()))
		}
		if op.Token != 0 && t.token > op.Token && t.ret < op.Call {
			c.violate(RuleFinalizers, id, []int{t.op, i}, "task %d was finalized with token %d after token %d had been handed out to %s", id, op.Token, t.token, t.worker)
		}
	}
}

// sameEnd reports whether two answers tell of the same end.
func sameEnd(a, b *history.Op) bool {
	if a.Action != b.Action || a.Seen == nil || b.Seen == nil {
		return a.Action == b.Action
	}
	return a.Seen.Status == b.Seen.Status && a.Seen.Worker == b.Seen.Worker && (a.Seen.Result == b.Seen.Result || a.Seen.Result == "" || b.Seen.Result == "")
}

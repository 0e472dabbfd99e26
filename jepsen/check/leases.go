package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// A lease may look shorter because clock rates differ and because of the resolution of the server's
// clock.
const (
	rateDivisor     = 2000 // 0.05 %
	clockResolution = int64(time.Millisecond)
)

// hold is the time for which one claim is certain: until its lease may have ended or the first call
// that may have ended it was made.
type hold struct {
	*claim
	leaseEnd int64 // the earliest end of the lease
	over     int64 // the latest end of the lease; never if not known
	letGo    int64 // when the first call was made that may have ended the claim
}

// until returns the time until which the claim certainly lasted.
func (h *hold) until() int64 { return min(h.leaseEnd, h.letGo) }

// checkLeases checks that no claim of the task or of its finalization was granted while another was
// certainly held, and that no holder was refused before its lease had ended.
func (c *checker) checkLeases(t *task) {
	holds := c.holds(t)
	overlap, early := RuleOverlap, RuleLeaseEarly
	if t.parent {
		overlap, early = RuleFinalizers, RuleFinalizers
	}
	byRet := slices.Clone(holds)
	slices.SortStableFunc(byRet, func(a, b *hold) int { return cmp.Compare(a.ret, b.ret) })
	for _, h := range holds {
		// A claim granted after this one (it was called later or has a higher token) must not be
		// answered before this one's end.
		from, _ := slices.BinarySearchFunc(byRet, h.call, func(o *hold, at int64) int { return cmp.Compare(o.ret, at) })
		for _, other := range byRet[from:] {
			if other.ret >= h.until() {
				break
			}
			if other.token > h.token || other.call > h.ret {
				c.Violate(overlap, t.id, []int{h.op, other.op},
					"task %d: claims overlap: token %d was handed to %s by %s, and %s held token %d until %s at least",
					t.id, other.token, other.worker, clock(other.ret), h.worker, h.token, clock(h.until()))
			}
		}
	}
	endsItself := t.parent && !c.processorEnds(t)
	for _, i := range t.ops {
		op := &c.ops[i]
		h := heldBy(holds, op)
		if h != nil && !endsItself && turnsAway(op) && op.Worker == h.worker && (op.Token == 0 || op.Token == h.token) && op.Return < h.until() {
			c.Violate(early, t.id, []int{h.op, i},
				"task %d: the lease of token %d ended early: %s was refused at %s, and held it until %s at least",
				t.id, h.token, h.worker, clock(op.Return), clock(h.until()))
		}
		if op.Kind == history.Finalize && op.Outcome == history.OK && op.Done {
			c.checkFinalizer(t, i, op, holds)
		}
	}
}

// checkFinalizer checks that the parent was not ended while another processor certainly held it,
// nor with an older token.
func (c *checker) checkFinalizer(t *task, i int, op *history.Op, holds []*hold) {
	for _, h := range holds {
		switch {
		case h.worker != op.Worker && h.ret <= op.Call && op.Return < h.until():
			c.Violate(RuleFinalizers, t.id, []int{h.op, i}, "task %d: %s finalized it, although %s held token %d until %s at least", t.id, op.Worker, h.worker, h.token, clock(h.until()))
		case op.Token != 0 && h.ret < op.Call && h.token > op.Token:
			c.Violate(RuleFinalizers, t.id, []int{h.op, i}, "task %d was finalized with token %d after token %d had been handed out to %s", t.id, op.Token, h.token, h.worker)
		}
	}
}

// processorEnds reports whether only a processor may have ended the parent: it does not end by
// itself, and no answer shows that it was cancelled.
func (c *checker) processorEnds(t *task) bool {
	return (t.plan == nil || t.plan.ByClaim) && !slices.ContainsFunc(t.ops, func(i int) bool {
		op := &c.ops[i]
		return op.Outcome == history.OK && (op.Action == statusCancelled || op.State == statusCancelled)
	})
}

// holds returns the certain time of each claim of the task.
func (x *index) holds(t *task) []*hold {
	holds := make([]*hold, 0, len(t.claims))
	for i := range t.claims {
		h := &hold{claim: &t.claims[i], letGo: never, over: never}
		if h.leaseMS > 0 {
			h.leaseEnd, h.over = leaseEnd(h.call, h.leaseMS), leaseOver(h.ret, h.leaseMS)
		}
		if !slices.ContainsFunc(holds, func(o *hold) bool { return o.token == h.token }) {
			holds = append(holds, h)
		}
	}
	for _, op := range x.of(t) {
		if h := heldBy(holds, op); h != nil && (op.Kind == history.Extend || op.Kind == history.ClaimTask) {
			h.over = max(h.over, leaseOver(ended(op), op.LeaseMS))
		}
		switch op.Kind {
		case history.Extend, history.ClaimFinalization, history.ExtendFinalization:
			if h := heldBy(holds, op); h != nil && op.Outcome == history.OK && op.LeaseMS > 0 && (op.Done || op.Kind == history.Extend) {
				h.leaseEnd = max(h.leaseEnd, leaseEnd(op.Call, op.LeaseMS))
			}
		case history.Complete, history.Fail, history.Release:
			if h := heldBy(holds, op); h != nil {
				h.letGo = min(h.letGo, op.Call)
			}
		case history.Retry, history.Delete, history.ReleaseFinalization, history.Finalize:
			for _, h := range holds { // whichever claim it met
				if ended(op) >= h.call && mayEnd(op, h) {
					h.letGo = min(h.letGo, op.Call)
				}
			}
		}
	}
	for op := range x.reopened(t) { // the parent had ended by itself
		for _, h := range holds {
			if ended(op) >= h.call {
				h.letGo = min(h.letGo, op.Call)
			}
		}
	}
	return holds
}

// mayEnd reports whether the op, which was not refused, may have ended the claim.
func mayEnd(op *history.Op, h *hold) bool {
	switch op.Kind {
	case history.ReleaseFinalization:
		return op.Worker == h.worker && (op.Done || op.Outcome == history.Unknown)
	case history.Finalize:
		return op.Worker == h.worker || op.Outcome == history.Unknown
	}
	return true
}

// heldBy returns the claim that op names: by its token or, for a finalization without one, the last
// claim answered to the op's processor before the call. It returns nil if no claim matches.
func heldBy(holds []*hold, op *history.Op) *hold {
	var best *hold
	for _, h := range holds {
		switch op.Kind {
		case history.ExtendFinalization, history.ReleaseFinalization, history.Finalize:
			if h.worker == op.Worker && h.ret <= op.Call && (best == nil || h.token > best.token) {
				best = h
			}
		default:
			if h.token == op.Token {
				return h
			}
		}
	}
	return best
}

// leaseEnd returns the earliest end of a lease that was asked for at call.
func leaseEnd(call, leaseMS int64) int64 {
	length := leaseMS * int64(time.Millisecond)
	return call + length - length/rateDivisor - clockResolution
}

// leaseOver returns the latest end of a lease whose call was answered at ret, never if that is not
// known.
func leaseOver(ret, leaseMS int64) int64 {
	if ret == never || leaseMS == 0 {
		return never
	}
	length := leaseMS * int64(time.Millisecond)
	return ret + length + length/rateDivisor
}

// turnsAway reports whether the answer says that the caller's claim has ended.
func turnsAway(op *history.Op) bool {
	switch {
	case op.Kind == history.ExtendFinalization || op.Kind == history.ReleaseFinalization:
		return op.Outcome == history.OK && !op.Done
	case op.Outcome != history.Failed:
		return false
	case op.Kind == history.Finalize:
		return op.Code == "stale_claim" || op.Code == "task_already_claimed"
	}
	switch op.Code {
	case "stale_claim", "task_not_claimed", "wrong_worker", "task_completed", "task_failed", "task_cancelled", "task_not_found":
		return true
	}
	return false
}

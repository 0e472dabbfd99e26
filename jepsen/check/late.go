package check

import (
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// The contract's bounds on how late an ended claim is requeued.
const (
	lateMax       = time.Second
	lateMaxChange = 500 * time.Millisecond // more for each change of leader
	// lateMaxUnheard is added for each change of leader while more than one node is disturbed,
	// because perhaps no remaining node has heard the last leader.
	lateMaxUnheard = 5 * time.Second
	// lateSlack allows for the machine, whose cores leader, followers and callers share.
	lateSlack = time.Second
	// standstillMin is the shortest time without an acknowledged change that counts as time without
	// a leader.
	standstillMin = 300 * time.Millisecond
)

// checkLate checks that no claim stayed alive long after its lease had ended by the clock of its
// holder.
func checkLate(h *history.History, x *index) Part {
	p := Part{Name: "leases"}
	still := h.Standstills(standstillMin)
	looked, worst := 0, time.Duration(0)
	look := func(l *hold, at int64, shown ...int) {
		if at <= l.over {
			return
		}
		looked++
		late := time.Duration(at - l.over)
		worst = max(worst, late)
		changes := changesBetween(h, l.call, at)
		standing := within(still, l.call, at)
		change := lateMaxChange
		if !oneNodeAtATime(h, l.call, at) {
			change += lateMaxUnheard
		}
		allowed := lateMax + lateSlack + time.Duration(changes)*change + standing
		if late > allowed {
			p.Violate(RuleLate, l.task, append(shown, l.op),
				"task %d: the claim with token %d was alive %v after its lease had ended; %v are allowed (%d changes of leader, %v without any progress)",
				l.task, l.token, late.Round(time.Millisecond), allowed.Round(time.Millisecond), changes, standing.Round(time.Millisecond))
		}
	}
	for _, id := range x.ids {
		t := x.tasks[id]
		if t.parent {
			continue
		}
		for _, l := range x.holds(t) {
			for _, i := range t.ops {
				if alive(&x.ops[i]) == l.token {
					look(l, x.ops[i].Call, i)
				}
			}
			if f := t.final; f != nil && f.Status == statusClaimed && f.Token == l.token {
				look(l, x.final.Call)
			}
		}
	}
	p.Summary = fmt.Sprintf("%d claims seen alive after their lease's end, at most %v after; none early is the history's part", looked, worst.Round(time.Millisecond))
	return p
}

// alive returns the token of the live claim that op shows, 0 if none.
func alive(op *history.Op) uint64 {
	if op.Outcome != history.OK {
		return 0
	}
	switch op.Kind {
	case history.AddSteps:
		return op.Token
	case history.Complete, history.Fail, history.Release, history.Extend:
		if !op.Repeated {
			return op.Token
		}
	case history.Get:
		if !op.Stale && op.Seen.Status == statusClaimed {
			return op.Seen.Token
		}
	}
	return 0
}

// changesBetween returns how many changes of leader there may have been.
func changesBetween(h *history.History, from, to int64) int {
	var before, after uint64 // terms
	for i := range h.Samples {
		s := &h.Samples[i]
		if !s.Leads || s.At > to {
			continue
		}
		if s.At <= from || before == 0 {
			before = max(before, s.Term)
		}
		after = max(after, s.Term)
	}
	return int(after - before)
}

// oneNode matches faults that disturb one node only, and neither the others nor the network between
// them.
var oneNode = regexp.MustCompile(`^(kill|pause|partition|power)-(one|leader)(-torn)?$`)

// oneNodeAtATime reports whether only such faults, one at a time, were active between from and to.
func oneNodeAtATime(h *history.History, from, to int64) bool {
	before := int64(0) // when the previous fault ended
	for i := range h.Events {
		e := &h.Events[i]
		if e.Kind != history.Injected || e.At > to {
			continue
		}
		over := h.Over(i, math.MaxInt64)
		if over < from {
			continue
		}
		if !oneNode.MatchString(e.Fault) || e.At <= before {
			return false
		}
		before = over
	}
	return true
}

// within returns how much time of the spans lies between from and to.
func within(spans []history.Span, from, to int64) time.Duration {
	sum := int64(0)
	for _, s := range spans {
		sum += max(min(s.To, to)-max(s.From, from), 0)
	}
	return time.Duration(sum)
}

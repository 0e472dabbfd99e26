package judge

import (
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// The bounds of the contract on how late an ended claim is requeued.
const (
	lateMax       = time.Second
	lateMaxChange = 500 * time.Millisecond // more for each change of leader
	// lateMaxUnheard is more for each change of leader while more than one node is
	// disturbed: nobody may be left who heard the last leader.
	lateMaxUnheard = 5 * time.Second
	// lateSlack is for the machine: leader, followers and callers share its cores.
	lateSlack = time.Second
	// standstillMin is how long nothing must have been acknowledged for it to
	// count as time without a leader.
	standstillMin = 300 * time.Millisecond
)

// lease is what is known of one claim's end.
type lease struct {
	begun int64 // when the claim was called
	// ends is when the lease ended at the latest: its length after the answer to
	// the claim, or to the latest extend. 0 = not known.
	ends    int64
	claimed int // op
	unsure  bool
}

type hold struct{ task, token uint64 }

// leases checks that no claim was still alive long after its lease had ended,
// by the clock of who held it.
func leases(h *history.History) check.Part {
	p := check.Part{Name: "leases"}
	held := holds(h)
	still := h.Standstills(standstillMin)
	looked, worst := 0, time.Duration(0)
	look := func(k hold, at int64, shown ...int) {
		l := held[k]
		if l == nil || l.unsure || at <= l.ends {
			return
		}
		looked++
		late := time.Duration(at - l.ends)
		worst = max(worst, late)
		changes := changesBetween(h, l.begun, at)
		standing := within(still, l.begun, at)
		change := lateMaxChange
		if !oneNodeAtATime(h, l.begun, at) {
			change += lateMaxUnheard
		}
		allowed := lateMax + lateSlack + time.Duration(changes)*change + standing
		if late > allowed {
			p.Violate(RuleLate, k.task, append(shown, l.claimed),
				"task %d: the claim with token %d was alive %v after its lease had ended; %v are allowed (%d changes of leader, %v without any progress)",
				k.task, k.token, late.Round(time.Millisecond), allowed.Round(time.Millisecond), changes, standing.Round(time.Millisecond))
		}
	}
	for i := range h.Ops {
		look(alive(&h.Ops[i]), h.Ops[i].Call, i)
	}
	if h.Final != nil {
		for i := range h.Final.Tasks {
			if t := &h.Final.Tasks[i]; t.Status == "claimed" {
				look(hold{t.ID, t.Token}, h.Final.Call)
			}
		}
	}
	p.Summary = fmt.Sprintf("%d claims seen alive after their lease's end, at most %v after; none early is the history's part", looked, worst.Round(time.Millisecond))
	return p
}

// holds returns when each claim's lease ended at the latest.
func holds(h *history.History) map[hold]*lease {
	held := map[hold]*lease{}
	for i := range h.Ops {
		op := &h.Ops[i]
		if k := (hold{op.TaskID, op.Token}); op.Outcome == history.OK && op.TaskID != 0 && (op.Kind == history.Claim || op.Kind == history.ClaimTask) {
			if held[k] == nil {
				held[k] = &lease{begun: op.Call, claimed: i}
			}
			held[k].begun = min(held[k].begun, op.Call)
			held[k].extend(op)
		}
	}
	for i := range h.Ops {
		op := &h.Ops[i]
		if l := held[hold{op.TaskID, op.Token}]; l != nil && op.Kind == history.Extend && op.Outcome != history.Failed {
			l.extend(op)
		}
	}
	return held
}

// extend takes a call into account that may have moved the lease's end.
func (l *lease) extend(op *history.Op) {
	if op.Outcome != history.OK || op.LeaseMS == 0 {
		l.unsure = true // it may take effect at any time
		return
	}
	l.ends = max(l.ends, op.Return+op.LeaseMS*int64(time.Millisecond)*2001/2000)
}

// alive returns the claim that op shows to be alive, none if it shows none.
func alive(op *history.Op) hold {
	if op.Outcome != history.OK {
		return hold{}
	}
	switch op.Kind {
	case history.Complete, history.Fail, history.Release, history.Extend:
		if !op.Repeated {
			return hold{op.TaskID, op.Token}
		}
	case history.Get:
		if !op.Stale && op.Seen.Status == "claimed" {
			return hold{op.TaskID, op.Seen.Token}
		}
	}
	return hold{}
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

// oneNode matches the faults that disturb one node and leave the others and the
// network between them alone.
var oneNode = regexp.MustCompile(`^(kill|pause|partition|power)-(one|leader)(-torn)?$`)

// oneNodeAtATime reports whether no other fault, and no two of these at once, were
// under way at any time from then to then.
func oneNodeAtATime(h *history.History, from, to int64) bool {
	before := int64(0) // when the fault before was over
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

// within returns how much of the spans lies between from and to.
func within(spans []history.Span, from, to int64) time.Duration {
	sum := int64(0)
	for _, s := range spans {
		sum += max(min(s.To, to)-max(s.From, from), 0)
	}
	return time.Duration(sum)
}

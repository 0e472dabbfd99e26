package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// What reads take in the rushes says something of the turns of keys if there are so many of them,
// in the crowd and beside it. A read of the crowd waits for half of the crowd and more, one beside
// it for some two reads, if keys take turns; else it takes as long. Other work on the machine makes
// both longer, so that they have been seen to differ by a quarter only.
const (
	crowdMin, aloneMin = 50, 15
	aloneMax           = 0.85 // of a read of the crowd
)

// turns checks that reads by a key of its own did not wait for those of many with another key, in
// the rushes in which nothing was done to the nodes. It returns how long each of them took.
func turns(h *history.History, p *Part) (crowd, alone time.Duration) {
	var all history.Rush
	for _, r := range h.Run.Neighbours.Rushes {
		if !faultBetween(h, r.At, r.To) {
			all.To, all.Crowd, all.Alone = r.To, append(all.Crowd, r.Crowd...), append(all.Alone, r.Alone...)
		}
	}
	crowd, alone = median(all.Crowd), median(all.Alone)
	if len(all.Crowd) >= crowdMin && len(all.Alone) >= aloneMin && float64(alone) > aloneMax*float64(crowd) && !h.Run.Shared {
		p.ViolateAt(all.To, RuleTurns, "with a key of its own one waited for %v, and %d with another key for %v: keys do not take turns",
			alone, h.Run.Neighbours.Readers, crowd)
	}
	return crowd, alone
}

// median returns the median, 0 of none.
func median(all []int64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2]).Round(100 * time.Microsecond)
}

// faultBetween reports whether a fault was under way at any time from then to then.
func faultBetween(h *history.History, from, to int64) bool {
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Injected && e.At <= to && h.Over(i, never) >= from {
			return true
		}
	}
	return false
}

// readers checks what heavy reads were answered, and that they took no leader away: other work on
// the machine may.
func readers(h *history.History) Part {
	p := Part{Name: "readers"}
	first := int64(never) // fault
	for i := range h.Events {
		e := &h.Events[i]
		switch e.Kind {
		case history.Injected:
			first = min(first, e.At)
		case history.Garbled:
			p.ViolateAt(e.At, RuleReads, "neither what was asked for nor a refusal that says to ask later: %s", e.Text)
		case history.Unanswered:
			if e.At < first {
				p.ViolateAt(e.At, RuleReads, "no answer, and no fault was before it: %s", e.Text)
			}
		}
	}
	leader := (*history.Sample)(nil)
	for i := range h.Samples {
		s := &h.Samples[i]
		if !s.Leads || s.At >= first {
			continue
		}
		if leader != nil && s.Term > leader.Term && !h.Run.Shared {
			p.ViolateAt(s.At, RuleKeeps, "%s leads in term %d, and %s led in term %d, though nothing was done to the nodes", s.Node, s.Term, leader.Node, leader.Term)
		}
		if leader == nil || s.Term > leader.Term {
			leader = s
		}
	}
	n := h.Run.Neighbours
	p.Summary = fmt.Sprintf("%d heavy reads over %d connections answered, %d refused for load or want of a leader, %d not answered", n.Answered, n.Readers, n.Refused, n.Unanswered)
	if crowd, alone := turns(h, &p); crowd > 0 {
		p.Summary += fmt.Sprintf("; %v each in rushes, %v beside them", crowd, alone)
	}
	return p
}

// tenants checks that no answer to a tenant had a mark of another caller.
func tenants(h *history.History) Part {
	p := Part{Name: "tenants"}
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Leaked {
			p.ViolateAt(e.At, RuleBeside, "%s", e.Text)
		}
	}
	n := h.Run.Neighbours
	p.Summary = fmt.Sprintf("%d answers to %d keys of some task types, %d KiB, searched for marks of others", n.Looked, n.Tenants, n.Bytes>>10)
	return p
}

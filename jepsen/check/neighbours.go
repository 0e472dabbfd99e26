package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// With this number of reads, their times show whether keys take turns. A read by the crowd waits
// for at least half of the crowd. A read with another key waits for about two reads if keys
// take turns, else as long as the crowd's. Other work on the machine lengthens both, so that the
// two have differed by only a quarter.
const (
	crowdMin, aloneMin = 50, 15
	aloneMax           = 0.85 // of a read of the crowd
)

// turns checks that reads with another key did not wait for the many reads with another key,
// in rushes without faults. It returns the median time of both.
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

// median returns the median, 0 for an empty list.
func median(all []int64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2]).Round(100 * time.Microsecond)
}

// faultBetween reports whether a fault was active at any time between from and to.
func faultBetween(h *history.History, from, to int64) bool {
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Injected && e.At <= to && h.Over(i, never) >= from {
			return true
		}
	}
	return false
}

// readers checks the answers to heavy reads, and that heavy reads did not cost a leader its place.
// Other work on the machine may do that.
func readers(h *history.History) Part {
	p := Part{Name: "readers"}
	first := int64(never) // start of the first fault
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

// tenants checks that no answer to a tenant contained a mark of another caller.
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

package check

import (
	"fmt"

	"github.com/claimq/claimq/jepsen/history"
)

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

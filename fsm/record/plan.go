package record

import "slices"

// StepsMax bounds the steps of a parent.
const StepsMax = 1000

// Plan is the steps of a parent as they were submitted: a directed graph without
// cycles. It is made once, shared by the parent, its steps and all copies of
// them, and never changed. A step's place is its index in Steps; its id is the
// parent's + 1 + its place.
type Plan struct {
	Steps []PlannedStep // 1 to 1,000
	// ByClaim: a processor ends the parent, else the entry does that ends its last
	// step.
	ByClaim bool
	// Continue: a step that failed or was cancelled takes along only those that
	// depend on it, else all.
	Continue bool

	Bytes int // derived: an estimate of what Steps takes
}

// PlannedStep is one step of a plan.
type PlannedStep struct {
	Name      string
	DependsOn []uint16 // places, ascending; nil = none
	// Dependents are the places of the steps that depend on it, ascending. It is
	// derived.
	Dependents []uint16
}

// NewPlan returns the plan of what was submitted.
func NewPlan(n *NewParent) *Plan {
	p := &Plan{Steps: make([]PlannedStep, len(n.Steps)), ByClaim: n.ByClaim, Continue: n.Continue}
	for i := range n.Steps {
		p.Steps[i].Name, p.Steps[i].DependsOn = n.Steps[i].Name, n.Steps[i].DependsOn
	}
	p.Link()
	return p
}

// Link builds what is derived. Places that no step has are passed over.
func (p *Plan) Link() {
	counts := make([]int, len(p.Steps))
	edges := 0
	p.Bytes = PlannedStepBytes * len(p.Steps)
	for place := range p.Steps {
		s := &p.Steps[place]
		p.Bytes += len(s.Name) + DependencyBytes*len(s.DependsOn)
		for _, on := range s.DependsOn {
			if int(on) < len(p.Steps) {
				counts[on]++
				edges++
			}
		}
	}
	all := make([]uint16, 0, edges) // one piece of memory for all
	for place, n := range counts {
		end := len(all) + n
		p.Steps[place].Dependents = all[len(all):len(all):end]
		all = all[:end]
	}
	for place := range p.Steps {
		for _, on := range p.Steps[place].DependsOn {
			if int(on) < len(p.Steps) {
				p.Steps[on].Dependents = append(p.Steps[on].Dependents, uint16(place))
			}
		}
	}
}

// Sound reports whether every step depends only on others of the plan, and no
// step on itself through others.
func (p *Plan) Sound() bool {
	for place := range p.Steps {
		for _, on := range p.Steps[place].DependsOn {
			if int(on) >= len(p.Steps) {
				return false
			}
		}
	}
	return FindCycle(len(p.Steps), func(place uint16) []uint16 { return p.Steps[place].DependsOn }) == nil
}

// FindCycle returns the places of steps of which each depends on the next and the
// last on the first, nil if there are none. There are n steps, at most StepsMax,
// and dependsOn gives the places that one depends on, each below n. It goes along
// the dependencies as deep as it can, and never twice from a step.
func FindCycle(n int, dependsOn func(place uint16) []uint16) []uint16 {
	const open, done = 1, 2
	var state [StepsMax]uint8
	var path [StepsMax]struct{ place, next uint16 } // next: which of its dependencies
	for root := range uint16(n) {
		if state[root] == done {
			continue
		}
		depth := 0
		path[0].place, path[0].next = root, 0
		state[root] = open
		for depth >= 0 {
			at := &path[depth]
			all := dependsOn(at.place)
			if int(at.next) == len(all) {
				state[at.place] = done
				depth--
				continue
			}
			on := all[at.next]
			at.next++
			switch state[on] {
			case open:
				cycle := []uint16{on}
				for depth > 0 && path[depth].place != on {
					cycle = append(cycle, path[depth].place)
					depth--
				}
				slices.Reverse(cycle[1:])
				return cycle
			case 0:
				depth++
				path[depth].place, path[depth].next = on, 0
				state[on] = open
			}
		}
	}
	return nil
}

// Suits reports whether the step can have the status, given which steps have
// completed.
func (p *Plan) Suits(place int, status Status, completed []bool) bool {
	waits := false
	for _, on := range p.Steps[place].DependsOn {
		waits = waits || !completed[on]
	}
	switch status {
	case StatusBlocked:
		return waits
	case StatusFailed, StatusCancelled: // before it could begin, or after
		return true
	}
	return !waits
}

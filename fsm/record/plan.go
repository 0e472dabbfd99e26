package record

import "slices"

// StepsMax bounds the steps of a parent.
const StepsMax = 1000

// Plan is the steps of a parent as submitted: a directed acyclic graph. The parent, its
// steps and all their copies share it, and it never changes. A step's place is its index in
// Steps; its id is the parent's id + 1 + its place.
type Plan struct {
	Steps []PlannedStep // 1 to 1,000
	// ByClaim: a processor ends the parent. Otherwise it ends automatically with its last
	// step.
	ByClaim bool
	// Continue: a step that failed or was cancelled takes only its dependents along.
	// Otherwise all steps are.
	Continue bool

	Bytes int // derived: estimate of the memory of Steps
}

// PlannedStep is one step of a plan.
type PlannedStep struct {
	Name      string
	DependsOn []uint16 // places, ascending; nil = none
	// Dependents are the places of the steps that depend on it, ascending. Derived.
	Dependents []uint16
}

// NewPlan returns the plan of the submitted steps.
func NewPlan(n *NewParent) *Plan {
	p := &Plan{Steps: make([]PlannedStep, len(n.Steps)), ByClaim: n.ByClaim, Continue: n.Continue}
	for i := range n.Steps {
		p.Steps[i].Name, p.Steps[i].DependsOn = n.Steps[i].Name, n.Steps[i].DependsOn
	}
	p.Link()
	return p
}

// Link computes the derived fields. It skips places that no step has.
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
	all := make([]uint16, 0, edges) // one allocation for all
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

// Sound reports whether all dependencies exist and there is no cycle.
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

// FindCycle returns the places of steps that form a dependency cycle, each depending on the
// next and the last on the first, or nil. n is the number of steps, at most StepsMax, and
// dependsOn returns the places that a step depends on, each below n. It is a depth-first
// search that visits each step once.
func FindCycle(n int, dependsOn func(place uint16) []uint16) []uint16 {
	const open, done = 1, 2
	var state [StepsMax]uint8
	var path [StepsMax]struct{ place, next uint16 } // next is an index in dependsOn(place)
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

// Suits reports whether the step can have the status, given which steps have completed, and whether it waits for a
// signal, until a time: a step that others block does not yet, and one that nothing else blocks does.
func (p *Plan) Suits(place int, status Status, completed []bool, awaitsSignal bool) bool {
	waits := false
	for _, on := range p.Steps[place].DependsOn {
		waits = waits || !completed[on]
	}
	switch status {
	case StatusBlocked:
		return waits != awaitsSignal
	case StatusFailed, StatusCancelled: // possible before it could begin, and after
		return true
	}
	return !waits
}

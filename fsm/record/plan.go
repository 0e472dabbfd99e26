package record

import "slices"

const (
	// StepsMax bounds the steps of a parent.
	StepsMax = 1000
	// PlanNamesMax bounds Plan.NamesBytes when steps are added to a plan. When a plan is
	// submitted, the size of the request bounds them.
	PlanNamesMax = 8 << 20
)

// Plan is the steps of a parent: a directed acyclic graph. The parent, its steps and all
// their copies share it, and it never changes: steps that are added later make another plan.
// A step's place is its index in Steps; IDOf has its id.
type Plan struct {
	Steps []PlannedStep // 1 to 1,000
	// Added has the ids of the steps that were added while the parent ran, the last ones in
	// Steps. The ids of those before them, submitted with the parent, follow the parent's.
	Added []uint64
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

// Grown returns the plan with more steps, whose ids are first, first + 1 and so on.
func (p *Plan) Grown(more []PlannedStep, first uint64) *Plan {
	grown := *p
	grown.Steps = slices.Concat(p.Steps, more)
	grown.Added = slices.Clone(p.Added)
	for i := range more {
		grown.Added = append(grown.Added, first+uint64(i))
	}
	grown.Link()
	return &grown
}

// NamesBytes returns the bytes that the names of the steps, and of the steps that these depend on,
// take in an answer about the parent.
func (p *Plan) NamesBytes() (n int) {
	for i := range p.Steps {
		n += len(p.Steps[i].Name)
		for _, on := range p.Steps[i].DependsOn {
			n += len(`"",`) + len(p.Steps[on].Name)
		}
	}
	return n
}

// IDOf returns the id of the step at the place.
func (p *Plan) IDOf(parentID uint64, place int) uint64 {
	if submitted := len(p.Steps) - len(p.Added); place >= submitted {
		return p.Added[place-submitted]
	}
	return parentID + 1 + uint64(place)
}

// PlaceOf returns the place of the step with that id. ok is false if the plan has no such step.
func (p *Plan) PlaceOf(parentID, id uint64) (place int, ok bool) {
	submitted := len(p.Steps) - len(p.Added)
	if id > parentID && id-parentID <= uint64(submitted) {
		return int(id - parentID - 1), true
	}
	at, ok := slices.BinarySearch(p.Added, id)
	return submitted + at, ok
}

// Link computes the derived fields. It ignores dependencies on places without a step, which Sound
// finds.
func (p *Plan) Link() {
	counts := make([]int, len(p.Steps))
	edges := 0
	p.Bytes = PlannedStepBytes*len(p.Steps) + addedBytes*len(p.Added)
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

// Suits reports whether a saved step can have the status, given which steps have completed.
// awaitsSignal says that it has a time by which its signal must come. That time is set only once
// all steps that it depends on have completed, so a blocked step waits either for other steps or
// for its signal, not for both.
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

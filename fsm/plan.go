package fsm

// stepsMax bounds the steps of a parent.
const stepsMax = 1000

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
}

// PlannedStep is one step of a plan.
type PlannedStep struct {
	Name      string
	DependsOn []uint16 // places, ascending; nil = none
	// dependents are the places of the steps that depend on it, ascending. It is
	// derived.
	dependents []uint16
}

// newPlan returns the plan of what was submitted.
func newPlan(n *NewParent) *Plan {
	p := &Plan{Steps: make([]PlannedStep, len(n.Steps)), ByClaim: n.ByClaim, Continue: n.Continue}
	for i := range n.Steps {
		p.Steps[i].Name, p.Steps[i].DependsOn = n.Steps[i].Name, n.Steps[i].DependsOn
	}
	p.link()
	return p
}

// link builds what is derived. Places that no step has are passed over.
func (p *Plan) link() {
	for place := range p.Steps {
		for _, on := range p.Steps[place].DependsOn {
			if int(on) < len(p.Steps) {
				p.Steps[on].dependents = append(p.Steps[on].dependents, uint16(place))
			}
		}
	}
}

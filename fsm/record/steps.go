package record

// Parent has the additional fields of a task with steps. It is never changed in place.
type Parent struct {
	Plan         *Plan
	Finalization *Finalization // nil until the first claim of it
}

// Step says which parent a step belongs to. It never changes.
type Step struct {
	ParentID uint64
	Plan     *Plan // the parent's
}

// Parent returns the task's fields as a parent, or nil if it has no steps.
func (t *Task) Parent() *Parent { return t.Opts().Parent }

// Step returns the task's fields as a step, or nil if it has no parent.
func (t *Task) Step() *Step { return t.Opts().Step }

// StepPlace returns the place of a step in its parent's plan.
func (t *Task) StepPlace() int { return int(t.ID - t.Options.Step.ParentID - 1) }

// Family returns the id of the parent that the task is, or is a step of, with the number of
// its steps. For any other task it returns the task's own id and 0.
func (t *Task) Family() (parentID uint64, steps int) {
	id, plan := ParentOf(t)
	if plan == nil {
		return t.ID, 0
	}
	return id, len(plan.Steps)
}

// ParentOf returns the id of the task's parent, or its own if it is one, and their plan,
// which is nil if the task is neither a parent nor a step.
func ParentOf(t *Task) (id uint64, plan *Plan) {
	o := t.Opts()
	switch {
	case o.Step != nil:
		return o.Step.ParentID, o.Step.Plan
	case o.Parent != nil:
		return t.ID, o.Parent.Plan
	}
	return 0, nil
}

// bytesOfSteps estimates the additional memory of a parent.
func bytesOfSteps(o *Options) int {
	if o.Parent == nil {
		return 0
	}
	n := parentBytes + o.Parent.Plan.Bytes
	if f := o.Parent.Finalization; f != nil {
		n += finalizationBytes + len(f.ProcessorID)
		for i := range f.Attempts {
			n += attemptedBytes + len(f.Attempts[i].ProcessorID) + len(f.Attempts[i].Holder)
		}
	}
	return n
}

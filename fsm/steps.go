package fsm

// Parent is what a task with steps has beside. It is never changed in place.
type Parent struct {
	Plan         *Plan
	Finalization *Finalization // nil until the first claim of it
}

// Step is a task's place among the steps of its parent. It is never changed.
type Step struct {
	ParentID uint64
	Plan     *Plan // the parent's
}

// Parent returns what the task has as a parent, nil if it has no steps.
func (t *Task) Parent() *Parent { return t.options().Parent }

// Step returns the task's place among its parent's steps, nil if it has no
// parent.
func (t *Task) Step() *Step { return t.options().Step }

// StepPlace returns the place in its parent's plan of a task that is a step.
func (t *Task) StepPlace() int { return int(t.ID - t.Options.Step.ParentID - 1) }

// Steps returns how the steps of the parent are, in the plan's order; nil if the
// task is not there or has none.
func (m *Machine) Steps(id uint64) []StepView {
	t := m.tasks.get(id)
	if t == nil || t.Parent() == nil {
		return nil
	}
	views := make([]StepView, len(t.Parent().Plan.Steps))
	for place := range views {
		if s := m.tasks.get(id + 1 + uint64(place)); s != nil {
			views[place] = StepView{Type: s.Type, Status: s.Status, Error: s.Error}
		}
	}
	return views
}

// Reach returns how many tasks a command that ends, retries or deletes the task
// may change: 1, and with the steps of its parent, or its own, these too. 0 if
// there is no such task. Entries of many commands are bounded by it.
func (m *Machine) Reach(id uint64) int {
	t := m.tasks.get(id)
	switch {
	case t == nil:
		return 0
	case t.Parent() != nil:
		return 1 + len(t.Parent().Plan.Steps)
	case t.Step() != nil:
		return 1 + len(t.Step().Plan.Steps)
	}
	return 1
}

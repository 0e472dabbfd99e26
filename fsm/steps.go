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
	t := m.tasks.Get(id)
	if t == nil || t.Parent() == nil {
		return nil
	}
	views := make([]StepView, len(t.Parent().Plan.Steps))
	for place := range views {
		if s := m.tasks.Get(id + 1 + uint64(place)); s != nil {
			views[place] = StepView{Type: s.Type, Status: s.Status, Error: s.Error}
		}
	}
	return views
}

// withSteps adds to the answer about one task the steps of that task, if it is a
// parent.
func (m *Machine) withSteps(result Result) Result {
	t := result.Task
	if len(result.Submitted) == 1 {
		t = result.Submitted[0].Task
	}
	if t != nil && result.Code == "" && t.Parent() != nil {
		result.Parent = &ParentAnswer{Steps: m.Steps(t.ID)}
	}
	return result
}

// addParent adds a parent, and its steps behind it, and returns it. The trail
// tells the message with the parent.
func (m *Machine) addParent(n *NewTask, message string) *Task {
	plan := newPlan(n.Parent)
	t := m.newTask(n)
	t.Status = StatusRunning
	o := optionsOf(n)
	o.ExpiresAt, o.Group = 0, "" // it is never claimed
	o.Parent = &Parent{Plan: plan}
	t.setOptions(o)
	m.add(t, message)
	step := &Step{ParentID: t.ID, Plan: plan}
	for place := range n.Parent.Steps {
		m.addStep(&n.Parent.Steps[place].Task, step, len(plan.Steps[place].DependsOn) > 0)
	}
	return t
}

// addStep adds a step: blocked if it depends on others.
func (m *Machine) addStep(n *NewTask, step *Step, blocked bool) {
	t := m.newTask(n)
	m.setRunAt(t, m.runAtOf(n))
	if blocked {
		t.Status = StatusBlocked
	}
	o := optionsOf(n)
	o.Step = step
	t.setOptions(o)
	m.add(t, "")
}

// Family returns the id of the task that has the steps of which this is one, or
// that it has itself, and how many these are; of any other task its own id, and 0.
func (t *Task) Family() (parentID uint64, steps int) {
	id, plan := parentOf(t)
	if plan == nil {
		return t.ID, 0
	}
	return id, len(plan.Steps)
}

// Reach returns how many tasks a command that ends, retries or deletes the task
// may change: 1, and with the steps of its parent, or its own, these too. 0 if
// there is no such task.
func (m *Machine) Reach(id uint64) int {
	t := m.tasks.Get(id)
	if t == nil {
		return 0
	}
	_, steps := t.Family()
	return 1 + steps
}

// waitsForSteps returns the names of the steps that the step depends on and that
// have not completed: at most whyStepsMax, in the plan's order.
func (m *saved) waitsForSteps(t *Task) []string {
	var names []string
	s := t.Step()
	for _, on := range s.Plan.Steps[t.StepPlace()].DependsOn {
		if len(names) == whyStepsMax {
			break
		}
		if m.tasks.Get(s.ParentID+1+uint64(on)).Status != StatusCompleted {
			names = append(names, s.Plan.Steps[on].Name)
		}
	}
	return names
}

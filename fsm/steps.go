package fsm

import "github.com/claimq/claimq/fsm/record"

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
func (m *Machine) addParent(n *record.NewTask, message string) *record.Task {
	plan := record.NewPlan(n.Parent)
	t := m.newTask(n)
	t.Status = record.StatusRunning
	o := optionsOf(n)
	o.ExpiresAt, o.Group = 0, "" // it is never claimed
	o.Parent = &record.Parent{Plan: plan}
	t.SetOptions(o)
	m.add(t, message)
	step := &record.Step{ParentID: t.ID, Plan: plan}
	for place := range n.Parent.Steps {
		m.addStep(&n.Parent.Steps[place].Task, step, len(plan.Steps[place].DependsOn) > 0)
	}
	return t
}

// addStep adds a step: blocked if it depends on others.
func (m *Machine) addStep(n *record.NewTask, step *record.Step, blocked bool) {
	t := m.newTask(n)
	m.setRunAt(t, m.runAtOf(n))
	if blocked {
		t.Status = record.StatusBlocked
	}
	o := optionsOf(n)
	o.Step = step
	t.SetOptions(o)
	m.add(t, "")
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
func (m *saved) waitsForSteps(t *record.Task) []string {
	var names []string
	s := t.Step()
	for _, on := range s.Plan.Steps[t.StepPlace()].DependsOn {
		if len(names) == whyStepsMax {
			break
		}
		if m.tasks.Get(s.ParentID+1+uint64(on)).Status != record.StatusCompleted {
			names = append(names, s.Plan.Steps[on].Name)
		}
	}
	return names
}

package fsm

import (
	"iter"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Steps returns how the steps of the parent are, in the plan's order; nil if the
// task is not there or has none.
func (m *Machine) Steps(id uint64) []StepView {
	t := m.Get(id)
	if t == nil || t.Parent() == nil {
		return nil
	}
	views := make([]StepView, len(t.Parent().Plan.Steps))
	for place := range views {
		if s := m.Get(id + 1 + uint64(place)); s != nil {
			views[place] = StepView{Type: s.Type, Status: s.Status, Error: s.Error}
		}
	}
	return views
}

// StepTypes yields the task types of the parent's steps by their places; none if the task is
// not there or has none. It unpacks none of them.
func (m *Machine) StepTypes(id uint64) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		t := m.Get(id)
		if t == nil || t.Parent() == nil {
			return
		}
		for place := range t.Parent().Plan.Steps {
			if !yield(place, m.typeOfTask(id+1+uint64(place))) {
				return
			}
		}
	}
}

// typeOfTask returns the type of a task that is there.
func (m *saved) typeOfTask(id uint64) string {
	kept := m.tasks.Look(id)
	if kept.Record != nil {
		return kept.Record.Type
	}
	for r := (record.Scanner{Rest: kept.Packed}); r.NextUntil(record.FieldType); {
		if r.Num == record.FieldType {
			return string(r.Text)
		}
	}
	return ""
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
	t := m.Get(id)
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
		if m.Get(s.ParentID+1+uint64(on)).Status != record.StatusCompleted {
			names = append(names, s.Plan.Steps[on].Name)
		}
	}
	return names
}

// attachSteps looks at what a saved task has to do with its parent or its steps,
// and gives the steps of a parent its plan. It returns what is wrong, "" if
// nothing is. Parents come before their steps, and all records are there.
func (m *saved) attachSteps(t *record.Task) (problem string) {
	switch o := t.Opts(); {
	case o.Parent != nil:
		return m.attachPlan(t, o.Parent.Plan)
	case o.Step != nil:
		return m.problemOfStep(t, o.Step)
	}
	return ""
}

// problemOfStep returns what is wrong with a saved step, "" if nothing is. Its
// parent has looked at the rest.
func (m *saved) problemOfStep(t *record.Task, s *record.Step) string {
	parent := m.Get(s.ParentID)
	switch {
	case parent == nil || parent.Parent() == nil:
		return "its parent is not there"
	case t.ID <= s.ParentID || t.ID-s.ParentID > uint64(len(parent.Parent().Plan.Steps)):
		return "its parent has no place for it"
	case t.RemoveAt != 0:
		return "it is a step that is removed before its parent"
	}
	return ""
}

// attachPlan gives the plan of a saved parent to its steps. It returns what is
// wrong with them, "" if nothing is.
func (m *saved) attachPlan(t *record.Task, p *record.Plan) (problem string) {
	if !p.Sound() {
		return "its steps depend on each other, or on what is not there"
	}
	completed := make([]bool, len(p.Steps))
	step := &record.Step{ParentID: t.ID, Plan: p}
	for place := range p.Steps {
		s := m.Get(t.ID + 1 + uint64(place))
		switch {
		case s == nil || s.Step() == nil || s.Step().ParentID != t.ID:
			return "it lacks a step"
		case t.Status.Ended() && !s.Status.Ended():
			return "it has ended before a step of it"
		case s.Step().Plan == nil:
			s.Options.Step = step // nobody has seen it yet
		}
		completed[place] = s.Status == record.StatusCompleted
	}
	for place := range p.Steps {
		s := m.Get(t.ID + 1 + uint64(place))
		if !p.Suits(place, s.Status, completed) {
			return "a step waits for others, or does not, as it should not"
		}
	}
	return ""
}

// cancelParent cancels the steps of the running parent, and the parent with the
// last of them: at once if none is claimed.
func (m *Machine) cancelParent(t *record.Task) Result {
	if t.CancelRequested {
		return Result{Repeated: true, Task: m.copyOf(t)}
	}
	id, ps := t.ID, m.parents[t.ID]
	if ps.counts[record.StatusClaimed] > 0 {
		t = m.edit(id)
		t.CancelRequested = true
		m.edited(t)
		m.tellOf(event.CancelRequested, t, "")
	}
	m.following = true // the parent ends here, and not as its steps would have it
	m.stopSteps(id, ps)
	if ps.open() == 0 {
		m.endParent(id, parentEnd{To: record.StatusCancelled})
	}
	m.followSteps()
	return Result{Task: m.copyOf(m.Get(id))}
}

// retryParent retries the steps of the parent that failed or were cancelled, all
// of them or none. A parent that had ended runs again.
func (m *Machine) retryParent(t *record.Task, c command.Retry) Result {
	running, ps := t.Status == record.StatusRunning, m.parents[c.ID]
	switch {
	case running && t.CancelRequested:
		return m.refused(CodeTaskCancelled, t)
	case running && ps.counts[record.StatusFailed]+ps.counts[record.StatusCancelled] == 0,
		running && c.Token != 0 && c.Token == t.Token: // its steps may have failed again since
		return Result{Repeated: true, Task: m.copyOf(t)}
	case c.Token != 0 && c.Token != t.Token && (!running || m.Level() >= record.LevelRepeats):
		return m.refused(CodeStaleClaim, t)
	}
	if refusal, refused := m.cannotRetrySteps(t, c, m.forgettingGoneByKeyName); refused {
		return m.withCopy(refusal)
	}
	if !running {
		t = m.edit(c.ID)
		token := t.Token
		m.unend(t)
		if m.Level() >= record.LevelRepeats {
			t.Token = token
		}
		t.Status = record.StatusRunning
		m.edited(t)
		m.tellOf(event.Retried, t, "")
	}
	m.retrySteps(c, ps)
	if ps.open() == 0 {
		m.endWithSteps(c.ID) // it was cancelled when its steps had completed
	}
	return Result{Task: m.copyOf(m.Get(c.ID))}
}

// cannotRetrySteps returns why the parent cannot be retried: another task has its
// key, one of the steps has no attempts left, or it would be undone. The refusal has the
// state's own task.
func (m *Machine) cannotRetrySteps(t *record.Task, c command.Retry, find goneFinder) (refusal Result, refused bool) {
	if refusal, refused := m.keyTaken(t, find); refused {
		return refusal, true
	}
	for place := range t.Parent().Plan.Steps {
		s := m.Get(t.ID + 1 + uint64(place))
		if !retriable(s) {
			continue
		}
		if !mayRetry(s, c) {
			return Result{Code: CodeMaxAttemptsReached, Task: s}, true
		}
		if refusal, refused := m.wouldBeUndone(s); refused {
			return refusal, true
		}
	}
	return Result{}, false
}

// wouldBeUndone refuses the retry of the step, which failed or was cancelled, if a claimed one was
// asked to stop whose end as cancelled would cancel this one again. Where the others go on after a
// failure that is only one that this one waits for: itself, or behind a blocked step.
func (m *Machine) wouldBeUndone(t *record.Task) (refusal Result, refused bool) {
	s := t.Step()
	if m.parents[s.ParentID].asked == 0 || m.Level() < record.LevelAsked {
		return Result{}, false
	}
	if s.Plan.Continue && !slices.ContainsFunc(s.Plan.Steps[t.StepPlace()].DependsOn, func(place uint16) bool {
		on := m.Get(s.ParentID + 1 + uint64(place))
		return on.Status == record.StatusBlocked || askedToStop(on)
	}) {
		return Result{}, false
	}
	asked := s.ParentID + 1
	for !askedToStop(m.Get(asked)) {
		asked++
	}
	return Result{Code: CodeTaskCancelled, Reason: ReasonCancelRequested, Task: m.Get(asked)}, true
}

// askedToStop reports whether the step is claimed, and to be cancelled.
func askedToStop(s *record.Task) bool { return s.Status == record.StatusClaimed && s.CancelRequested }

// retriable reports whether a retry of its parent retries the step.
func retriable(s *record.Task) bool {
	return s.Status == record.StatusFailed || s.Status == record.StatusCancelled
}

// retrySteps retries the steps of the parent that failed or were cancelled.
func (m *Machine) retrySteps(c command.Retry, ps *parentState) {
	for place := range ps.waiting {
		id := c.ID + 1 + uint64(place)
		if !retriable(m.Get(id)) {
			continue
		}
		t := m.edit(id)
		t.MaxAttempts = raisedMax(t.MaxAttempts, c.AddAttempts)
		m.revive(t)
		m.edited(t)
		m.tellOf(event.Retried, t, "")
	}
}

// cannotRetryStep returns why the step, which failed or was cancelled, cannot be
// retried by itself: its parent has ended, or is being cancelled, or it depends on
// one that failed or was cancelled, and would stay blocked, or it would be undone. The
// refusal has the state's own task.
func (m *Machine) cannotRetryStep(t *record.Task) (refusal Result, refused bool) {
	if t.Step() == nil || !retriable(t) {
		return Result{}, false
	}
	parent := m.Get(t.Step().ParentID)
	switch {
	case parent.Status.Ended():
		return Result{Code: endedCode(parent.Status), Reason: ReasonParentEnded, Task: parent}, true
	case parent.CancelRequested:
		return Result{Code: CodeTaskCancelled, Task: parent}, true
	}
	for _, place := range t.Step().Plan.Steps[t.StepPlace()].DependsOn {
		if on := m.Get(parent.ID + 1 + uint64(place)); retriable(on) {
			return Result{Code: endedCode(on.Status), Reason: ReasonDependencyEnded, Task: on}, true
		}
	}
	return m.wouldBeUndone(t)
}

// deleteSteps removes the steps of an ended parent that was just deleted.
func (m *Machine) deleteSteps(parent *record.Task) {
	for place := range parent.Parent().Plan.Steps {
		t := m.Get(parent.ID + 1 + uint64(place))
		m.drop(t)
		m.tellOf(event.Deleted, t, "")
	}
}

// followSteps does what follows from the steps that have ended, first come first
// served: what it ends itself comes last. It is over when nothing follows any
// more: each step ends once.
func (m *Machine) followSteps() {
	m.following = true
	for i := 0; i < len(m.stepsEnded); i++ {
		m.followStep(m.stepsEnded[i])
	}
	m.stepsEnded, m.following = m.stepsEnded[:0], false // at most some thousands
}

// followStep does what follows from the end of the step: it frees those that wait
// for it, or cancels them, or all of its parent; and if it was the last one, it
// ends the parent.
func (m *Machine) followStep(id uint64) {
	t := m.Get(id)
	s := t.Step()
	ps := m.parents[s.ParentID]
	switch {
	case t.Status != record.StatusCompleted && !s.Plan.Continue:
		m.stopSteps(s.ParentID, ps)
	case ps.counts[record.StatusBlocked] > 0:
		m.followDependents(t, ps)
	}
	if ps.open() == 0 {
		m.endWithSteps(s.ParentID)
	}
}

// followDependents frees the blocked steps that waited for this one alone, which
// has completed, or cancels those that waited for it and never can begin.
func (m *Machine) followDependents(t *record.Task, ps *parentState) {
	s := t.Step()
	for _, place := range s.Plan.Steps[t.StepPlace()].Dependents {
		id := s.ParentID + 1 + uint64(place)
		switch {
		case m.Get(id).Status != record.StatusBlocked:
		case t.Status != record.StatusCompleted:
			m.stop(id)
		case ps.waiting[place] == 0:
			m.unblock(id)
		}
	}
}

// unblock lets a blocked step be claimed, once its time has come.
func (m *Machine) unblock(id uint64) {
	t := m.edit(id)
	m.setRunAt(t, t.RunAt)
	m.edited(t)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
}

// stopSteps cancels the parent's steps that are not claimed, in the plan's order,
// and asks those that are. It looks at them only if there is one of these.
func (m *Machine) stopSteps(parentID uint64, ps *parentState) {
	if ps.unclaimed() == 0 && ps.unasked() == 0 {
		return
	}
	for place := range ps.waiting {
		id := parentID + 1 + uint64(place)
		if t := m.Get(id); !t.Status.Ended() && !t.CancelRequested {
			m.stop(id)
		}
	}
}

// endWithSteps ends the parent, whose steps have all ended, if it ends by itself.
func (m *Machine) endWithSteps(id uint64) {
	t := m.Get(id)
	switch {
	case t.Status.Ended():
	case t.CancelRequested:
		m.endParent(id, parentEnd{To: record.StatusCancelled})
	case !t.Parent().Plan.ByClaim:
		m.endParent(id, m.autoEnd(t))
	}
}

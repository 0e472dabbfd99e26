package fsm

import (
	"iter"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Steps returns the state of the parent's steps, in the plan's order; nil if the task does not
// exist or has none.
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

// StepTypes yields the task types of the parent's steps by their places, without unpacking the
// steps. It yields nothing if the task does not exist or has no steps.
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

// typeOfTask returns the type of an existing task.
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

// withSteps adds the steps to the result about a parent.
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

// addParent adds a parent and then its steps, and returns the parent. message goes with its event.
func (m *Machine) addParent(n *record.NewTask, message string) *record.Task {
	plan := record.NewPlan(n.Parent)
	t := m.newTask(n)
	t.Status = record.StatusRunning
	o := optionsOf(n)
	o.ExpiresAt, o.Group = 0, "" // a parent is never claimed
	o.Parent = &record.Parent{Plan: plan}
	t.SetOptions(o)
	m.add(t, message)
	step := &record.Step{ParentID: t.ID, Plan: plan}
	for place := range n.Parent.Steps {
		m.addStep(&n.Parent.Steps[place].Task, step, len(plan.Steps[place].DependsOn) > 0)
	}
	return t
}

// addStep adds a step. blocked is true if it depends on others.
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

// Reach returns how many tasks may change if the task ends, is retried or deleted: 1, plus all
// steps of its parent or of its own. 0 if the task does not exist.
func (m *Machine) Reach(id uint64) int {
	t := m.Get(id)
	if t == nil {
		return 0
	}
	_, steps := t.Family()
	return 1 + steps
}

// waitsForSteps returns the names of the step's dependencies that have not completed: at most
// whyStepsMax, in the plan's order.
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

// attachSteps checks how a saved task relates to its parent or steps, and gives a parent's plan to
// its steps. It returns what is wrong, or "". All records must be loaded, and parents must come
// before their steps.
func (m *saved) attachSteps(t *record.Task) (problem string) {
	switch o := t.Opts(); {
	case o.Parent != nil:
		return m.attachPlan(t, o.Parent.Plan)
	case o.Step != nil:
		return m.problemOfStep(t, o.Step)
	}
	return ""
}

// problemOfStep returns what is wrong with a saved step, or "". The rest is checked with its
// parent.
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

// attachPlan gives the plan of a saved parent to its steps. It returns what is wrong with them, or
// "".
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
			s.Options.Step = step // safe in place, because nothing has read it yet
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

// cancelParent cancels the steps of a running parent. The parent ends with the last of them, at
// once if none is claimed.
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
	m.following = true // so that the parent ends here, and not as its steps would end it
	m.stopSteps(id, ps)
	if ps.open() == 0 {
		m.endParent(id, parentEnd{To: record.StatusCancelled})
	}
	m.followSteps()
	return Result{Task: m.copyOf(m.Get(id))}
}

// retryParent retries all steps that failed or were cancelled, or none. A parent that had ended
// runs again.
func (m *Machine) retryParent(t *record.Task, c command.Retry) Result {
	running, ps := t.Status == record.StatusRunning, m.parents[c.ID]
	switch {
	case running && t.CancelRequested:
		return m.refused(CodeTaskCancelled, t)
	case running && ps.counts[record.StatusFailed]+ps.counts[record.StatusCancelled] == 0,
		running && c.Token != 0 && c.Token == t.Token: // a repeat, even if its steps have failed again since
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
		m.endWithSteps(c.ID) // it was cancelled after its steps had completed
	}
	return Result{Task: m.copyOf(m.Get(c.ID))}
}

// cannotRetrySteps returns the refusal if the parent cannot be retried: another task has its key,
// a step has no attempts left, or the retry would be undone. The refusal contains the state's own
// task.
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

// wouldBeUndone refuses the retry of a failed or cancelled step if a claimed step was asked to
// stop, because the end of that step would cancel this one again. With Plan.Continue this applies
// only if this step depends on it, directly or through a blocked step.
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

// askedToStop reports whether the step is claimed and was asked to stop.
func askedToStop(s *record.Task) bool { return s.Status == record.StatusClaimed && s.CancelRequested }

// retriable reports whether a retry of the parent includes the step.
func retriable(s *record.Task) bool {
	return s.Status == record.StatusFailed || s.Status == record.StatusCancelled
}

// retrySteps retries the parent's steps that failed or were cancelled.
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

// cannotRetryStep returns the refusal if the failed or cancelled step cannot be retried by itself:
// its parent has ended or is being cancelled, it depends on a step that did not complete and would
// stay blocked, or the retry would be undone. The refusal contains the state's own task.
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

// followSteps applies the consequences of steps that have ended, in order. Steps that end because
// of that are added to the end of the queue; it terminates because each step ends once.
func (m *Machine) followSteps() {
	m.following = true
	for i := 0; i < len(m.stepsEnded); i++ {
		m.followStep(m.stepsEnded[i])
	}
	m.stepsEnded, m.following = m.stepsEnded[:0], false // some thousands at most
}

// followStep applies the consequences of the end of a step: it unblocks or cancels the steps that
// wait for it, or cancels all of its parent; and after the last step, it ends the parent.
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

// followDependents unblocks the steps that waited only for this one if it has completed, or else
// cancels those that depend on it, as they can never begin.
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

// unblock makes a blocked step claimable, once its time has come.
func (m *Machine) unblock(id uint64) {
	t := m.edit(id)
	m.setRunAt(t, t.RunAt)
	m.edited(t)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
}

// stopSteps cancels the parent's unclaimed steps in the plan's order and asks the claimed ones to
// stop. It scans the steps only if there are any.
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

// endWithSteps ends a parent whose steps have all ended, if it ends automatically.
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

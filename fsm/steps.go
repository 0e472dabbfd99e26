package fsm

import (
	"iter"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// changesMax bounds how many tasks one command changes, including steps. It may be exceeded
// by the steps of one parent, because the last change may reach all of them.
const changesMax = 10_000

// StepTypes yields the task types of the parent's steps by their places, without unpacking the
// steps. It yields nothing if the task does not exist or has no steps.
func (m *Machine) StepTypes(id uint64) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		t := m.Get(id)
		if t == nil || t.Parent() == nil {
			return
		}
		plan := t.Parent().Plan
		for place := range plan.Steps {
			if !yield(place, typeOfTask(m, plan.IDOf(id, place))) {
				return
			}
		}
	}
}

// typeOfTask returns the type of an existing task.
func typeOfTask(m *Machine, id uint64) string {
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
func withSteps(m *Machine, result Result) Result {
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
func addParent(m *Machine, n *record.NewTask, message string) *record.Task {
	plan := record.NewPlan(n.Parent)
	t := newTask(m, n)
	t.Status = record.StatusRunning
	o := n.Options()
	o.ExpiresAt, o.Group, o.ShareKey = 0, "", "" // a parent is never claimed
	o.Parent = &record.Parent{Plan: plan}
	t.SetOptions(o)
	addNew(m, t, message)
	step := &record.Step{ParentID: t.ID, Plan: plan}
	for place := range n.Parent.Steps {
		addStep(m, &n.Parent.Steps[place].Task, step, len(plan.Steps[place].DependsOn) > 0)
	}
	return t
}

// addStep adds a step. blocked is true if it depends on others.
func addStep(m *Machine, n *record.NewTask, step *record.Step, blocked bool) {
	t := newTask(m, n)
	o := n.Options()
	o.Step = step
	t.SetOptions(o)
	if setReady(m, t, runAtOf(m, n)); blocked {
		t.Status = record.StatusBlocked
		if o.SignalMS != 0 {
			awaitSignal(m, t, 0)
		}
	}
	addNew(m, t, "")
}

// growPlan replaces the plan of the parent, and of each of its steps, by one with more steps,
// which the caller then adds. It returns what these have in common.
func growPlan(m *Machine, s *record.Step, more []record.PlannedStep) *record.Step {
	grown := &record.Step{ParentID: s.ParentID, Plan: s.Plan.Grown(more, m.header.NextID)}
	t := m.edit(s.ParentID)
	o := *t.Options
	o.Parent = &record.Parent{Plan: grown.Plan, Finalization: o.Parent.Finalization}
	t.SetOptions(o)
	m.edited(t)
	for place := range s.Plan.Steps {
		id := grown.Plan.IDOf(s.ParentID, place)
		t := m.tasks.Edit(id)
		o := *t.Options
		o.Step = grown
		t.SetOptions(o) // no index depends on it
		m.tasks.Rest(id)
	}
	m.parents.grow(s.ParentID, grown.Plan, func(place uint16) bool {
		on := m.Get(grown.Plan.IDOf(s.ParentID, int(place)))
		return on != nil && on.Status == record.StatusCompleted
	})
	return grown
}

// Reach returns how many tasks may change if the task ends, is retried or deleted: 1, plus all
// steps of its parent, or its own steps. 0 if the task does not exist.
func (m *Machine) Reach(id uint64) int {
	t := m.Get(id)
	if t == nil {
		return 0
	}
	_, steps := t.Family()
	return 1 + steps
}

// cancelParent cancels the steps of a running parent. The parent ends with the last of them, at
// once if none is claimed.
func cancelParent(m *Machine, t *record.Task) Result {
	if t.CancelRequested {
		return Result{Repeated: true, Task: m.copyOf(t)}
	}
	id, ps := t.ID, m.parents.byID[t.ID]
	if ps.counts[record.StatusClaimed] > 0 {
		t = m.edit(id)
		t.CancelRequested = true
		m.edited(t)
		m.tellOf(event.CancelRequested, t, "")
	}
	stopSteps(m, id, ps)
	if ps.open() == 0 {
		endParent(m, id, parentEnd{To: record.StatusCancelled})
	}
	followSteps(m)
	return Result{Task: m.copyOf(m.Get(id))}
}

// retryParent retries all steps that failed or were cancelled, or none. A parent that had ended
// runs again.
func retryParent(m *Machine, t *record.Task, c command.Retry) Result {
	running, ps := t.Status == record.StatusRunning, m.parents.byID[c.ID]
	switch {
	case running && t.CancelRequested:
		return m.refused(CodeTaskCancelled, t)
	case running && ps.counts[record.StatusFailed]+ps.counts[record.StatusCancelled] == 0,
		running && c.Token != 0 && c.Token == t.Token: // a repeat, even if its steps have failed again since
		return Result{Repeated: true, Task: m.copyOf(t)}
	case c.Token != 0 && c.Token != t.Token:
		return m.refused(CodeStaleClaim, t)
	}
	if refusal, refused := cannotRetrySteps(m, t, c, (*goneTasks).namedOrForget); refused {
		return m.withCopy(refusal)
	}
	if !running {
		runAgain(m, c.ID)
	}
	retrySteps(m, c, t.Parent().Plan)
	if ps.open() == 0 {
		endWithSteps(m, c.ID) // it was cancelled after its steps had completed
	}
	return Result{Task: m.copyOf(m.Get(c.ID))}
}

// runAgain undoes the end of a parent. The parent keeps its token, so that a repeat of the retry is
// recognized.
func runAgain(m *Machine, id uint64) {
	t := m.edit(id)
	token := t.Token
	unend(m, t)
	t.Token = token
	t.Status = record.StatusRunning
	m.edited(t)
	m.tellOf(event.Retried, t, "")
}

// cannotRetrySteps returns the refusal if the parent cannot be retried: another task has its key,
// a step has no attempts left, or the retry would be undone. The refusal contains the state's own
// task.
func cannotRetrySteps(m *Machine, t *record.Task, c command.Retry, find goneFinder) (refusal Result, refused bool) {
	if refusal, refused := keyTaken(m, t, find); refused {
		return refusal, true
	}
	plan := t.Parent().Plan
	for place := range plan.Steps {
		s := m.Get(plan.IDOf(t.ID, place))
		if !retriable(s) {
			continue
		}
		if !mayRetry(s, c) {
			return Result{Code: CodeMaxAttemptsReached, Task: s}, true
		}
		if refusal, refused := wouldBeUndone(m, s); refused {
			return refusal, true
		}
	}
	return Result{}, false
}

// wouldBeUndone refuses the retry of a failed or cancelled step if a claimed step was asked to
// stop, because the end of that step would cancel this one again. With Plan.Continue this applies
// only if this step depends on it, directly or through a blocked step.
func wouldBeUndone(m *Machine, t *record.Task) (refusal Result, refused bool) {
	s := t.Step()
	if m.parents.byID[s.ParentID].asked == 0 {
		return Result{}, false
	}
	if s.Plan.Continue && !slices.ContainsFunc(s.Plan.Steps[t.StepPlace()].DependsOn, func(place uint16) bool {
		on := m.Get(s.Plan.IDOf(s.ParentID, int(place)))
		return on.Status == record.StatusBlocked && on.Opts().SignalUntil == 0 || askedToStop(on)
	}) {
		return Result{}, false
	}
	asked := 0
	for !askedToStop(m.Get(s.Plan.IDOf(s.ParentID, asked))) {
		asked++
	}
	return Result{Code: CodeTaskCancelled, Reason: ReasonCancelRequested, Task: m.Get(s.Plan.IDOf(s.ParentID, asked))}, true
}

// askedToStop reports whether the step is claimed and was asked to stop.
func askedToStop(s *record.Task) bool { return s.Status == record.StatusClaimed && s.CancelRequested }

// retriable reports whether a retry of the parent includes the step.
func retriable(s *record.Task) bool {
	return s.Status == record.StatusFailed || s.Status == record.StatusCancelled
}

// retrySteps retries the parent's steps that failed or were cancelled.
func retrySteps(m *Machine, c command.Retry, plan *record.Plan) {
	for place := range plan.Steps {
		id := plan.IDOf(c.ID, place)
		if !retriable(m.Get(id)) {
			continue
		}
		t := m.edit(id)
		t.MaxAttempts = raisedMax(t.MaxAttempts, c.AddAttempts)
		revive(m, t)
		m.edited(t)
		m.tellOf(event.Retried, t, "")
	}
}

// cannotRetryStep returns the refusal if the failed or cancelled step cannot be retried by itself:
// its parent has ended and cannot run again, or is being cancelled, it depends on a step that did
// not complete and would stay blocked, or the retry would be undone. The refusal contains the
// state's own task.
func cannotRetryStep(m *Machine, t *record.Task, find goneFinder) (refusal Result, refused bool) {
	if t.Step() == nil || !retriable(t) {
		return Result{}, false
	}
	parent := m.Get(t.Step().ParentID)
	switch {
	case parent.Status.Ended() && !mayRunAgain(parent):
		return Result{Code: endedCode(parent.Status), Reason: ReasonParentEnded, Task: parent}, true
	case parent.CancelRequested:
		return Result{Code: CodeTaskCancelled, Task: parent}, true
	}
	if refusal, refused := keyTaken(m, parent, find); refused {
		return refusal, true
	}
	for _, place := range t.Step().Plan.Steps[t.StepPlace()].DependsOn {
		if on := m.Get(t.Step().Plan.IDOf(parent.ID, int(place))); retriable(on) {
			return Result{Code: endedCode(on.Status), Reason: ReasonDependencyEnded, Task: on}, true
		}
	}
	return wouldBeUndone(m, t)
}

// mayRunAgain reports whether the retry of a single step makes the ended parent run again: the
// failure of a step was not the parent's. Other parents are retried with all of their steps.
func mayRunAgain(parent *record.Task) bool {
	return parent.Status != record.StatusCancelled && parent.Parent().Plan.Continue
}

// deleteSteps removes the steps of an ended parent that was just deleted.
func deleteSteps(m *Machine, parent *record.Task) {
	plan := parent.Parent().Plan
	for place := range plan.Steps {
		t := m.Get(plan.IDOf(parent.ID, place))
		drop(m, t)
		m.tellOf(event.Deleted, t, "")
	}
}

// settled is edited after a change that may have ended the task. If it is a step, it also applies
// the consequences for the other steps of its parent.
func settled(m *Machine, t *record.Task) {
	m.edited(t)
	if len(m.stepsEnded) > 0 {
		followSteps(m)
	}
}

// followSteps applies the consequences of steps that have ended, in order. Steps that end because
// of that are added to the end of the queue; it terminates because each step ends once.
func followSteps(m *Machine) {
	for i := 0; i < len(m.stepsEnded); i++ {
		followStep(m, m.stepsEnded[i])
	}
	m.stepsEnded = m.stepsEnded[:0] // some thousands at most
}

// followStep applies the consequences of the end of a step: it unblocks or cancels the steps that
// wait for it, or cancels all of its parent; and after the last step, it ends the parent.
func followStep(m *Machine, id uint64) {
	t := m.Get(id)
	s := t.Step()
	ps := m.parents.byID[s.ParentID]
	switch {
	case t.Status != record.StatusCompleted && !s.Plan.Continue:
		stopSteps(m, s.ParentID, ps)
	case ps.counts[record.StatusBlocked] > 0:
		followDependents(m, t, ps)
	}
	if ps.open() == 0 {
		endWithSteps(m, s.ParentID)
	}
}

// followDependents unblocks the steps that waited only for this one if it has completed, or else
// cancels those that depend on it, as they can never begin.
func followDependents(m *Machine, t *record.Task, ps *parentState) {
	s := t.Step()
	for _, place := range s.Plan.Steps[t.StepPlace()].Dependents {
		id := s.Plan.IDOf(s.ParentID, int(place))
		switch {
		case m.Get(id).Status != record.StatusBlocked:
		case t.Status != record.StatusCompleted:
			stopTask(m, id)
		case ps.waiting[place] == 0:
			unblock(m, id)
		}
	}
}

// unblock makes a blocked step claimable, once its signal and its time have come.
func unblock(m *Machine, id uint64) {
	t := m.edit(id)
	setReady(m, t, t.RunAt)
	m.edited(t)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
}

// stopSteps cancels the parent's unclaimed steps in the plan's order and asks the claimed ones to
// stop. It scans the steps only if there are any.
func stopSteps(m *Machine, parentID uint64, ps *parentState) {
	if ps.unclaimed() == 0 && ps.unasked() == 0 {
		return
	}
	plan := m.Get(parentID).Parent().Plan
	for place := range plan.Steps {
		id := plan.IDOf(parentID, place)
		if t := m.Get(id); !t.Status.Ended() && !t.CancelRequested {
			stopTask(m, id)
		}
	}
}

// endWithSteps ends a parent whose steps have all ended, if it ends automatically.
func endWithSteps(m *Machine, id uint64) {
	t := m.Get(id)
	switch {
	case t.Status.Ended():
	case t.CancelRequested:
		endParent(m, id, parentEnd{To: record.StatusCancelled})
	case !t.Parent().Plan.ByClaim:
		endParent(m, id, autoEnd(m, t))
	}
}

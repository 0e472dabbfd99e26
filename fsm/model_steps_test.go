package fsm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// modelPlan is the plan of what was submitted.
func modelPlan(n *record.NewParent) *record.Plan {
	p := &record.Plan{ByClaim: n.ByClaim, Continue: n.Continue}
	for place, step := range n.Steps {
		p.Bytes += record.PlannedStepBytes + len(step.Name) + record.DependencyBytes*len(step.DependsOn)
		one := record.PlannedStep{Name: step.Name, DependsOn: step.DependsOn, Dependents: []uint16{}}
		for other := range n.Steps {
			if slices.Contains(n.Steps[other].DependsOn, uint16(place)) {
				one.Dependents = append(one.Dependents, uint16(other))
			}
		}
		p.Steps = append(p.Steps, one)
	}
	return p
}

// submitParent makes the new task a parent: it runs from the start, and its steps
// come right behind it.
func (s *model) submitParent(t *record.Task, n *record.NewParent) {
	plan := modelPlan(n)
	o := *t.Opts()
	o.Parent = &record.Parent{Plan: plan}
	setPlainly(t, o)
	t.Status = record.StatusRunning
	s.tell(event.Submitted, t, nil, s.submitter)
	for place := range n.Steps {
		s.submitStep(n.Steps[place].Task, &record.Step{ParentID: t.ID, Plan: plan})
	}
}

// submitStep adds a step, which is blocked if it depends on any that has not completed.
func (s *model) submitStep(n record.NewTask, of *record.Step) {
	step := s.newTask(n)
	o := *step.Opts()
	o.Step = of
	setPlainly(step, o)
	steps := s.stepsOf(s.find(of.ParentID))
	for _, on := range of.Plan.Steps[slices.Index(steps, step)].DependsOn {
		if int(on) >= len(steps) || steps[on].Status != record.StatusCompleted {
			step.Status = record.StatusBlocked
			s.setSignalUntil(step, 0)
		}
	}
	s.tell(event.Submitted, step, nil, "")
	if step.Status == record.StatusScheduled {
		s.tellWait(step, nil)
	}
}

// addSteps adds steps to the parent of the claimed step.
func (s *model) addSteps(c command.AddSteps) Result {
	r := s.settle(c.Hold, record.OutcomeNone, func(*record.Task) {})
	if r.Code != "" {
		return r
	}
	t := s.find(c.ID)
	if t.Opts().Step == nil {
		r := s.refuse(CodeTaskNotClaimable, t)
		r.Reason = "no_parent"
		return r
	}
	p := s.find(t.Opts().Step.ParentID)
	had := s.stepsOf(p)
	names := map[string]int{}
	for place, step := range t.Opts().Step.Plan.Steps {
		names[step.Name] = place
	}
	placed := map[string]int{}
	for _, n := range c.Steps {
		place, has := names[n.Name]
		if !has {
			place = len(names)
			names[n.Name] = place
		}
		placed[n.Name] = place
	}
	if len(names) > len(had) && t.CancelRequested {
		r := s.refuse(CodeTaskCancelled, t)
		r.Reason = "cancel_requested"
		return r
	}
	var added []record.PlannedStep
	for i, n := range c.Steps {
		one, refusal := s.plannedStep(t, had, c.Steps, i, names, placed)
		if refusal != nil {
			return *refusal
		}
		if placed[n.Name] >= len(had) {
			added = append(added, one)
		}
	}
	if len(added) > 0 {
		s.growPlan(p, t, added)
	}
	r = Result{Task: s.answer(t), Repeated: len(added) == 0}
	step := &record.Step{ParentID: p.ID, Plan: p.Opts().Parent.Plan}
	for _, n := range c.Steps {
		if placed[n.Name] >= len(had) {
			n.Task.Traceparent = p.Opts().Traceparent
			s.submitStep(n.Task, step)
		}
	}
	for _, n := range c.Steps {
		place := placed[n.Name]
		r.Submitted = append(r.Submitted, Submitted{Task: s.answer(s.stepsOf(p)[place]), Created: place >= len(had), SameRequest: place < len(had)})
	}
	return r
}

// plannedStep is the step at index i among those that are to be added to the steps that there
// are, or the refusal of it.
func (s *model) plannedStep(t *record.Task, had []*record.Task, steps []record.AddedStep, i int, names, placed map[string]int) (record.PlannedStep, *Result) {
	n, plan := steps[i], t.Opts().Step.Plan
	one := record.PlannedStep{Name: n.Name}
	refuse := func(r Result) (record.PlannedStep, *Result) { return one, &r }
	on := map[int]bool{}
	for _, other := range n.DependsOn {
		on[placed[steps[other].Name]] = true
	}
	for _, name := range n.After {
		place, has := names[name]
		if !has || place >= len(had) {
			return refuse(Result{Code: CodeInvalidTask, Reason: "no_step", Parent: &ParentAnswer{Step: i, Name: name}})
		}
		on[place] = true
	}
	for place := range len(names) {
		if on[place] {
			one.DependsOn = append(one.DependsOn, uint16(place))
		}
	}
	if place := placed[n.Name]; place < len(had) {
		is := had[place]
		same := is.Type == n.Task.Type && string(is.Params) == string(n.Task.Params) && string(is.Payload) == string(n.Task.Payload)
		if !same || !slices.Equal(plan.Steps[place].DependsOn, one.DependsOn) {
			return refuse(Result{Code: CodeInvalidTask, Reason: "step_taken", Parent: &ParentAnswer{Step: i}})
		}
		return one, nil
	}
	for _, place := range one.DependsOn {
		if int(place) >= len(had) {
			continue
		}
		if is := had[place]; is.Status == record.StatusFailed || is.Status == record.StatusCancelled {
			r := s.refuse(s.endedCode(is), is)
			r.Reason = "dependency_ended"
			return refuse(r)
		}
	}
	if s.late(n.Task) {
		return refuse(Result{Code: CodeInvalidTask, Submitted: []Submitted{{Task: &record.Task{}, Refused: true, Step: i}}})
	}
	return one, nil
}

// growPlan gives the parent and its steps a plan with more steps, whose ids are the next ones.
func (s *model) growPlan(p, by *record.Task, added []record.PlannedStep) {
	was := p.Opts().Parent.Plan
	n := &record.NewParent{ByClaim: was.ByClaim, Continue: was.Continue}
	ids := slices.Clone(was.Added)
	for _, step := range was.Steps {
		n.Steps = append(n.Steps, record.NewStep{Name: step.Name, DependsOn: step.DependsOn})
	}
	for i, step := range added {
		n.Steps = append(n.Steps, record.NewStep{Name: step.Name, DependsOn: step.DependsOn})
		ids = append(ids, s.ids+1+uint64(i))
	}
	plan := modelPlan(n)
	plan.Added, plan.Bytes = ids, plan.Bytes+8*len(ids)
	s.tell(event.StepsAdded, p, &record.Task{WorkerID: by.WorkerID, Token: by.Token}, fmt.Sprintf("%d by step %s", len(added), was.Steps[slices.Index(s.stepsOf(p), by)].Name))
	o := *p.Opts()
	o.Parent = &record.Parent{Plan: plan, Finalization: o.Parent.Finalization}
	setPlainly(p, o)
	p.UpdatedAt = s.t
	for _, step := range s.stepsOf(p) {
		o := *step.Opts()
		o.Step = &record.Step{ParentID: p.ID, Plan: plan}
		setPlainly(step, o)
	}
}

// stepsOf are the steps of the parent, in the plan's order.
func (s *model) stepsOf(p *record.Task) []*record.Task {
	var steps []*record.Task
	for _, t := range s.tasks {
		if step := t.Opts().Step; step != nil && step.ParentID == p.ID {
			steps = append(steps, t)
		}
	}
	return steps
}

// stepViews returns the steps as answers show them, or nil for a task without steps.
func (s *model) stepViews(p *record.Task) []StepView {
	var views []StepView
	for _, t := range s.stepsOf(p) {
		views = append(views, StepView{Type: t.Type, Status: t.Status, Error: t.Error})
	}
	return views
}

// withSteps adds the steps of the answer's task.
func (s *model) withSteps(r Result, t *record.Task) Result {
	if r.Code == "" && t != nil && t.Opts().Parent != nil {
		r.Parent = &ParentAnswer{Steps: s.stepViews(t)}
	}
	return r
}

// waitsFor are the places of the steps that the step depends on and that have not
// completed.
func (s *model) waitsFor(t *record.Task) (places []int) {
	step := t.Opts().Step
	if step == nil {
		return nil
	}
	for place, other := range s.stepsOf(s.find(step.ParentID)) {
		own := slices.Index(s.stepsOf(s.find(step.ParentID)), t)
		if slices.Contains(step.Plan.Steps[own].DependsOn, uint16(place)) && other.Status != record.StatusCompleted {
			places = append(places, place)
		}
	}
	return places
}

// follow does what follows from the end of a task: if it is a step, those that
// waited for it go on or are cancelled, and its parent may end.
func (s *model) follow(t *record.Task) {
	step := t.Opts().Step
	if step == nil || t.Status < record.StatusCompleted {
		return
	}
	p := s.find(step.ParentID)
	steps := s.stepsOf(p)
	switch {
	case t.Status == record.StatusCompleted:
		for _, other := range steps {
			s.unblock(other)
		}
	case step.Plan.Continue:
		s.cancelDependents(t, steps)
	default:
		for _, other := range steps {
			s.cancelOrAsk(other)
		}
	}
	s.endIfDone(p)
}

// cancelDependents cancels the steps that depend on the step, then those that
// depend on these, and so on.
func (s *model) cancelDependents(t *record.Task, steps []*record.Task) {
	plan := t.Opts().Step.Plan
	for next := []*record.Task{t}; len(next) > 0; next = next[1:] {
		on := uint16(slices.Index(steps, next[0]))
		for place, other := range steps {
			if other.Status < record.StatusCompleted && slices.Contains(plan.Steps[place].DependsOn, on) {
				s.cancelOrAsk(other)
				next = append(next, other)
			}
		}
	}
}

// unblock lets a blocked step whose dependencies have all completed be claimed,
// or wait for its time.
func (s *model) unblock(t *record.Task) {
	if t.Status != record.StatusBlocked || len(s.waitsFor(t)) > 0 || t.Opts().SignalUntil != 0 {
		return
	}
	t.UpdatedAt = s.t
	if s.lacksSignal(t) {
		s.awaitSignal(t)
		return
	}
	s.waitUntil(t, t.RunAt)
	if t.Status == record.StatusScheduled {
		s.tellWait(t, nil)
	}
}

// cancelOrAsk cancels a task that is not claimed, and asks for it of one that is.
func (s *model) cancelOrAsk(t *record.Task) {
	switch {
	case t.Status >= record.StatusCompleted, t.CancelRequested:
	case t.Status == record.StatusClaimed:
		t.CancelRequested, t.UpdatedAt = true, s.t
		s.tell(event.CancelRequested, t, t, "")
	default:
		t.Status, t.UpdatedAt = record.StatusCancelled, s.t
		s.ended(t)
		s.tell(event.Cancelled, t, nil, "")
	}
}

// allEnded tells whether all steps of the parent have ended.
func (s *model) allEnded(p *record.Task) bool {
	return !slices.ContainsFunc(s.stepsOf(p), func(t *record.Task) bool { return t.Status < record.StatusCompleted })
}

// endIfDone ends the running parent when nothing is left to wait for: as cancelled if
// that was requested, else by its steps.
func (s *model) endIfDone(p *record.Task) {
	if p.Status != record.StatusRunning || !s.allEnded(p) {
		return
	}
	switch plan := p.Opts().Parent.Plan; {
	case p.CancelRequested:
		s.endParent(p, record.StatusCancelled, "", 0)
	case plan.ByClaim:
	default:
		s.endByItself(p)
	}
}

// endByItself ends an automatic parent.
func (s *model) endByItself(p *record.Task) {
	var results []string
	var failed, cancelled string
	all := true
	plan := p.Opts().Parent.Plan
	for place, t := range s.stepsOf(p) {
		name := plan.Steps[place].Name
		all = all && t.Status == record.StatusCompleted
		switch {
		case t.Status == record.StatusCompleted:
			results = append(results, `"`+name+`":`+jsonOfResult(t))
		case t.Status == record.StatusFailed && failed == "":
			failed = "step " + name + " failed: " + t.Error
		case t.Status == record.StatusCancelled && cancelled == "":
			cancelled = "step " + name + " was cancelled"
		}
	}
	if all || plan.Continue && len(results) > 0 {
		p.Result = []byte("{" + strings.Join(results, ",") + "}")
		s.endParent(p, record.StatusCompleted, "", 0)
		return
	}
	p.Error = failed
	if failed == "" {
		p.Error = cancelled
	}
	s.endParent(p, record.StatusFailed, "", 0)
}

// endParent ends the parent: by itself, or by the processor.
func (s *model) endParent(p *record.Task, to record.Status, processor string, token uint64) {
	p.Status, p.UpdatedAt = to, s.t
	s.ended(p)
	p.WorkerID, p.Token = processor, token
	s.dropFinalizer(p)
	s.leaveIfNotKept(p)
	by := &record.Task{WorkerID: processor, Token: token}
	switch to {
	case record.StatusCompleted:
		s.tell(event.Finalized, p, by, "completed")
		s.tell(event.Completed, p, by, "")
	case record.StatusFailed:
		s.tell(event.Finalized, p, by, "failed")
		s.tell(event.Failed, p, by, p.Error)
	default:
		s.tell(event.Cancelled, p, nil, "")
	}
}

// cancelParent is cancel of a running parent.
func (s *model) cancelParent(p *record.Task) Result {
	if p.CancelRequested {
		return Result{Repeated: true, Task: s.answer(p)}
	}
	steps := s.stepsOf(p)
	if slices.ContainsFunc(steps, func(t *record.Task) bool { return t.Status == record.StatusClaimed }) {
		p.CancelRequested, p.UpdatedAt = true, s.t
		s.tell(event.CancelRequested, p, nil, "")
	}
	for _, t := range steps {
		s.cancelOrAsk(t)
	}
	if s.allEnded(p) {
		s.endParent(p, record.StatusCancelled, "", 0)
	}
	return Result{Task: s.answer(p)}
}

// cannotRetryStep tells why the task that has ended cannot be retried, if it is a
// step.
func (s *model) cannotRetryStep(t *record.Task) Result {
	if t.Opts().Step == nil || t.Status < record.StatusCompleted {
		return Result{}
	}
	p := s.find(t.Opts().Step.ParentID)
	switch {
	case p.Status == record.StatusCancelled, p.Status >= record.StatusCompleted && !p.Opts().Parent.Plan.Continue:
		r := s.refuse(s.endedCode(p), p)
		r.Reason = "parent_ended"
		return r
	case p.CancelRequested:
		return s.refuse(CodeTaskCancelled, p)
	case p.Status >= record.StatusCompleted && p.Opts().UniqueActive:
		if refusal := s.keyTaken(p); refusal.Code != "" {
			return refusal
		}
	}
	for _, place := range t.Opts().Step.Plan.Steps[t.StepPlace()].DependsOn {
		on := s.stepsOf(p)[place]
		if on.Status == record.StatusFailed || on.Status == record.StatusCancelled {
			r := s.refuse(s.endedCode(on), on)
			r.Reason = "dependency_ended"
			return r
		}
	}
	return s.undoneLater(t)
}

// runAgain lets an ended parent run again.
func (s *model) runAgain(p *record.Task) {
	if p.Status != record.StatusRunning {
		token := p.Token
		s.revive(p, record.StatusRunning)
		p.Token = token
	}
}

// undoneLater is the refusal to retry a step that another one, claimed and asked to stop, would
// cancel again by its end.
func (s *model) undoneLater(t *record.Task) Result {
	asked := func(t *record.Task) bool { return t.Status == record.StatusClaimed && t.CancelRequested }
	parent, own := s.find(t.Opts().Step.ParentID), t.Opts().Step.Plan.Steps[t.StepPlace()]
	steps := s.stepsOf(parent)
	first := slices.IndexFunc(steps, asked)
	if first < 0 {
		return Result{}
	}
	behind := !parent.Opts().Parent.Plan.Continue
	for _, on := range own.DependsOn {
		behind = behind || asked(steps[on]) || steps[on].Status == record.StatusBlocked && len(s.waitsFor(steps[on])) > 0
	}
	if !behind {
		return Result{}
	}
	r := s.refuse(CodeTaskCancelled, steps[first])
	r.Reason = "cancel_requested"
	return r
}

// retryParent is retry of a parent that has not completed: all of its steps that
// failed or were cancelled, or none.
func (s *model) retryParent(p *record.Task, c command.Retry) Result {
	var again []*record.Task
	for _, t := range s.stepsOf(p) {
		if t.Status == record.StatusFailed || t.Status == record.StatusCancelled {
			again = append(again, t)
		}
	}
	switch {
	case p.Status == record.StatusRunning && p.CancelRequested:
		return s.refuse(CodeTaskCancelled, p)
	case p.Status == record.StatusRunning && (len(again) == 0 || c.Token != 0 && c.Token == p.Token):
		return Result{Repeated: true, Task: s.answer(p)}
	case c.Token != 0 && c.Token != p.Token:
		return s.refuse(CodeStaleClaim, p)
	}
	if p.Status != record.StatusRunning && p.Opts().UniqueActive {
		if refusal := s.keyTaken(p); refusal.Code != "" {
			return refusal
		}
	}
	for _, t := range again {
		if most := t.MaxAttempts; most != 0 && t.Attempts >= most+c.AddAttempts {
			return s.refuse(CodeMaxAttemptsReached, t)
		}
		if refusal := s.undoneLater(t); refusal.Code != "" {
			return refusal
		}
	}
	s.runAgain(p)
	for _, t := range again {
		if t.MaxAttempts != 0 {
			t.MaxAttempts += c.AddAttempts
		}
		s.revive(t, record.StatusPending)
	}
	s.endIfDone(p) // it may have been cancelled when its steps had completed
	return Result{Task: s.answer(p)}
}

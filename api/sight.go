package api

import (
	"slices"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// sight says which tasks a key may see: all, or those of some types. Each task, result and event in an answer passes
// through it, because a task shows more than its own type: a parent shows errors and results of its steps, and a step
// the names of others.
type sight struct {
	types []string             // nil = all
	plans map[uint64]*fsm.Plan // by parent, without dependencies that must not be seen
}

// sight returns the sight of the request's key. It may outlive the request, but must be used in one goroutine.
func (r *request) sight() *sight { return &sight{types: r.who.types} }

// seesAll reports whether everything may be seen.
func (s *sight) seesAll() bool { return s == nil || len(s.types) == 0 }

// seesType reports whether tasks of that type may be seen.
func (s *sight) seesType(taskType string) bool {
	return s.seesAll() || slices.Contains(s.types, taskType)
}

// seesSteps reports whether all steps of the task may be seen. For a task that no longer exists it returns false, because
// it may have had others.
func (s *sight) seesSteps(m *fsm.Machine, id uint64) bool {
	if s.seesAll() {
		return true
	}
	if m.Get(id) == nil {
		return false
	}
	for _, taskType := range m.StepTypes(id) {
		if !s.seesType(taskType) {
			return false
		}
	}
	return true
}

// hides reports whether the task is a parent with steps that must not be seen.
func (s *sight) hides(m *fsm.Machine, t *fsm.Task) bool {
	return !s.seesAll() && t.Parent() != nil && !s.seesSteps(m, t.ID)
}

// matches reports whether a task matches a filter by fields that may be seen, because filters must not reveal how a
// parent ended.
func (s *sight) matches(m *fsm.Machine, q *fsm.ListQuery, t *fsm.Task) bool {
	return q.WorkerID == "" && q.Failure == nil || !s.hides(m, t)
}

// seesFailure reports whether the error of a failed task may be seen.
func (s *sight) seesFailure(m *fsm.Machine, id uint64) bool {
	return s.seesAll() || !s.hides(m, m.Get(id))
}

// redactTask removes from the copy of a visible task what comes from hidden tasks: how a parent ended, and the names of a
// step's dependencies.
func (s *sight) redactTask(m *fsm.Machine, t *fsm.Task) {
	switch {
	case s.seesAll() || t.Options == nil: // a plain task is as its type
	case s.hides(m, t):
		t.Error, t.Result, t.ResultPayload, t.WorkerID, t.Token = "", nil, nil, "", 0
	case t.Step() != nil:
		o := *t.Options
		o.Step = &fsm.Step{ParentID: o.Step.ParentID, Plan: s.plan(m, o.Step)}
		t.Options = &o
	}
}

// plan returns a step's plan without dependencies on hidden steps. It is made once for all steps of a parent.
func (s *sight) plan(m *fsm.Machine, step *fsm.Step) *fsm.Plan {
	if plan := s.plans[step.ParentID]; plan != nil {
		return plan
	}
	plan := *step.Plan
	seen := make([]bool, len(plan.Steps))
	for place, taskType := range m.StepTypes(step.ParentID) {
		seen[place] = s.seesType(taskType)
	}
	plan.Steps = slices.Clone(plan.Steps)
	for i := range plan.Steps {
		plan.Steps[i].DependsOn = slices.DeleteFunc(slices.Clone(plan.Steps[i].DependsOn), func(on uint16) bool { return !seen[on] })
	}
	if s.plans == nil {
		s.plans = make(map[uint64]*fsm.Plan)
	}
	s.plans[step.ParentID] = &plan
	return &plan
}

// redactWhy removes the names of hidden steps from the reasons of a step.
func (s *sight) redactWhy(m *fsm.Machine, t *fsm.Task, why *fsm.Why) {
	if s.seesAll() || t.Step() == nil {
		return
	}
	step := t.Step()
	plan := s.plan(m, step)
	for i := range why.Reasons {
		why.Reasons[i].Steps = slices.DeleteFunc(why.Reasons[i].Steps, func(name string) bool {
			return !slices.ContainsFunc(plan.Steps[t.StepPlace()].DependsOn, func(on uint16) bool { return plan.Steps[on].Name == name })
		})
	}
}

// revealsEnd reports whether the event may reveal how a parent ended, or who finalizes it, because it is not about a claim
// of the task itself.
func revealsEnd(e *event.Event) bool {
	return e.TaskID != 0 && e.Attempt == 0 && (e.WorkerID != "" || e.Kind == event.Failed)
}

// hidesEvent reports whether the event reveals hidden steps.
func (s *sight) hidesEvent(m *fsm.Machine, e *event.Event) bool {
	return !s.seesAll() && revealsEnd(e) && !s.seesSteps(m, e.TaskID)
}

// redactEvents removes from the events what reveals hidden steps. If they were filtered by a worker's id, which is part of
// that, the whole event is removed.
func (s *sight) redactEvents(m *fsm.Machine, q *event.Query, events []event.Event) []event.Event {
	seen := events[:0]
	for i := range events {
		e := events[i]
		if s.hidesEvent(m, &e) {
			if q.WorkerID != "" {
				continue
			}
			e = e.Bare()
		}
		seen = append(seen, e)
	}
	return seen
}

// redactResult applies redactTask to each task that the answer to a command shows.
func (s *sight) redactResult(m *fsm.Machine, res *fsm.Result) {
	tasks := make([]*fsm.Task, 0, 1+len(res.Submitted)+len(res.Claims))
	if res.Task != nil {
		tasks = append(tasks, res.Task)
	}
	for i := range res.Submitted {
		if t := res.Submitted[i].Task; t != nil {
			tasks = append(tasks, t)
		}
	}
	for i := range res.Claims {
		tasks = append(tasks, res.Claims[i].Task)
	}
	for _, t := range tasks {
		s.redactTask(m, t)
		if res.Parent != nil && s.hides(m, t) {
			p := *res.Parent
			p.Steps = nil
			res.Parent = &p
		}
	}
	for i := range res.Results {
		s.redactResult(m, &res.Results[i])
	}
}

// hasKin reports whether the answer to a command shows a parent or a step.
func hasKin(res *fsm.Result) bool {
	kin := func(t *fsm.Task) bool { return t != nil && (t.Parent() != nil || t.Step() != nil) }
	return kin(res.Task) ||
		slices.ContainsFunc(res.Submitted, func(s fsm.Submitted) bool { return kin(s.Task) }) ||
		slices.ContainsFunc(res.Claims, func(c fsm.Claim) bool { return kin(c.Task) }) ||
		slices.ContainsFunc(res.Results, func(r fsm.Result) bool { return hasKin(&r) })
}

// narrowResult removes from the result of a command what the key may not see. If the state cannot be read for that, it
// removes everything about other tasks.
func (r *request) narrowResult(p *nodes.Proposed) {
	if !r.narrowed() || !hasKin(&p.Result) {
		return
	}
	s := r.sight()
	if _, err := r.node().ReadStale(r.ctx(), p.Index, func(m *fsm.Machine, _ fsm.Stamp) { s.redactResult(m, &p.Result) }); err != nil {
		s.redactResult(fsm.New(), &p.Result)
	}
}

// readDependencies reads the results of the steps that the claimed ones depend on, for a claim that asks for them; narrowResult
// must have removed what the key may not see. used counts the bytes of these results in all claims of the answer.
// Results beyond codec.DependenciesMax are only named, and so are all of them if this node has no memory for them or its
// state cannot be read.
func (r *request) readDependencies(p *nodes.Proposed, claims []fsm.Claim, used *int) map[uint64]*codec.Dependencies {
	all := make(map[uint64]*codec.Dependencies)
	taken := *used
	_, err := r.node().ReadStale(r.ctx(), p.Index, func(m *fsm.Machine, _ fsm.Stamp) {
		for i := range claims {
			if c := &claims[i]; c.Live && c.Task.Step() != nil {
				all[c.Task.ID] = dependenciesOf(m, c.Task, used)
			}
		}
	})
	more := r.lacking(*used)
	if err == nil && (*used == taken || more == 0 || r.core.port.Answers.TryReserve(more)) {
		r.reserved.answer += more
		return all
	}
	*used = codec.DependenciesMax
	for i := range claims {
		if c := &claims[i]; c.Live && c.Task.Step() != nil {
			all[c.Task.ID] = dependenciesOf(nil, c.Task, used)
		}
	}
	return all
}

// dependenciesOf returns the results of the steps that the step depends on, in the plan's order, and adds their size to
// used. Without m, and where they do not fit, they are left out.
func dependenciesOf(m *fsm.Machine, t *fsm.Task, used *int) *codec.Dependencies {
	on := &codec.Dependencies{}
	plan := t.Step().Plan
	for _, place := range plan.Steps[t.StepPlace()].DependsOn {
		name := plan.Steps[place].Name
		var s *fsm.Task
		if m != nil {
			s = m.Get(plan.IDOf(t.Step().ParentID, int(place)))
		}
		if s == nil || *used+resultSize(s) > codec.DependenciesMax {
			on.LeftOut = append(on.LeftOut, name)
			continue
		}
		*used += resultSize(s)
		on.Results = append(on.Results, codec.StepResult{Name: name, Result: s.Result, Payload: s.ResultPayload})
	}
	return on
}

// resultSize is the size of a task's result in an answer.
func resultSize(t *fsm.Task) int { return len(t.Result) + len(t.ResultPayload)/3*4 }

package fsm

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// submit adds the tasks in order, so that the first of several with the same key gets it.
func submit(m *Machine, tasks []record.NewTask) Result {
	submitted := m.answers.submitted.take(len(tasks))
	for i := range tasks {
		n := &tasks[i]
		if step, never := neverClaimable(m, n, 0); never {
			submitted[i] = Submitted{Task: new(record.Task), Refused: true, Step: step}
			continue
		}
		submitted[i] = submitOne(m, n, "")
	}
	if len(submitted) == 1 && submitted[0].Refused {
		return Result{Code: CodeInvalidTask, Submitted: submitted}
	}
	return Result{Submitted: submitted}
}

// neverClaimable reports whether the submit would add or change a task that expires before its
// delay is over. step is the place of the step that does, or -1 for the task itself. A submit
// whose key is taken adds nothing, so it is not refused and can be repeated at any time, unless it
// would replace the times of the task with the key. ends is the id of a task that is about to end,
// or 0; if its end frees its key, it does not count as having it.
func neverClaimable(m *Machine, n *record.NewTask, ends uint64) (step int, never bool) {
	step, never = lapsesFirst(m, n)
	if !never {
		return step, false
	}
	has := m.keyHolder(n.Type, n.Key, n.KeyOfType)
	if has != nil {
		return step, has.ID == ends && has.Opts().UniqueActive || replaces(n, has)
	}
	_, gone := m.goneKeyHolder(n.Type, n.Key, n.KeyOfType, (*goneTasks).namedOrForget)
	return step, gone == nil
}

// lapsesFirst reports whether the task or one of its steps lapses, and which: the step at that
// place, or -1 for the task itself. A step's delay counts from now, too.
func lapsesFirst(m *Machine, n *record.NewTask) (step int, never bool) {
	if n.Parent == nil {
		return -1, lapses(m, n)
	}
	step = slices.IndexFunc(n.Parent.Steps, func(s record.NewStep) bool { return lapses(m, &s.Task) })
	return step, step >= 0
}

// lapses reports whether the task would expire before its delay is over.
func lapses(m *Machine, n *record.NewTask) bool {
	if n.ExpiresAt == 0 {
		return false
	}
	ms := delayOf(m, n)
	return ms != 0 && n.ExpiresAt <= fromNow(m, ms)
}

// submitOne adds the task unless its key is taken. message goes with the task's event.
func submitOne(m *Machine, n *record.NewTask, message string) Submitted {
	if t := m.keyHolder(n.Type, n.Key, n.KeyOfType); t != nil {
		if replaces(n, t) {
			return Submitted{Task: m.copyOf(replace(m, t.ID, n)), SameRequest: true, Replaced: true}
		}
		return Submitted{Task: m.copyOf(t), SameRequest: sameRequest(t, n)}
	}
	if id, g := m.goneKeyHolder(n.Type, n.Key, n.KeyOfType, (*goneTasks).namedOrForget); g != nil {
		same := g.Same == sameHash(n.Type, n.Params, n.Payload)
		return Submitted{Task: g.Task(id), SameRequest: same, Gone: true}
	}
	return Submitted{Task: m.copyOf(addTask(m, n, message)), Created: true}
}

// addTask adds a task, or a parent with its steps, and returns it. message goes with its
// event.
func addTask(m *Machine, n *record.NewTask, message string) *record.Task {
	if n.Parent != nil {
		return addParent(m, n, message)
	}
	t := newTask(m, n)
	t.SetOptions(n.Options())
	setReady(m, t, runAtOf(m, n))
	addNew(m, t, message)
	return t
}

// replaces reports whether the submit changes the task that has its key: one of the same type
// that waits to be claimed.
func replaces(n *record.NewTask, has *record.Task) bool {
	return n.Replace && n.Type == has.Type && (has.Status == record.StatusPending || has.Status == record.StatusScheduled)
}

// replace gives the waiting task the data and the times of the submitted one. It returns the task.
// A repeat with the same times changes nothing.
func replace(m *Machine, id uint64, n *record.NewTask) *record.Task {
	t, at := m.Get(id), runAtOf(m, n)
	if o := t.Opts(); sameRequest(t, n) && bytes.Equal(o.Attributes, n.Attributes) && t.RunAt == at && o.ExpiresAt == n.ExpiresAt && o.ExpiresAgain == n.ExpiresAgain {
		return t
	}
	t = m.edit(id)
	t.Params, t.Payload = n.Params, n.Payload
	o := *t.Opts()
	o.Attributes, o.ExpiresAt, o.ExpiresAgain = n.Attributes, n.ExpiresAt, n.ExpiresAgain
	t.SetOptions(o)
	setRunAt(m, t, at)
	m.edited(t)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
	return t
}

// sameRequest reports whether the task was submitted with the same type and parameters as
// n. It compares bytes: equivalent JSON in another form differs.
func sameRequest(t *record.Task, n *record.NewTask) bool {
	return t.Type == n.Type && bytes.Equal(t.Params, n.Params) && bytes.Equal(t.Payload, n.Payload)
}

// addSteps adds steps to the parent of the claimed step, in order, leaving out those that the
// parent has. The parent cannot have ended, because one of its steps is claimed.
func addSteps(m *Machine, c command.AddSteps) Result {
	result, ok := held(m, c.Hold, record.OutcomeNone)
	if !ok {
		return result
	}
	t := m.Get(c.ID)
	if t.Step() == nil {
		refusal := m.refused(CodeTaskNotClaimable, t)
		refusal.Reason = ReasonNoParent
		return refusal
	}
	places, more, refusal := planMore(m, t, c.Steps)
	if refusal.Code != "" {
		return m.withCopy(refusal)
	}
	had := len(t.Step().Plan.Steps)
	if len(more) > 0 {
		addPlanned(m, t, c.Steps, places, more)
	}
	result = Result{Task: m.copyOf(m.Get(c.ID)), Repeated: len(more) == 0, Submitted: m.answers.submitted.take(len(c.Steps))}
	plan, parentID := m.Get(c.ID).Step().Plan, m.Get(c.ID).Step().ParentID
	for i, place := range places {
		added := m.Get(plan.IDOf(parentID, int(place)))
		result.Submitted[i] = Submitted{Task: m.copyOf(added), Created: int(place) >= had, SameRequest: int(place) < had}
	}
	return result
}

// addPlanned adds the steps that planMore has placed after those of the plan, which are more.
func addPlanned(m *Machine, t *record.Task, steps []record.AddedStep, places []uint16, more []record.PlannedStep) {
	s := t.Step()
	had, parent := len(s.Plan.Steps), m.Get(s.ParentID)
	e := eventOf(event.StepsAdded, parent)
	e.WorkerID, e.Token = t.WorkerID, t.Token
	e.Message = strconv.Itoa(len(more)) + " by step " + s.Plan.Steps[t.StepPlace()].Name
	m.tell(&e, 0)
	traceparent := parent.Opts().Traceparent
	step := growPlan(m, s, more)
	waiting := m.parents.byID[s.ParentID].waiting
	for i := range steps {
		if place := int(places[i]); place >= had {
			n := steps[i].Task
			n.Traceparent = traceparent
			addStep(m, &n, step, waiting[place] > 0)
		}
	}
}

// planMore returns the place of each step in the plan of the parent of the claimed step t, and
// those that the plan lacks, in their order. It refuses a step that differs from the parent's step
// of that name, and steps that could never begin. The refusal contains the state's own task.
func planMore(m *Machine, t *record.Task, steps []record.AddedStep) (places []uint16, more []record.PlannedStep, refusal Result) {
	plan, parentID := t.Step().Plan, t.Step().ParentID
	had := len(plan.Steps)
	named := make(map[string]uint16, had)
	for place := range plan.Steps {
		named[plan.Steps[place].Name] = uint16(place)
	}
	places = make([]uint16, len(steps))
	next := had
	for i := range steps {
		place, has := named[steps[i].Name]
		if !has {
			place = uint16(next)
			next++
		}
		places[i] = place
	}
	switch {
	case next > had && t.CancelRequested:
		return nil, nil, Result{Code: CodeTaskCancelled, Reason: ReasonCancelRequested, Task: t}
	case next > record.StepsMax:
		return nil, nil, notAdded(ReasonTooManySteps, 0, "")
	}
	for i := range steps {
		n := &steps[i]
		on, missing := placesOn(n, places, named)
		place := int(places[i])
		switch {
		case missing != "":
			return nil, nil, notAdded(ReasonNoStep, i, missing)
		case place >= had:
			if refusal := neverBegins(m, parentID, plan, on, i, n); refusal.Code != "" {
				return nil, nil, refusal
			}
			more = append(more, record.PlannedStep{Name: n.Name, DependsOn: on})
		case !slices.Equal(on, plan.Steps[place].DependsOn) || !sameRequest(m.Get(plan.IDOf(parentID, place)), &n.Task):
			return nil, nil, notAdded(ReasonStepTaken, i, "")
		}
	}
	if grown := (&record.Plan{Steps: slices.Concat(plan.Steps, more)}); len(more) > 0 && grown.NamesBytes() > record.PlanNamesMax {
		return nil, nil, notAdded(ReasonTooManySteps, 0, "")
	}
	return places, more, Result{}
}

// placesOn returns the places of the steps that the step is to depend on, ascending. places are
// those of the steps that it comes with, named those that the parent has. missing is the name of a
// step that is not there, or "".
func placesOn(n *record.AddedStep, places []uint16, named map[string]uint16) (on []uint16, missing string) {
	for _, other := range n.DependsOn {
		on = append(on, places[other])
	}
	for _, name := range n.After {
		place, has := named[name]
		if !has {
			return nil, name
		}
		on = append(on, place)
	}
	slices.Sort(on)
	return slices.Compact(on), ""
}

// neverBegins refuses to add the step at index i if it depends on a step that failed or was
// cancelled, so that it could only begin after a retry, or if it would expire before its delay is
// over.
func neverBegins(m *Machine, parentID uint64, plan *record.Plan, on []uint16, i int, n *record.AddedStep) Result {
	for _, place := range on {
		if int(place) >= len(plan.Steps) {
			break
		}
		if ended := m.Get(plan.IDOf(parentID, int(place))); retriable(ended) {
			return Result{Code: endedCode(ended.Status), Reason: ReasonDependencyEnded, Task: ended}
		}
	}
	if lapses(m, &n.Task) {
		return Result{Code: CodeInvalidTask, Submitted: []Submitted{{Task: new(record.Task), Refused: true, Step: i}}}
	}
	return Result{}
}

// notAdded refuses to add the step at that index.
func notAdded(reason Reason, step int, name string) Result {
	return Result{Code: CodeInvalidTask, Reason: reason, Parent: &ParentAnswer{Step: step, Name: name}}
}

package codec

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// cycleNamesMax bounds the names in the refusal of a cycle.
const cycleNamesMax = 20

// stepsDraft holds the steps of a task while they are read. A step may depend on a later one, so dependencies are
// resolved at the end.
type stepsDraft struct {
	steps []fsm.NewStep
	named map[string]uint16 // the index of each step
	// dependsOn holds, per step, the names as sent, a JSON array in the body; nil without any.
	dependsOn [][]byte
	scheduled bool // a schedule submits their task
	// after holds, per step to add, the names of other steps of the parent; nil for steps that are submitted.
	after [][]string
}

// parentField reads a field that only a task with steps can have.
func (d *Decoder) parentField(name []byte, t *draft) (bad *refuse.Refusal) {
	if d.IsNull() {
		return d.skip()
	}
	switch string(name) {
	case "steps":
		return d.steps(t)
	case "finalize":
		t.byClaim, bad = d.choice("finalize", wire.FinalizeAuto, wire.FinalizeClaim)
	default:
		t.goesOn, bad = d.choice("on_step_failure", wire.OnFailureFail, wire.OnFailureGoOn)
	}
	if t.ofParents == "" {
		t.ofParents = string(name)
	}
	return bad
}

// steps reads the steps of a task.
func (d *Decoder) steps(t *draft) *refuse.Refusal {
	s := stepsDraft{named: make(map[string]uint16), scheduled: t.scheduled}
	_, bad := d.array("steps", "steps", fsm.StepsMax, func() *refuse.Refusal {
		if bad := d.countTask(); bad != nil {
			return bad
		}
		return d.step(&s)
	})
	if bad == nil {
		bad = d.resolve(&s)
	}
	if bad == nil {
		t.Parent = &fsm.NewParent{Steps: s.steps}
	}
	return bad
}

// AddSteps is the body of POST /api/tasks/{id}/steps.
type AddSteps struct{ body[command.AddSteps] }

func (c *AddSteps) setID(id uint64) { c.Cmd.ID = id }

func (c *AddSteps) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := d.holdField(name, &c.Cmd.Hold)
	switch {
	case ok:
		return bad
	case string(name) != "steps":
		return d.unknownAmong(name, "worker_id", "claim_token", "steps")
	}
	outer := d.code
	d.code = wire.CodeInvalidTask
	defer func() { d.code = outer }()
	c.Cmd.Steps, bad = d.addedSteps()
	return bad
}

func (c *AddSteps) check(d *Decoder) *refuse.Refusal {
	switch bad := d.needs("worker_id", c.Cmd.WorkerID); {
	case bad != nil:
		return bad
	case len(c.Cmd.Steps) == 0:
		return d.Missing("steps")
	}
	return nil
}

// Answer implements Body.
func (c *AddSteps) Answer(b []byte, p *nodes.Proposed) []byte {
	added := 0
	for i := range p.Result.Submitted {
		if p.Result.Submitted[i].Created {
			added++
		}
	}
	b = jsonout.UintField(b, `{"success":true,"parent_id":`, p.Result.Task.Step().ParentID)
	b = jsonout.IntField(b, `,"added":`, int64(added))
	b = jsonout.List(b, `,"steps":`, len(p.Result.Submitted), func(b []byte, i int) []byte {
		t := p.Result.Submitted[i].Task
		return append(appendStep(b, t.Step().Plan, t.StepPlace(), t.ID, t.Type, t.Status), '}')
	})
	return appendRepeated(b, p.Result.Repeated)
}

// addedSteps reads the steps to add. They depend on each other and on those that the parent has, whose names only the
// state knows.
func (d *Decoder) addedSteps() ([]fsm.AddedStep, *refuse.Refusal) {
	s := stepsDraft{named: make(map[string]uint16)}
	_, bad := d.array("steps", "steps", fsm.StepsMax, func() *refuse.Refusal {
		if bad := d.countTask(); bad != nil {
			return bad
		}
		return d.step(&s)
	})
	if bad != nil || len(s.steps) == 0 {
		return nil, bad
	}
	s.after = make([][]string, len(s.steps))
	if bad := d.resolve(&s); bad != nil {
		return nil, bad
	}
	steps := make([]fsm.AddedStep, len(s.steps))
	for i := range steps {
		steps[i] = fsm.AddedStep{NewStep: s.steps[i], After: s.after[i]}
	}
	return steps, nil
}

// countTask counts a task that the body submits. If there are more than one request may change, the whole body is
// refused at the first one too many, so that no more than that is decoded.
func (d *Decoder) countTask() *refuse.Refusal {
	d.submits++
	if d.submits <= wire.ChangesMax {
		return nil
	}
	return &refuse.Refusal{
		Code: wire.CodeInvalidRequest, Field: d.path(""), Syntax: true,
		Text:   "The request submits more than " + strconv.Itoa(wire.ChangesMax) + " tasks, steps counted",
		Advice: "Send several requests",
	}
}

// step reads one step of the array.
func (d *Decoder) step(s *stepsDraft) *refuse.Refusal {
	if bad := d.beginItem(); bad != nil {
		return bad
	}
	var step fsm.NewStep
	var dependsOn []byte
	task := newDraft()
	if task.names, task.scheduled = stepNames, s.scheduled; s.scheduled {
		task.names = scheduledStepNames
	}
	for {
		name, more, bad := d.next()
		if bad != nil {
			return bad
		}
		if !more {
			break
		}
		switch string(name) {
		case "step":
			step.Name, bad = parsed(d, "step", wire.StepNameAllowed, func(s string) (string, bool) { return s, wire.ValidStepName(s) })
		case "depends_on":
			dependsOn, bad = d.dependsOn()
		default:
			bad = d.stepField(name, &task)
		}
		if bad != nil {
			return bad
		}
	}
	if step.Name == "" {
		return d.Missing("step")
	}
	if at, taken := s.named[step.Name]; taken {
		return d.wrong("step", "the name "+step.Name+" is the name of steps["+strconv.Itoa(int(at))+"]")
	}
	if bad := d.checkTask(&task); bad != nil {
		return bad
	}
	step.Task = task.NewTask
	s.named[step.Name] = uint16(len(s.steps))
	s.steps = append(s.steps, step)
	s.dependsOn = append(s.dependsOn, dependsOn)
	return nil
}

// ofParents are the fields of a task that require steps; notOfSteps are all those that its steps cannot have.
var (
	ofParents  = []string{"steps", "finalize", "on_step_failure"}
	notOfSteps = slices.Concat(optionsNotOf(steps), ofParents)
)

// stepNames returns the fields of a step.
func stepNames() []string { return namesBut(reflect.TypeFor[wire.NewStep](), notOfSteps...) }

// stepField reads a field that a step has like any task, and refuses those that belong to its parent.
func (d *Decoder) stepField(name []byte, t *draft) *refuse.Refusal {
	switch {
	case slices.Contains(notOfSteps, string(name)):
		return d.forbidden(name, "a step cannot have "+string(name), "Remove it: it is for the task that has the steps")
	case t.scheduled:
		return d.scheduledField(name, t)
	}
	return d.taskField(name, t)
}

// forbidden skips a field that the object cannot have, and refuses it unless it is null.
func (d *Decoder) forbidden(name []byte, why, advice string) *refuse.Refusal {
	field, absent := string(name), d.IsNull()
	if bad := d.skip(); bad != nil || absent {
		return bad
	}
	return d.refuse(field, "Invalid "+d.path(field)+": "+why, advice)
}

// dependsOn reads the names in depends_on and returns them as sent, nil without any.
func (d *Decoder) dependsOn() (raw []byte, bad *refuse.Refusal) {
	const most = fsm.StepsMax - 1
	start := d.dec.InputOffset()
	n, _, bad := d.elements("depends_on", "an array of up to "+strconv.Itoa(most)+" names of steps", most, func(i int) *refuse.Refusal {
		d.enter("depends_on", i)
		defer d.leave()
		s, ok, bad := d.Text("", wire.StepNameAllowed)
		if bad == nil && (!ok || !wire.ValidStepName(s)) {
			bad = d.Invalid("", wire.StepNameAllowed)
		}
		return bad
	})
	if bad != nil || n == 0 {
		return nil, bad
	}
	return d.arraySince(start), nil
}

// resolve looks up the dependencies of the steps. It refuses unknown names and cycles.
func (d *Decoder) resolve(s *stepsDraft) *refuse.Refusal {
	var places []uint16
	seenBy := make([]int, len(s.steps)) // the last step, from 1, that depends on it
	afterBy := make(map[string]int)     // the same of steps that the parent has
	for place, raw := range s.dependsOn {
		if raw == nil {
			continue
		}
		places = places[:0]
		d.enter("steps", place)
		bad := d.names(raw, func(name []byte) *refuse.Refusal {
			on, known := s.named[string(name)]
			switch {
			case !known && s.after != nil && afterBy[string(name)] != place+1:
				afterBy[string(name)] = place + 1
				s.after[place] = append(s.after[place], string(name))
				return nil
			case !known && s.after != nil:
				return d.wrong("", string(name)+" is there twice")
			case !known:
				return d.wrong("", "no step is named "+string(name))
			case int(on) == place:
				return d.wrong("", "a step cannot depend on itself")
			case seenBy[on] == place+1:
				return d.wrong("", string(name)+" is there twice")
			}
			seenBy[on] = place + 1
			places = append(places, on)
			return nil
		})
		d.leave()
		if bad != nil {
			return bad
		}
		slices.Sort(places)
		s.steps[place].DependsOn = slices.Clone(places)
	}
	cycle := fsm.FindCycle(len(s.steps), func(place uint16) []uint16 { return s.steps[place].DependsOn })
	if cycle == nil {
		return nil
	}
	d.enter("steps", int(cycle[0]))
	defer d.leave()
	return d.wrong("depends_on", "the steps wait for each other: "+nameCycle(s.steps, cycle))
}

// names calls each with the names in an array that dependsOn has read, with the path of the elements of depends_on.
func (d *Decoder) names(raw []byte, each func(name []byte) *refuse.Refusal) *refuse.Refusal {
	d.rest = *bytes.NewBuffer(raw)
	d.scout.Reset(&d.rest)
	if _, err := d.scout.ReadToken(); err != nil {
		return d.syntax(err)
	}
	for i := 0; d.scout.PeekKind() == jsontext.KindString; i++ {
		name, err := d.scout.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		d.enter("depends_on", i)
		bad := each(d.unquote(name))
		d.leave()
		if bad != nil {
			return bad
		}
	}
	return nil
}

// nameCycle formats a cycle as a -> b -> a; of a long one only the first names.
func nameCycle(steps []fsm.NewStep, cycle []uint16) string {
	var names []string
	for _, place := range cycle[:min(len(cycle), cycleNamesMax)] {
		names = append(names, steps[place].Name)
	}
	if more := len(cycle) - len(names); more > 0 {
		names = append(names, "("+strconv.Itoa(more)+" more)")
	}
	return strings.Join(append(names, steps[cycle[0]].Name), " -> ")
}

// checkParent validates the fields that require steps, and those that a task with steps cannot have.
func (d *Decoder) checkParent(t *draft) *refuse.Refusal {
	if t.Parent == nil {
		return d.refuse(t.ofParents, d.path(t.ofParents)+" is only for a task with steps", "Send steps, or leave it out")
	}
	t.Parent.ByClaim, t.Parent.Continue = t.byClaim, t.goesOn
	field := ""
	switch {
	case t.RunAt != 0:
		field = "run_at"
	case t.delayed:
		field = "delay_ms"
	case t.ExpiresAt != 0:
		field = "expires_at"
	case t.Group != "":
		field = "group"
	case t.ShareKey != "":
		field = "share_key"
	case t.SignalMS != 0:
		field = "wait_for_signal_ms"
	default:
		return nil
	}
	return d.refuse(field, "Invalid "+d.path(field)+": a task with steps cannot have it", "Remove it, and set it for its steps")
}

// stepErrorBytes bounds the error of a step in the answer about its parent, so that a thousand of them fit. The answer
// about the step itself has the whole error.
const stepErrorBytes = 1 << 10

// DependsOnBytes is the length of an answer after which steps are shown without their dependencies. Only the answer
// to a batch can become so long, because each op shows its task; other answers are bounded otherwise.
const DependsOnBytes = 16 << 20

// appendFamily appends the additional fields of a task with steps, or of a step.
func appendFamily(b []byte, t *fsm.Task, steps []fsm.StepView) []byte {
	if p := t.Parent(); p != nil {
		if steps != nil {
			b = appendSteps(b, t.ID, p.Plan, steps)
		}
		b = jsonout.Choice(b, `,"finalize":`, p.Plan.ByClaim, wire.FinalizeAuto, wire.FinalizeClaim)
		b = jsonout.Choice(b, `,"on_step_failure":`, p.Plan.Continue, wire.OnFailureFail, wire.OnFailureGoOn)
	}
	if s := t.Step(); s != nil {
		place := t.StepPlace()
		b = jsonout.UintField(b, `,"parent_id":`, s.ParentID)
		b = jsonout.StringField(b, `,"step":`, s.Plan.Steps[place].Name)
		if len(b) <= DependsOnBytes {
			b = appendDependsOn(b, s.Plan, place)
		}
	}
	return b
}

// appendSteps appends the steps of the task with that id, in the plan's order.
func appendSteps(b []byte, id uint64, plan *fsm.Plan, steps []fsm.StepView) []byte {
	return jsonout.List(b, `,"steps":`, len(plan.Steps), func(b []byte, place int) []byte {
		s := &steps[place]
		b = appendStep(b, plan, place, plan.IDOf(id, place), s.Type, s.Status)
		if s.Error != "" {
			b = jsonout.StringField(b, `,"error":`, jsonout.Cut(s.Error, stepErrorBytes))
		}
		return append(b, '}')
	})
}

// appendStep appends the beginning of the object of the step at place, which has that id, type and status.
func appendStep(b []byte, plan *fsm.Plan, place int, id uint64, taskType string, status fsm.Status) []byte {
	b = jsonout.StringField(b, `{"step":`, plan.Steps[place].Name)
	b = jsonout.UintField(b, `,"id":`, id)
	b = jsonout.StringField(b, `,"task_type":`, taskType)
	b = jsonout.WordField(b, `,"status":`, status.String())
	return appendDependsOn(b, plan, place)
}

// appendDependsOn appends the names of the steps that the one at place depends on.
func appendDependsOn(b []byte, plan *fsm.Plan, place int) []byte {
	on := plan.Steps[place].DependsOn
	return jsonout.List(b, `,"depends_on":`, len(on), func(b []byte, i int) []byte { return jsonout.String(b, plan.Steps[on[i]].Name) })
}

// DependenciesMax bounds the results that all claims of an answer show of the steps that theirs depend on.
const DependenciesMax = 4 << 20

// Dependencies has the results of the steps that a claimed step depends on.
type Dependencies struct {
	Results []StepResult
	LeftOut []string // names of the steps whose results are not shown
}

// StepResult is the result of a step; it may have none.
type StepResult struct {
	Name            string
	Result, Payload []byte // JSON and opaque bytes; at most one is set
}

// include reads what a claim is to show of its tasks in addition.
func (d *Decoder) include(dependencies *bool) *refuse.Refusal {
	const field, allowed = "include", `an array of "dependencies"`
	_, _, bad := d.elements(field, allowed, 1, func(int) (bad *refuse.Refusal) {
		*dependencies, bad = parsed(d, field, allowed, func(s string) (bool, bool) { return true, s == "dependencies" })
		if bad == nil && !*dependencies {
			bad = d.Invalid(field, allowed)
		}
		return bad
	})
	return bad
}

// appendDependencies appends what a claim shows of the steps that its step depends on.
func appendDependencies(b []byte, on *Dependencies) []byte {
	b = append(b, `,"dependencies":{`...)
	for i := range on.Results {
		s := &on.Results[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonout.String(b, s.Name), `:{`...)
		switch {
		case s.Payload != nil:
			b = jsonout.Base64(b, `"result_payload":`, s.Payload)
		case s.Result != nil:
			b = jsonout.Raw(b, `"result":`, s.Result)
		}
		b = append(b, '}')
	}
	b = append(b, '}')
	if len(on.LeftOut) == 0 {
		return b
	}
	return jsonout.List(b, `,"dependencies_left_out":`, len(on.LeftOut), func(b []byte, i int) []byte { return jsonout.String(b, on.LeftOut[i]) })
}

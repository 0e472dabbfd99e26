package encode

import (
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// stepErrorBytes is where the error of a step is cut in the answer about its
// parent, so that a thousand of them fit. The step itself has all of it.
const stepErrorBytes = 1 << 10

// DependsOnBytes is how long an answer gets before the steps in it are shown
// without what they depend on. Only that to a batch gets so long, of which each op
// tells its task: the others are bounded by what they show.
const DependsOnBytes = 16 << 20

// appendFamily appends what a task with steps has beside, or what a step has.
func appendFamily(b []byte, t *fsm.Task, steps []fsm.StepView) []byte {
	if p := t.Parent(); p != nil {
		if steps != nil {
			b = appendSteps(b, t.ID, p.Plan, steps)
		}
		b = append(b, `,"finalize":`...)
		b = jsonout.Choice(b, p.Plan.ByClaim, wire.FinalizeAuto, wire.FinalizeClaim)
		b = append(b, `,"on_step_failure":`...)
		b = jsonout.Choice(b, p.Plan.Continue, wire.OnFailureFail, wire.OnFailureGoOn)
	}
	if s := t.Step(); s != nil {
		place := t.StepPlace()
		b = append(b, `,"parent_id":`...)
		b = strconv.AppendUint(b, s.ParentID, 10)
		b = append(b, `,"step":`...)
		b = jsonout.String(b, s.Plan.Steps[place].Name)
		if len(b) <= DependsOnBytes {
			b = append(b, `,"depends_on":`...)
			b = appendDependsOn(b, s.Plan, place)
		}
	}
	return b
}

// appendSteps appends the steps of the task with that id, in the plan's order.
func appendSteps(b []byte, id uint64, plan *fsm.Plan, steps []fsm.StepView) []byte {
	b = append(b, `,"steps":[`...)
	for place := range plan.Steps {
		if place > 0 {
			b = append(b, ',')
		}
		s := &steps[place]
		b = append(b, `{"step":`...)
		b = jsonout.String(b, plan.Steps[place].Name)
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, id+1+uint64(place), 10)
		b = append(b, `,"task_type":`...)
		b = jsonout.String(b, s.Type)
		b = append(b, `,"status":"`...)
		b = append(b, s.Status.String()...)
		b = append(b, `","depends_on":`...)
		b = appendDependsOn(b, plan, place)
		if s.Error != "" {
			b = append(b, `,"error":`...)
			b = jsonout.String(b, jsonout.Cut(s.Error, stepErrorBytes))
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendDependsOn appends the names of the steps that the one at place depends
// on.
func appendDependsOn(b []byte, plan *fsm.Plan, place int) []byte {
	b = append(b, '[')
	for i, on := range plan.Steps[place].DependsOn {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonout.String(b, plan.Steps[on].Name)
	}
	return append(b, ']')
}

package encode

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// stepErrorBytes is where the error of a step is cut in the answer about its parent, so that a thousand of them fit.
// The answer about the step itself has all of it.
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
		b = jsonout.StringField(b, `{"step":`, plan.Steps[place].Name)
		b = jsonout.UintField(b, `,"id":`, id+1+uint64(place))
		b = jsonout.StringField(b, `,"task_type":`, s.Type)
		b = jsonout.WordField(b, `,"status":`, s.Status.String())
		b = appendDependsOn(b, plan, place)
		if s.Error != "" {
			b = jsonout.StringField(b, `,"error":`, jsonout.Cut(s.Error, stepErrorBytes))
		}
		return append(b, '}')
	})
}

// appendDependsOn appends the names of the steps that the one at place depends on.
func appendDependsOn(b []byte, plan *fsm.Plan, place int) []byte {
	on := plan.Steps[place].DependsOn
	return jsonout.List(b, `,"depends_on":`, len(on), func(b []byte, i int) []byte { return jsonout.String(b, plan.Steps[on[i]].Name) })
}

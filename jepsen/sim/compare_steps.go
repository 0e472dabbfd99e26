package sim

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
)

// outcomeNames are the model's words for what becomes of a claim of a
// finalization.
var outcomeNames = map[fsm.FinalizationOutcome]string{
	0: "", fsm.FinalizationClaimed: endClaimed, fsm.FinalizationExtended: endExtended, fsm.FinalizationAlreadyClaimed: endHeld,
	fsm.FinalizationAlreadyDone: endDone, fsm.FinalizationNotReady: endNotReady, fsm.FinalizationNotFound: endNotFound,
}

// parentDiffers is differs for what is answered about a parent.
func parentDiffers(g *fsm.ParentAnswer, w *parentSeen) string {
	if w == nil { // steps may be shown all the same
		w = &parentSeen{}
		if g == nil {
			return ""
		}
		g = &fsm.ParentAnswer{Outcome: g.Outcome, Done: g.Done, Holder: g.Holder, Token: g.Token, State: g.State, AlreadyFinalized: g.AlreadyFinalized}
	}
	if g == nil {
		return fmt.Sprintf("nothing is told of the parent, the model tells %+v", *w)
	}
	if outcomeNames[g.Outcome] == w.outcome && g.Done == w.done && g.Holder == w.holder && g.Token == w.token &&
		g.State.String() == w.state && g.AlreadyFinalized == w.already {
		return stepsDiffer(g.Steps, w.steps)
	}
	return fmt.Sprintf("of the parent is told\n    %+v (%s, %s)\n  the model tells\n    %+v", *g, outcomeNames[g.Outcome], g.State, *w)
}

// samePlace compares what makes a task a parent or a step.
func samePlace(g *fsm.Task, w *task) bool {
	switch {
	case w.plan == nil:
		return g.Parent() == nil && g.Step() == nil
	case w.of != 0:
		return g.Parent() == nil && g.Step() != nil && g.Step().ParentID == w.of && w.plan.same(g.Step().Plan)
	}
	return g.Step() == nil && g.Parent() != nil && w.plan.same(g.Parent().Plan) && w.final.same(g.Parent().Finalization)
}

func (p *plan) same(g *fsm.Plan) bool {
	if g == nil || len(g.Steps) != len(p.steps) || g.ByClaim != p.byClaim || g.Continue != p.goesOn {
		return false
	}
	for i, s := range p.steps {
		if g.Steps[i].Name != s.name || !slices.EqualFunc(g.Steps[i].DependsOn, s.on, func(g uint16, w int) bool { return int(g) == w }) {
			return false
		}
	}
	return true
}

// same compares the claim of a finalization, which may be let go of when its time
// is over, and who tried to get it.
func (f *ending) same(g *fsm.Finalization) bool {
	if g == nil {
		g = &fsm.Finalization{}
	}
	if g.ProcessorID != "" && (g.ProcessorID != f.processor || g.Token != f.token || g.TimeoutMS != f.timeoutMS || g.EndU != f.endU) {
		return false
	}
	return slices.EqualFunc(g.Attempts, f.tried, func(g fsm.FinalizationAttempt, w tried) bool {
		return g.ProcessorID == w.processor && outcomeNames[g.Outcome] == w.outcome && g.Holder == w.holder && g.State.String() == w.state && g.At == w.at
	})
}

func describePlace(g *fsm.Task) string {
	switch {
	case g.Parent() != nil:
		return fmt.Sprintf("a parent: plan %+v, finalization %+v", *g.Parent().Plan, g.Parent().Finalization)
	case g.Step() != nil:
		return fmt.Sprintf("a step: %+v", *g.Step())
	}
	return "neither parent nor step"
}

// parentsDiffer compares what is told of parents beside their tasks.
func parentsDiffer(machine *fsm.Machine, m *model) string {
	for _, t := range m.tasks {
		if t == nil || !t.isParent() {
			continue
		}
		if d := stepsDiffer(machine.Steps(t.id), m.stepsOf(t)); d != "" {
			return fmt.Sprintf("parent %d: %s", t.id, d)
		}
		if d := listsDiffer(machine, m, t); d != "" {
			return d
		}
		v, _ := machine.Finalization(t.id, machine.Stamp())
		if v.ClaimedBy != m.heldBy(t) || len(v.Attempts) != len(t.final.tried) {
			return fmt.Sprintf("the finalization of %d is claimed by %q, in the model by %q: %+v, %+v", t.id, v.ClaimedBy, m.heldBy(t), v, t.final)
		}
	}
	return ""
}

// listsDiffer compares the list of a parent's steps, and what the blocked ones of
// them are said to wait for.
func listsDiffer(machine *fsm.Machine, m *model, p *task) string {
	steps := m.stepsOf(p)
	listed := machine.List(fsm.ListQuery{Filter: fsm.Filter{ParentID: p.id}, Limit: 1000}).Tasks
	if !slices.EqualFunc(listed, steps, func(g *fsm.Task, w *task) bool { return g.ID == w.id }) {
		return fmt.Sprintf("%d steps of parent %d are listed, the model has %d", len(listed), p.id, len(steps))
	}
	for _, s := range steps {
		if s.status != blocked {
			continue
		}
		var want []string
		for _, on := range p.plan.steps[s.place()].on {
			if steps[on].status != completed {
				want = append(want, p.plan.steps[on].name)
			}
		}
		why, _ := machine.Why(s.id, machine.Stamp())
		if len(why.Reasons) == 0 || why.Reasons[0].Code != fsm.WhyBlocked || !slices.Equal(why.Reasons[0].Steps, want) {
			return fmt.Sprintf("step %d is blocked because of %+v, the model knows of %v", s.id, why.Reasons, want)
		}
	}
	return ""
}

// stepsDiffer compares how the steps of a parent are told.
func stepsDiffer(got []fsm.StepView, want []*task) string {
	same := slices.EqualFunc(got, want, func(g fsm.StepView, w *task) bool {
		return g.Type == w.kind && g.Status.String() == w.status && g.Error == w.reason
	})
	if same {
		return ""
	}
	var of []task
	for _, s := range want {
		of = append(of, *s)
	}
	return fmt.Sprintf("its steps are told as\n    %+v\n  the model has\n    %+v", got, of)
}

package sim

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// outcomeNames are the model's words for the outcome of a claim of a
// finalization.
var outcomeNames = map[fsm.FinalizationOutcome]string{
	0: "", fsm.FinalizationClaimed: model.EndClaimed, fsm.FinalizationExtended: model.EndExtended, fsm.FinalizationAlreadyClaimed: model.EndHeld,
	fsm.FinalizationAlreadyDone: model.EndDone, fsm.FinalizationNotReady: model.EndNotReady, fsm.FinalizationNotFound: model.EndNotFound,
}

// parentDiffers is differs for what is answered about a parent.
func parentDiffers(g *fsm.ParentAnswer, w *model.ParentSeen) string {
	if w == nil { // steps may be shown all the same
		w = &model.ParentSeen{}
		if g == nil {
			return ""
		}
		g = &fsm.ParentAnswer{Outcome: g.Outcome, Done: g.Done, Holder: g.Holder, Token: g.Token, State: g.State, AlreadyFinalized: g.AlreadyFinalized}
	}
	if g == nil {
		return fmt.Sprintf("nothing is told of the parent, the model tells %+v", *w)
	}
	if outcomeNames[g.Outcome] == w.Outcome && g.Done == w.Done && g.Holder == w.Holder && g.Token == w.Token &&
		g.State.String() == w.State && g.AlreadyFinalized == w.Already {
		return stepsDiffer(g.Steps, w.Steps)
	}
	return fmt.Sprintf("of the parent is told\n    %+v (%s, %s)\n  the model tells\n    %+v", *g, outcomeNames[g.Outcome], g.State, *w)
}

// samePlace compares what makes a task a parent or a step.
func samePlace(g *fsm.Task, w *model.Task) bool {
	switch {
	case w.Plan == nil:
		return g.Parent() == nil && g.Step() == nil
	case w.Of != 0:
		return g.Parent() == nil && g.Step() != nil && g.Step().ParentID == w.Of && samePlan(w.Plan, g.Step().Plan)
	}
	return g.Step() == nil && g.Parent() != nil && samePlan(w.Plan, g.Parent().Plan) && sameEnding(&w.Final, g.Parent().Finalization)
}

func samePlan(p *model.Plan, g *fsm.Plan) bool {
	if g == nil || len(g.Steps) != len(p.Steps) || g.ByClaim != p.ByClaim || g.Continue != p.GoesOn {
		return false
	}
	for i, s := range p.Steps {
		if g.Steps[i].Name != s.Name || !slices.EqualFunc(g.Steps[i].DependsOn, s.On, func(g uint16, w int) bool { return int(g) == w }) {
			return false
		}
	}
	return true
}

// sameEnding compares the claim of a finalization, which may be let go of when its time
// is over, and who tried to get it.
func sameEnding(f *model.Ending, g *fsm.Finalization) bool {
	if g == nil {
		g = &fsm.Finalization{}
	}
	if g.ProcessorID != "" && (g.ProcessorID != f.Processor || g.Token != f.Token || g.TimeoutMS != f.TimeoutMS || g.EndU != f.EndU) {
		return false
	}
	return slices.EqualFunc(g.Attempts, f.Tried, func(g fsm.FinalizationAttempt, w model.Tried) bool {
		return g.ProcessorID == w.Processor && outcomeNames[g.Outcome] == w.Outcome && g.Holder == w.Holder && g.State.String() == w.State && g.At == w.At
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
func parentsDiffer(machine *fsm.Machine, m *model.Model) string {
	for _, t := range m.Tasks {
		if t == nil || !t.IsParent() {
			continue
		}
		if d := stepsDiffer(machine.Steps(t.ID), m.StepsOf(t)); d != "" {
			return fmt.Sprintf("parent %d: %s", t.ID, d)
		}
		if d := listsDiffer(machine, m, t); d != "" {
			return d
		}
		v, _ := machine.Finalization(t.ID, machine.Stamp())
		if v.ClaimedBy != m.HeldBy(t) || len(v.Attempts) != len(t.Final.Tried) {
			return fmt.Sprintf("the finalization of %d is claimed by %q, in the model by %q: %+v, %+v", t.ID, v.ClaimedBy, m.HeldBy(t), v, t.Final)
		}
	}
	return ""
}

// listsDiffer compares the list of a parent's steps, and what the blocked ones of
// them are said to wait for.
func listsDiffer(machine *fsm.Machine, m *model.Model, p *model.Task) string {
	steps := m.StepsOf(p)
	listed := machine.List(fsm.ListQuery{Filter: fsm.Filter{ParentID: p.ID}, Limit: 1000}).Tasks
	if !slices.EqualFunc(listed, steps, func(g *fsm.Task, w *model.Task) bool { return g.ID == w.ID }) {
		return fmt.Sprintf("%d steps of parent %d are listed, the model has %d", len(listed), p.ID, len(steps))
	}
	for _, s := range steps {
		if s.Status != model.Blocked {
			continue
		}
		var want []string
		for _, on := range p.Plan.Steps[s.Place()].On {
			if steps[on].Status != model.Completed {
				want = append(want, p.Plan.Steps[on].Name)
			}
		}
		why, _ := machine.Why(s.ID, machine.Stamp())
		if len(why.Reasons) == 0 || why.Reasons[0].Code != fsm.WhyBlocked || !slices.Equal(why.Reasons[0].Steps, want) {
			return fmt.Sprintf("step %d is blocked because of %+v, the model knows of %v", s.ID, why.Reasons, want)
		}
	}
	return ""
}

// stepsDiffer compares how the steps of a parent are told.
func stepsDiffer(got []fsm.StepView, want []*model.Task) string {
	same := slices.EqualFunc(got, want, func(g fsm.StepView, w *model.Task) bool {
		return g.Type == w.Kind && g.Status.String() == w.Status && g.Error == w.Reason
	})
	if same {
		return ""
	}
	var of []model.Task
	for _, s := range want {
		of = append(of, *s)
	}
	return fmt.Sprintf("its steps are told as\n    %+v\n  the model has\n    %+v", got, of)
}

package fsm

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// stepsCommands has a command of each type that knows a field of level 4, with
// every field set. Golden files hold them, so they do not change.
func stepsCommands() []Command {
	task := sightCommands()[0].(Submit).Tasks[0]
	parent := task
	parent.Parent = &NewParent{
		Steps: []NewStep{
			{Name: "merge", DependsOn: []uint16{1, 2}, Task: task},
			{Name: "fetch:1", DependsOn: []uint16{2}, Task: task},
			{Name: "fetch:2", DependsOn: []uint16{3}, Task: task},
			{Name: "begin", DependsOn: []uint16{4}, Task: task},
			{Name: "first", Task: task},
		},
		ByClaim: true, Continue: true,
	}
	complete := sightCommands()[1].(Complete)
	complete.Submit = []NewTask{parent, parent}
	return []Command{
		Submit{Tasks: []NewTask{parent}},
		complete,
		Batch{Atomic: true, Ops: []Command{Submit{Tasks: []NewTask{parent}}, complete}},
		ClaimFinalization{ID: 1<<53 - 1, ProcessorID: "processor-1", TimeoutMS: 3_600_000},
		ExtendFinalization{ID: 1<<53 - 1, ProcessorID: "processor-1", TimeoutMS: 1000},
		ReleaseFinalization{ID: 1<<53 - 1, ProcessorID: "processor-1"},
		Finalize{
			ID: 1<<53 - 1, ProcessorID: "processor-1", Token: 1<<53 - 2, Failed: true,
			Result: []byte(`{"sum":7}`), Error: "mailbox full",
		},
	}
}

// drawSteps draws a command that appeared at level 4.
func drawSteps(t *rapid.T, k kind) Command {
	str, i64 := rapid.String(), rapid.Int64()
	switch k {
	case kindClaimFinalization:
		return ClaimFinalization{ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor"), TimeoutMS: i64.Draw(t, "timeout")}
	case kindExtendFinalization:
		return ExtendFinalization{ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor"), TimeoutMS: i64.Draw(t, "timeout")}
	case kindReleaseFinalization:
		return ReleaseFinalization{ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor")}
	case kindFinalize:
		return Finalize{
			ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor"), Token: drawID(t, "token"),
			Failed: rapid.Bool().Draw(t, "failed"), Result: drawBytes(t, "result"), Error: str.Draw(t, "error"),
		}
	}
	panic("a kind that drawCommand does not draw")
}

// drawMaybeParent draws a task, sometimes with steps.
func drawMaybeParent(t *rapid.T) NewTask {
	task := drawNewTask(t)
	if rapid.IntRange(0, 3).Draw(t, "is a parent") == 3 {
		task.Parent = drawNewParent(t)
	}
	return task
}

// drawNewParent draws steps as the wire can carry them: they may depend on each
// other in a circle.
func drawNewParent(t *rapid.T) *NewParent {
	p := &NewParent{ByClaim: rapid.Bool().Draw(t, "by claim"), Continue: rapid.Bool().Draw(t, "continue")}
	n := rapid.IntRange(1, 6).Draw(t, "steps")
	for place := range n {
		p.Steps = append(p.Steps, NewStep{Name: rapid.String().Draw(t, "step"), DependsOn: drawPlaces(t, place, n), Task: drawNewTask(t)})
	}
	return p
}

// drawPlaces draws some of n places, ascending, without the step's own; nil if
// none.
func drawPlaces(t *rapid.T, own, n int) []uint16 {
	var places []uint16
	for place := range n {
		if place != own && rapid.IntRange(0, 2).Draw(t, "depends on") == 2 {
			places = append(places, uint16(place))
		}
	}
	return places
}

// TestDecodeEntry_ThousandSteps ensures that the largest parent can be read, and
// that a larger one is refused.
func TestDecodeEntry_ThousandSteps(t *testing.T) {
	t.Parallel()
	of := func(n int) Submit {
		p := &NewParent{Steps: make([]NewStep, n)}
		for place := range n {
			p.Steps[place] = NewStep{Name: "s", Task: NewTask{Type: "mail"}}
			for on := range min(place, stepsMax-1) {
				p.Steps[place].DependsOn = append(p.Steps[place].DependsOn, uint16(on))
			}
		}
		return Submit{Tasks: []NewTask{{Type: "mail", Parent: p}}}
	}
	_, commands, err := DecodeEntry(AppendEntry(nil, Stamp{}, of(stepsMax)))
	if err != nil {
		t.Fatal(err)
	}
	steps := commands[0].(Submit).Tasks[0].Parent.Steps
	if len(steps) != stepsMax || len(steps[stepsMax-1].DependsOn) != stepsMax-1 || !slices.IsSorted(steps[stepsMax-1].DependsOn) {
		t.Errorf("%d steps, the last depends on %d", len(steps), len(steps[len(steps)-1].DependsOn))
	}
	if _, _, err := DecodeEntry(AppendEntry(nil, Stamp{}, of(stepsMax+1))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a step too many: %v, want ErrCorrupt", err)
	}
}

// TestDecodeEntry_NestedStepsAreNotRead ensures that steps of steps of steps are
// refused at the first, however deep they go: they would take the stack.
func TestDecodeEntry_NestedStepsAreNotRead(t *testing.T) {
	t.Parallel()
	task := NewTask{Type: "mail"}
	for range 300 {
		task = NewTask{Type: "mail", Parent: &NewParent{Steps: []NewStep{{Name: "s", Task: task}}}}
	}
	_, _, err := DecodeEntry(AppendEntry(nil, Stamp{}, Submit{Tasks: []NewTask{task}}))
	if !errors.Is(err, ErrUnknownCommand) {
		t.Errorf("%v, want ErrUnknownCommand", err)
	}
}

// fullParent is what a parent has, with every field set.
func fullParent() *Parent {
	return &Parent{
		Plan: newPlan(stepsCommands()[0].(Submit).Tasks[0].Parent),
		Finalization: &Finalization{
			ProcessorID: "processor-1", Token: 1<<53 - 2, TimeoutMS: 3_600_000, EndU: 86_430_001,
			Attempts: []FinalizationAttempt{
				{ProcessorID: "processor-1", Outcome: FinalizationClaimed, Holder: "processor-1", State: StateWaitingForSteps, At: 1_780_000_000_001},
				{ProcessorID: "processor-2", Outcome: FinalizationNotReady, Holder: "processor-1", State: StateCancelled, At: math.MaxInt64},
			},
		},
	}
}

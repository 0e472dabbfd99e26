package fsm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// stepsCommands has commands about parents and their steps, with every field set.
func stepsCommands() []command.Command {
	task := sightCommands()[0].(command.Submit).Tasks[0]
	parent := task
	parent.Parent = &record.NewParent{
		Steps: []record.NewStep{
			{Name: "merge", DependsOn: []uint16{1, 2}, Task: task},
			{Name: "fetch:1", DependsOn: []uint16{2}, Task: task},
			{Name: "fetch:2", DependsOn: []uint16{3}, Task: task},
			{Name: "begin", DependsOn: []uint16{4}, Task: task},
			{Name: "first", Task: task},
		},
		ByClaim: true, Continue: true,
	}
	added := task
	added.KeyOfType = true // which means nothing
	complete := sightCommands()[1].(command.Complete)
	complete.Submit = []record.NewTask{parent, parent}
	return []command.Command{
		command.Submit{Tasks: []record.NewTask{parent}},
		complete,
		command.Batch{Atomic: true, RequestID: "request-1", Ops: []command.Command{command.Submit{Tasks: []record.NewTask{parent}}, complete}},
		command.AddSteps{
			Hold: command.Hold{ID: 1<<53 - 1, WorkerID: "worker-1", Token: 1<<53 - 2},
			Steps: []record.AddedStep{
				{NewStep: record.NewStep{Name: "check", DependsOn: []uint16{1}, Task: added}, After: []string{"merge", "first"}},
				{NewStep: record.NewStep{Name: "fetch:3", Task: added}, After: []string{"begin"}},
			},
		},
		command.ClaimFinalization{ID: 1<<53 - 1, ProcessorID: "processor-1", TimeoutMS: 3_600_000},
		command.ExtendFinalization{ID: 1<<53 - 1, ProcessorID: "processor-1", TimeoutMS: 1000},
		command.ReleaseFinalization{ID: 1<<53 - 1, ProcessorID: "processor-1"},
		command.Finalize{
			ID: 1<<53 - 1, ProcessorID: "processor-1", Token: 1<<53 - 2, Failed: true,
			Result: []byte(`{"sum":7}`), Error: "mailbox full",
		},
	}
}

// drawSteps draws a command that appeared at level 4.
func drawSteps(t *rapid.T, k command.Kind) command.Command {
	str, i64 := rapid.String(), rapid.Int64()
	switch k {
	case command.KindAddSteps:
		return command.AddSteps{Hold: drawHold(t), Steps: drawAddedSteps(t)}
	case command.KindClaimFinalization:
		return command.ClaimFinalization{ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor"), TimeoutMS: i64.Draw(t, "timeout")}
	case command.KindExtendFinalization:
		return command.ExtendFinalization{ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor"), TimeoutMS: i64.Draw(t, "timeout")}
	case command.KindReleaseFinalization:
		return command.ReleaseFinalization{ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor")}
	case command.KindFinalize:
		return command.Finalize{
			ID: drawID(t, "id"), ProcessorID: str.Draw(t, "processor"), Token: drawID(t, "token"),
			Failed: rapid.Bool().Draw(t, "failed"), Result: drawBytes(t, "result"), Error: str.Draw(t, "error"),
		}
	}
	panic("a kind that drawCommand does not draw")
}

// drawMaybeParent draws a task, sometimes with steps.
func drawMaybeParent(t *rapid.T) record.NewTask {
	task := drawNewTask(t)
	if rapid.IntRange(0, 3).Draw(t, "is a parent") == 3 {
		task.Parent = drawNewParent(t)
	}
	return task
}

// drawNewParent draws steps as the wire can carry them. Either all steps depend only on
// earlier ones, or all only on later ones, so there is no cycle.
func drawNewParent(t *rapid.T) *record.NewParent {
	p := &record.NewParent{ByClaim: rapid.Bool().Draw(t, "by claim"), Continue: rapid.Bool().Draw(t, "continue")}
	n := rapid.IntRange(1, 6).Draw(t, "steps")
	front := rapid.Bool().Draw(t, "on those in front")
	for place := range n {
		on := drawPlaces(t, place+1, n)
		if front {
			on = drawPlaces(t, 0, place)
		}
		p.Steps = append(p.Steps, record.NewStep{Name: rapid.String().Draw(t, "step"), DependsOn: on, Task: drawNewTask(t)})
	}
	return p
}

// drawAddedSteps draws steps to add, each of which depends on earlier ones and on others.
func drawAddedSteps(t *rapid.T) (steps []record.AddedStep) {
	for i := range rapid.IntRange(1, 6).Draw(t, "steps") {
		steps = append(steps, record.AddedStep{
			NewStep: record.NewStep{Name: fmt.Sprint(i, rapid.String().Draw(t, "step")), DependsOn: drawPlaces(t, 0, i), Task: drawNewTask(t)},
			After:   drawSlice(t, "after", func(t *rapid.T) string { return rapid.String().Draw(t, "name") }),
		})
	}
	return steps
}

// drawPlaces draws some of the places from first up to end, ascending; nil if none.
func drawPlaces(t *rapid.T, first, end int) []uint16 {
	var places []uint16
	for place := first; place < end; place++ {
		if rapid.IntRange(0, 2).Draw(t, "depends on") == 2 {
			places = append(places, uint16(place))
		}
	}
	return places
}

// TestDecodeEntry_ThousandSteps ensures that the largest parent can be read, and
// that a larger one is refused.
func TestDecodeEntry_ThousandSteps(t *testing.T) {
	t.Parallel()
	of := func(n int) command.Submit {
		p := &record.NewParent{Steps: make([]record.NewStep, n)}
		for place := range n {
			p.Steps[place] = record.NewStep{Name: "s", Task: record.NewTask{Type: "mail"}}
			for on := range min(place, record.StepsMax-1) {
				p.Steps[place].DependsOn = append(p.Steps[place].DependsOn, uint16(on))
			}
		}
		return command.Submit{Tasks: []record.NewTask{{Type: "mail", Parent: p}}}
	}
	_, commands, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{}, of(record.StepsMax)))
	if err != nil {
		t.Fatal(err)
	}
	steps := commands[0].(command.Submit).Tasks[0].Parent.Steps
	if len(steps) != record.StepsMax || len(steps[record.StepsMax-1].DependsOn) != record.StepsMax-1 || !slices.IsSorted(steps[record.StepsMax-1].DependsOn) {
		t.Errorf("%d steps, the last depends on %d", len(steps), len(steps[len(steps)-1].DependsOn))
	}
	if _, _, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{}, of(record.StepsMax+1))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a step too many: %v, want ErrCorrupt", err)
	}
}

// TestDecodeEntry_RefusesCycles ensures that steps which could never begin are
// refused, and that what looks alike is not.
func TestDecodeEntry_RefusesCycles(t *testing.T) {
	t.Parallel()
	long := make([][]uint16, record.StepsMax) // each waits for the next
	for place := range record.StepsMax - 1 {
		long[place] = []uint16{uint16(place + 1)}
	}
	round := slices.Clone(long)
	round[record.StepsMax-1] = []uint16{0}
	for _, test := range []struct {
		name   string
		on     [][]uint16
		circle bool
	}{
		{"two steps", [][]uint16{{1}, {0}}, true},
		{"a diamond", [][]uint16{{1, 2}, {3}, {3}, nil}, false},
		{"a diamond with a way back", [][]uint16{{1, 2}, {3}, {3}, {0}}, true},
		{"a circle that a free step leads to", [][]uint16{nil, {0, 2}, {3}, {1}}, true},
		{"a circle behind others", [][]uint16{{1}, {2}, {3}, {2, 4}, nil}, true},
		{"the longest chain", long, false},
		{"the longest circle", round, true},
	} {
		p := &record.NewParent{}
		for _, on := range test.on {
			p.Steps = append(p.Steps, record.NewStep{Name: "s", DependsOn: on})
		}
		_, _, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{}, command.Submit{Tasks: []record.NewTask{{Parent: p}}}))
		if test.circle != errors.Is(err, ErrCorrupt) || !test.circle && err != nil {
			t.Errorf("%s: error %v", test.name, err)
		}
		if sound := record.NewPlan(p).Sound(); sound == test.circle {
			t.Errorf("%s: a record with it is sound: %v", test.name, sound)
		}
	}
}

// TestDecodeEntry_NestedStepsAreNotRead ensures that steps of steps of steps are
// refused at the first, however deep they go: they would take the stack.
func TestDecodeEntry_NestedStepsAreNotRead(t *testing.T) {
	t.Parallel()
	task := record.NewTask{Type: "mail"}
	for range 300 {
		task = record.NewTask{Type: "mail", Parent: &record.NewParent{Steps: []record.NewStep{{Name: "s", Task: task}}}}
	}
	_, _, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{}, command.Submit{Tasks: []record.NewTask{task}}))
	if !errors.Is(err, ErrUnknownCommand) {
		t.Errorf("%v, want ErrUnknownCommand", err)
	}
}

// TestDecodeEntry_RefusesStepsToAdd ensures that steps to add which depend on each other in a
// circle are refused, and two of one name.
func TestDecodeEntry_RefusesStepsToAdd(t *testing.T) {
	t.Parallel()
	step := func(name string, on ...uint16) record.AddedStep {
		return record.AddedStep{NewStep: record.NewStep{Name: name, DependsOn: on}}
	}
	for _, test := range []struct {
		steps []record.AddedStep
		good  bool
	}{
		{[]record.AddedStep{step("a", 1), step("b")}, true},
		{[]record.AddedStep{step("a", 1), step("b", 0)}, false},
		{[]record.AddedStep{step("a", 0)}, false},
		{[]record.AddedStep{step("a"), step("a")}, false},
		{nil, false},
	} {
		_, _, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{}, command.AddSteps{Steps: test.steps}))
		if test.good != (err == nil) || !test.good && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%+v: error %v", test.steps, err)
		}
	}
}

// fullParent returns a parent with every field set.
func fullParent() *record.Parent {
	plan := record.NewPlan(stepsCommands()[0].(command.Submit).Tasks[0].Parent)
	plan.Added = []uint64{1<<53 - 4, 1<<53 - 3}
	plan.Link()
	return &record.Parent{
		Plan: plan,
		Finalization: &record.Finalization{
			ProcessorID: "processor-1", Token: 1<<53 - 2, TimeoutMS: 3_600_000, EndU: 86_430_001,
			Attempts: []record.FinalizationAttempt{
				{ProcessorID: "processor-1", Outcome: record.FinalizationClaimed, Holder: "processor-1", State: record.StateWaitingForSteps, At: 1_780_000_000_001},
				{ProcessorID: "processor-2", Outcome: record.FinalizationNotReady, Holder: "processor-1", State: record.StateCancelled, At: math.MaxInt64},
			},
		},
	}
}

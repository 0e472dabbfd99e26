package parents

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"

	"github.com/claimq/claimq/api/wire"
)

// shapes are how the steps of a parent depend on each other.
var shapes = [...]string{"independent", "chain", "diamond", "fan-in", "random"}

const (
	// parentType is the task type of all parents.
	parentType = "parent"
	stepTypes  = 3

	// Of 1000 parents so many have a step that fails for good, a step that fails
	// once, and are cancelled soon after their submit.
	badPermille       = 80
	flakyPermille     = 40
	cancelledPermille = 15
)

// Errors that workers and processors fail with.
const (
	badError   = "this step is bad"
	flakyError = "not the first time"
	goalError  = "a step is bad"
)

// What a worker is to do with a step, in its params.
const (
	stepGood  = 0
	stepBad   = 1 // it fails for good
	stepFlaky = 2 // its first attempt fails
)

// params are those of a step.
type params struct {
	Parent int `json:"n"`     // number of the parent
	Place  int `json:"place"` // of the step, from 0
	Kind   int `json:"kind"`
}

// Shape is one parent as it is submitted. All of it follows from the seed and
// its number.
type Shape struct {
	Number    int
	Form      string
	DependsOn [][]int // by place of the step: places
	ByClaim   bool
	Continue  bool
	Bad       int // place of the step that fails for good, -1 = none
	Flaky     int // place of the step whose first attempt fails, -1 = none
	Cancelled bool
}

// NewShape returns the parent of that number.
func NewShape(seed int64, number, steps int) Shape {
	rng := rand.New(rand.NewSource(seed*1_000_003 + int64(number)))
	s := Shape{
		Number: number, Form: shapes[number%len(shapes)], DependsOn: make([][]int, steps), Bad: -1, Flaky: -1,
		ByClaim: rng.Intn(2) == 0, Continue: rng.Intn(2) == 0,
	}
	last := steps - 1
	for place := 1; place < steps; place++ {
		switch {
		case s.Form == "chain":
			s.DependsOn[place] = []int{place - 1}
		case s.Form == "diamond" && place < last:
			s.DependsOn[place] = []int{0}
		case s.Form == "diamond" && last > 1:
			s.DependsOn[place] = span(1, last)
		case s.Form == "diamond", s.Form == "fan-in" && place == last:
			s.DependsOn[place] = span(0, last)
		case s.Form == "random":
			s.DependsOn[place] = rng.Perm(place)[:rng.Intn(min(place, 2)+1)]
		}
	}
	switch n := rng.Intn(1000); {
	case n < badPermille:
		s.Bad = rng.Intn(steps)
	case n < badPermille+flakyPermille:
		s.Flaky = rng.Intn(steps)
	case n < badPermille+flakyPermille+cancelledPermille:
		s.Cancelled = true
	}
	return s
}

// span returns the places from lo to hi, without hi.
func span(lo, hi int) (places []int) {
	for place := lo; place < hi; place++ {
		places = append(places, place)
	}
	return places
}

// key is the parent's idempotency key.
func (s *Shape) key(seed int64) string { return fmt.Sprintf("parent-%d-%d", seed, s.Number) }

func stepName(place int) string { return fmt.Sprintf("s%d", place+1) }

// task returns what is submitted.
func (s *Shape) task(seed int64) wire.NewTask {
	t := wire.NewTask{TaskType: parentType, IdempotencyKey: s.key(seed)}
	if s.ByClaim {
		t.Finalize = "claim"
	}
	if s.Continue {
		t.OnStepFailure = "continue"
	}
	var unlimited int32
	for place := range s.DependsOn {
		p := params{Parent: s.Number, Place: place}
		switch place {
		case s.Bad:
			p.Kind = stepBad
		case s.Flaky:
			p.Kind = stepFlaky
		}
		raw, _ := json.Marshal(p) // of integers: it cannot fail
		step := wire.NewStep{Step: stepName(place), NewTask: wire.NewTask{
			TaskType: fmt.Sprintf("step-%d", (s.Number+place)%stepTypes), Params: raw, Priority: int32((s.Number + place) % 2), MaxAttempts: &unlimited,
			Backoff: &wire.Backoff{}, // none
		}}
		for _, on := range s.DependsOn[place] {
			step.DependsOn = append(step.DependsOn, stepName(on))
		}
		t.Steps = append(t.Steps, step)
	}
	return t
}

// stepResult is what a worker completes the step with.
func stepResult(number, place int) string { return fmt.Sprintf(`{"n":%d,"place":%d}`, number, place) }

// goal is the outcome that every processor wants for the parent.
func (s *Shape) goal() string {
	if s.Bad >= 0 {
		return "failed"
	}
	return "completed"
}

// goalResult is the result that the processor gives the parent, "" if it fails.
func (s *Shape) goalResult(processor string) string {
	if s.Bad >= 0 {
		return ""
	}
	return fmt.Sprintf(`{"n":%d,"by":%q}`, s.Number, processor)
}

// lost reports, by place, which steps can never complete: the bad one and those
// that depend on it.
func (s *Shape) lost() []bool {
	lost := make([]bool, len(s.DependsOn))
	for place, depends := range s.DependsOn { // which go back only
		lost[place] = place == s.Bad
		for _, on := range depends {
			lost[place] = lost[place] || lost[on]
		}
	}
	return lost
}

// end is how a parent ends, as far as that is certain.
type end struct {
	status string
	result string // "" = none
	error  string
}

// want returns how the parent must end, given which of its steps completed and,
// of one by claim, the processor that ended it.
func (s *Shape) want(completed []bool, processor string) end {
	if s.ByClaim {
		if s.Bad >= 0 {
			return end{status: "failed", error: goalError}
		}
		return end{status: "completed", result: s.goalResult(processor)}
	}
	var results []string
	for place := range completed {
		if completed[place] {
			results = append(results, fmt.Sprintf("%q:%s", stepName(place), stepResult(s.Number, place)))
		}
	}
	if s.Bad >= 0 && (!s.Continue || len(results) == 0) {
		return end{status: "failed", error: fmt.Sprintf("step %s failed: %s", stepName(s.Bad), badError)}
	}
	return end{status: "completed", result: "{" + strings.Join(results, ",") + "}"}
}

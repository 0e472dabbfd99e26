package parents

import (
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// story is a run that was made by hand: what the trail tells, which parents were
// acknowledged, and what the cluster holds at the end.
type story struct {
	shapes []Shape
	ids    []uint64
	events []wire.Event
	cancel []uint64 // parents whose cancel was acknowledged
	state  *state
}

// tell adds an event in an entry of its own, or (more) in that of the one before.
func (s *story) tell(more bool, kind string, task, token uint64, worker, message string) {
	e := wire.Event{Index: 1, Event: kind, TaskID: &task, Message: message}
	if n := len(s.events); n > 0 {
		e.Index, e.Sub = s.events[n-1].Index, s.events[n-1].Sub+1
		if !more {
			e.Index, e.Sub = e.Index+1, 0
		}
	}
	if token > 0 {
		e.ClaimToken = &token
	}
	if worker != "" {
		e.WorkerID = &worker
	}
	s.events = append(s.events, e)
}

// hold adds a task to the state at the end.
func (s *story) hold(id uint64, h held) {
	s.state.tasks[id] = &h
	s.state.counts[h.status]++
	s.state.listed[h.status]++
}

const seed = 7

// good is two parents of three steps in a chain: the second step of the one, 1,
// is given back once and has a lease that ends, and the parent ends by itself; the
// first step of the other, 5, is bad, and a processor ends it after another has
// died.
func good() *story {
	s := &story{
		shapes: []Shape{
			{Number: 1, Form: "chain", DependsOn: [][]int{nil, {0}, {1}}, Bad: -1, Flaky: -1},
			{Number: 2, Form: "chain", DependsOn: [][]int{nil, {0}, {1}}, Bad: 0, Flaky: -1, ByClaim: true},
		},
		ids:   []uint64{1, 5},
		state: &state{tasks: map[uint64]*held{}, counts: map[string]int64{}, listed: map[string]int64{}, hashes: []string{"a", "a"}},
	}
	for id := uint64(1); id <= 8; id++ {
		s.tell(id > 1, "submitted", id, 0, "", "")
	}
	s.tell(false, "claimed", 2, 1, "w", "")
	s.tell(true, "claimed", 6, 2, "w", "")
	s.tell(false, "completed", 2, 1, "w", "")
	s.tell(false, "claimed", 3, 3, "w", "")
	s.tell(false, "released", 3, 3, "w", "")
	s.tell(true, "requeued", 3, 0, "", "")
	s.tell(false, "claimed", 3, 4, "v", "")
	s.tell(false, "lease_expired", 3, 4, "v", "")
	s.tell(true, "requeued", 3, 0, "", "")
	s.tell(false, "claimed", 3, 5, "w", "")
	s.tell(false, "failed", 3, 5, "w", flakyError)
	s.tell(true, "requeued", 3, 0, "", "")
	s.tell(false, "failed", 6, 2, "w", badError)
	s.tell(true, "cancelled", 7, 0, "", "")
	s.tell(true, "cancelled", 8, 0, "", "")
	s.tell(false, "finalization_claimed", 5, 6, "p", "")
	s.tell(false, "claimed", 3, 7, "w", "")
	s.tell(false, "completed", 3, 7, "w", "")
	s.tell(false, "claimed", 4, 8, "w", "")
	s.tell(false, "completed", 4, 8, "w", "")
	s.tell(true, "finalized", 1, 0, "", "completed")
	s.tell(true, "completed", 1, 0, "", "")
	s.tell(false, "finalization_claimed", 5, 9, "q", "")
	s.tell(false, "finalized", 5, 9, "q", "failed")
	s.tell(true, "failed", 5, 9, "q", goalError)
	s.hold(1, held{status: "completed", key: "parent-7-1", result: `{"s1":{"n":1,"place":0},"s2":{"n":1,"place":1},"s3":{"n":1,"place":2}}`})
	for place := range 3 {
		s.hold(2+uint64(place), held{status: "completed", parentID: 1, step: stepName(place), result: stepResult(1, place)})
	}
	s.hold(5, held{status: "failed", key: "parent-7-2", error: goalError, worker: "q"})
	s.hold(6, held{status: "failed", parentID: 5, step: "s1", error: badError})
	s.hold(7, held{status: "cancelled", parentID: 5, step: "s2"})
	s.hold(8, held{status: "cancelled", parentID: 5, step: "s3"})
	return s
}

// judge returns what the ledger finds.
func (s *story) judge() []string {
	l := newLedger(func(*parent, bool) {})
	for i := range s.events {
		l.tell(&s.events[i])
		if i == 9 { // some events are told before the answer is there
			for n := range s.shapes {
				l.register(s.shapes[n], s.ids[n])
			}
		}
	}
	for _, id := range s.cancel {
		l.cancelledNow(id)
	}
	l.judge(seed, s.state)
	return l.violations
}

// place returns where the nth event of the kind about the task is.
func (s *story) place(kind string, task uint64, nth int) int {
	for i := range s.events {
		if s.events[i].Event == kind && *s.events[i].TaskID == task {
			if nth--; nth == 0 {
				return i
			}
		}
	}
	panic("no such event")
}

// drop takes the event out, and numbers the others again.
func (s *story) drop(i int) {
	s.events = slices.Delete(s.events, i, i+1)
	s.number()
}

// move takes the event to another place.
func (s *story) move(from, to int) {
	e := s.events[from]
	s.events = slices.Insert(slices.Delete(s.events, from, from+1), to, e)
	s.number()
}

// number puts each event in an entry of its own.
func (s *story) number() {
	for i := range s.events {
		s.events[i].Index, s.events[i].Sub = uint64(i+1), 0
	}
}

func TestLedger_passesAGoodRun(t *testing.T) {
	t.Parallel()
	if found := good().judge(); len(found) > 0 {
		t.Error(strings.Join(found, "\n"))
	}
}

// Each of these is a bug, and found.
func TestLedger_notices(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		says string
		lie  func(s *story)
	}{
		{"a parent that is stuck", "is stuck: it has not ended; its steps are s1 completed, s2 completed, s3 completed", func(s *story) {
			s.drop(s.place("finalized", 1, 1))
			s.drop(s.place("completed", 1, 1))
		}},
		{"a parent that ends twice", "completed more than once", func(s *story) {
			s.tell(false, "finalized", 1, 0, "", "completed")
			s.tell(true, "completed", 1, 0, "", "")
		}},
		{"two finalizers both do it", "has 2 ends and was finalized 2 times", func(s *story) {
			s.tell(false, "finalized", 5, 9, "p", "failed")
			s.tell(true, "failed", 5, 9, "p", goalError)
		}},
		{"a parent that ends and is not finalized", "was finalized 0 times", func(s *story) { s.drop(s.place("finalized", 1, 1)) }},
		{"something between the finalization and the end", "its end does not follow its finalization", func(s *story) {
			s.move(s.place("finalized", 1, 1), s.place("finalized", 1, 1)-2)
		}},
		{"a finalization claim after the end", "has ended as failed", func(s *story) { s.tell(false, "finalization_claimed", 5, 10, "p", "") }},
		{"a finalization with an old token", "after token 8", func(s *story) {
			old := uint64(6)
			s.events[s.place("finalization_claimed", 5, 2)].ClaimToken = &old
		}},
		{"a step unblocked early", "step s2 was claimed before s1, which it depends on, had completed", func(s *story) {
			s.move(s.place("claimed", 3, 1), s.place("completed", 2, 1))
		}},
		{"a step that is claimed although its dependency failed", "step s2 was claimed before s1", func(s *story) {
			s.tell(false, "claimed", 7, 5, "w", "")
			s.move(len(s.events)-1, s.place("finalization_claimed", 5, 1))
		}},
		{"a step that is never done", "the parent ended before it; it is open", func(s *story) { s.drop(s.place("completed", 4, 1)) }},
		{"a step that ends after its parent", "the parent ended before it", func(s *story) { s.move(s.place("completed", 4, 1), len(s.events)-1) }},
		{"a step that completes twice", "task 2 completed more than once", func(s *story) {
			s.tell(false, "completed", 2, 1, "w", "")
			s.move(len(s.events)-1, s.place("claimed", 4, 1))
		}},
		{"claims that overlap", "is claimed while claim 3 lives", func(s *story) {
			s.drop(s.place("released", 3, 1))
			s.drop(s.place("requeued", 3, 1))
		}},
		{"a claim of what has ended", "is claimed after it was completed", func(s *story) { s.tell(false, "claimed", 2, 10, "w", "") }},
		{"a claimed parent", "was claimed", func(s *story) {
			s.tell(false, "claimed", 1, 2, "w", "")
			s.tell(false, "released", 1, 2, "w", "")
			s.move(len(s.events)-2, 10)
			s.move(len(s.events)-1, 11)
		}},
		{"a step that was submitted by itself", "was not submitted with its parent", func(s *story) { s.move(s.place("submitted", 4, 1), 5) }},
		{"a task that nobody submitted", "no acknowledged parent has it", func(s *story) { s.tell(false, "submitted", 9, 0, "", "") }},
		{"an event that nobody asked for", "nobody asked for it", func(s *story) { s.tell(false, "deleted", 1, 0, "", "") }},
		{"an event twice", "follows event", func(s *story) { s.events = append(s.events, s.events[len(s.events)-1]) }},
		{"an event left out", "follows event", func(s *story) {
			i := s.place("released", 3, 1)
			s.events = slices.Delete(s.events, i, i+1)
		}},
		{"a lost parent", "is lost", func(s *story) { delete(s.state.tasks, 1) }},
		{"a lost step", "is not held as such", func(s *story) { delete(s.state.tasks, 3) }},
		{"a state that the trail does not know", "is held as failed, and the trail says completed", func(s *story) { s.state.tasks[3].status = "failed" }},
		{"another result of a step", "has the result", func(s *story) { s.state.tasks[3].result = "1" }},
		{"another result of the parent", "ended as completed", func(s *story) { s.state.tasks[1].result = "{}" }},
		{"another error", "want failed of \"q\"", func(s *story) { s.state.tasks[5].error = "oh" }},
		{"another processor", "ended as failed of \"p\"", func(s *story) { s.state.tasks[5].worker = "p" }},
		{"a step that should have been cancelled", "want cancelled", func(s *story) { s.state.tasks[8].status = "completed" }},
		{"a cancel that did nothing", "its cancel was acknowledged", func(s *story) { s.cancel = append(s.cancel, 1) }},
		{"counts that do not add up", "by the cluster's counts", func(s *story) { s.state.counts["completed"]-- }},
		{"a node that differs", "do not hold the same", func(s *story) { s.state.hashes[1] = "b" }},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			s := good()
			x.lie(s)
			found := s.judge()
			if !slices.ContainsFunc(found, func(v string) bool { return strings.Contains(v, x.says) }) {
				t.Errorf("want %q, got:\n%s", x.says, strings.Join(found, "\n"))
			}
		})
	}
}

// A parent is told to processors once its first step has completed, and again
// once all have ended, also if its answer comes last.
func TestLedger_wakes(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		s := good()
		var told []bool
		l := newLedger(func(p *parent, all bool) {
			if p.id == 5 {
				told = append(told, all)
			}
		})
		if early {
			l.register(s.shapes[1], 5)
		}
		for i := range s.place("finalization_claimed", 5, 1) {
			l.tell(&s.events[i])
		}
		want := []bool{false, false, true} // as each of the three ends
		if !early {
			l.register(s.shapes[1], 5)
			want = []bool{true}
		}
		if len(told) == 0 || told[len(told)-1] != want[len(want)-1] || told[0] != want[0] {
			t.Errorf("registered early %v: told %v", early, told)
		}
		if waiting := l.waiting(); len(waiting) != 1 || waiting[0].id != 5 {
			t.Errorf("waiting: %v", waiting)
		}
	}
}

// What a parent is follows from the seed and its number, and all kinds are there.
func TestNewShape(t *testing.T) {
	t.Parallel()
	for _, steps := range []int{2, 3, 5, 9} {
		var bad, flaky, cancelled, byClaim, goOn int
		forms := map[string]int{}
		for n := range 1000 {
			s := NewShape(1, n, steps)
			forms[s.Form]++
			bad += one(s.Bad >= 0)
			flaky += one(s.Flaky >= 0)
			cancelled += one(s.Cancelled)
			byClaim += one(s.ByClaim)
			goOn += one(s.Continue)
			for place, depends := range s.DependsOn {
				for i, on := range depends {
					if on >= place || slices.Contains(depends[:i], on) {
						t.Fatalf("step %d depends on %v", place, depends)
					}
				}
			}
			if s.Form != "independent" && s.Form != "random" && len(s.DependsOn[steps-1]) == 0 {
				t.Errorf("%s of %d steps: the last depends on none", s.Form, steps)
			}
		}
		if len(forms) != len(shapes) || bad == 0 || flaky == 0 || cancelled == 0 || byClaim == 0 || goOn == 0 {
			t.Errorf("%d steps: %v, %d bad, %d flaky, %d cancelled, %d by claim, %d continue", steps, forms, bad, flaky, cancelled, byClaim, goOn)
		}
	}
}

package model

import "testing"

// family submits a parent with a step a, a step b that depends on it, and a step c
// that depends on both: tasks 1 to 4.
func family(t *testing.T, p Plan) *Model {
	t.Helper()
	m := New()
	m.Level = StepsLevel
	for i, on := range [][]int{nil, {0}, {0, 1}} {
		p.Steps = append(p.Steps, Planned{Name: string(rune('a' + i)), On: on, Task: NewTask{Kind: "k", Max: 2}})
	}
	mustDo(t, m, Command{Verb: VerbSubmit, Tasks: []NewTask{{Kind: "k", Parent: &p}}}, "")
	return m
}

func mustBe(t *testing.T, m *Model, statuses ...string) {
	t.Helper()
	for i, want := range statuses {
		if got := m.Find(uint64(i + 1)); got.Status != want {
			t.Errorf("task %d is %s, want %s", i+1, got.Status, want)
		}
	}
}

// mustSettle claims the task and settles it.
func mustSettle(t *testing.T, m *Model, id uint64, c Command) {
	t.Helper()
	mustDo(t, m, Command{Verb: VerbClaimTask, ID: id, Worker: "w"}, "")
	c.ID, c.Worker = id, "w"
	mustDo(t, m, c, "")
}

// The sentences of the contract about parents that end by themselves.
func TestModel_parents(t *testing.T) {
	t.Parallel()
	m := family(t, Plan{})
	mustBe(t, m, Running, Pending, Blocked, Blocked)
	mustDo(t, m, Command{Verb: VerbClaimTask, ID: 1, Worker: "w"}, "task_not_claimable")
	mustDo(t, m, Command{Verb: VerbDelete, ID: 2}, "task_not_terminal")
	mustSettle(t, m, 2, Command{Verb: VerbComplete, Result: `{"x":1}`})
	mustBe(t, m, Running, Completed, Pending, Blocked)
	mustSettle(t, m, 3, Command{Verb: VerbComplete, Result: "raw", Opaque: true})
	mustSettle(t, m, 4, Command{Verb: VerbComplete})
	if p := m.Find(1); p.Status != Completed || p.Result != `{"a":{"x":1},"b":"cmF3","c":null}` {
		t.Errorf("the parent is %s with %s", p.Status, p.Result)
	}
	mustDo(t, m, Command{Verb: VerbRetry, ID: 1}, "task_completed")
	if mustDo(t, m, Command{Verb: VerbDelete, ID: 1}, ""); m.Find(2) != nil {
		t.Error("a parent takes its steps along")
	}

	m = family(t, Plan{})
	mustSettle(t, m, 2, Command{Verb: VerbFail, Reason: "no", Permanent: true})
	mustBe(t, m, Failed, Failed, Cancelled, Cancelled)
	if p := m.Find(1); p.Reason != "step a failed: no" {
		t.Errorf("the parent's error is %q", p.Reason)
	}
	mustDo(t, m, Command{Verb: VerbRetry, ID: 3}, "task_failed")
	mustDo(t, m, Command{Verb: VerbRetry, ID: 1}, "")
	mustBe(t, m, Running, Pending, Blocked, Blocked)
	mustDo(t, m, Command{Verb: VerbClaimTask, ID: 2, Worker: "w"}, "")
	mustDo(t, m, Command{Verb: VerbCancel, ID: 1}, "")
	mustBe(t, m, Running, Claimed, Cancelled, Cancelled)
	mustDo(t, m, Command{Verb: VerbRetry, ID: 1}, "task_cancelled")
	mustDo(t, m, Command{Verb: VerbComplete, ID: 2, Worker: "w"}, "")
	mustBe(t, m, Cancelled, Completed, Cancelled, Cancelled)
}

// The sentences of the contract about parents that a processor ends.
func TestModel_finalization(t *testing.T) {
	t.Parallel()
	m := family(t, Plan{ByClaim: true, GoesOn: true})
	claim := func(processor, outcome, holder string) {
		t.Helper()
		a := mustDo(t, m, Command{Verb: VerbClaimEnd, ID: 1, Worker: processor, TimeoutMS: 4000}, "").Parent
		if a.Outcome != outcome || a.Holder != holder {
			t.Errorf("%s: %s, held by %q; want %s, %q", processor, a.Outcome, a.Holder, outcome, holder)
		}
	}
	claim("p", EndNotReady, "")
	mustSettle(t, m, 2, Command{Verb: VerbComplete})
	claim("p", EndClaimed, "p")
	claim("q", EndHeld, "p")
	claim("p", EndExtended, "p")
	mustDo(t, m, Command{Verb: VerbFinalize, ID: 1, Worker: "q"}, "task_already_claimed")
	mustDo(t, m, Command{Verb: VerbFinalize, ID: 1, Worker: "p"}, "steps_unfinished")
	mustDo(t, m, Command{Verb: VerbFinalize, ID: 1, Worker: "p", Token: 1}, "stale_claim")
	mustDo(t, m, Command{Verb: VerbFinalize, ID: 2, Worker: "p"}, "task_not_claimable")
	mustDo(t, m, Command{Verb: VerbCancel, ID: 3}, "")
	mustBe(t, m, Running, Completed, Cancelled, Cancelled)
	m.U = 4000 + 4000/2000 + 1
	claim("q", EndHeld, "p")
	m.U++
	claim("q", EndClaimed, "q")
	if a := mustDo(t, m, Command{Verb: VerbExtendEnd, ID: 1, Worker: "p"}, ""); a.Parent.Done {
		t.Error("who has lost the claim extends it")
	}
	mustDo(t, m, Command{Verb: VerbFinalize, ID: 1, Worker: "q", Token: m.Tokens, Result: "1"}, "")
	if a := mustDo(t, m, Command{Verb: VerbFinalize, ID: 1, Worker: "p", Failed: true}, ""); !a.Parent.Already || a.Task.Status != Completed {
		t.Errorf("the second finalizes: %+v", a.Task)
	}
	claim("p", EndDone, "")
	for processor, want := range map[string]bool{"p": false, "q": true} {
		if a := mustDo(t, m, Command{Verb: VerbReleaseEnd, ID: 1, Worker: processor}, ""); a.Parent.Done != want {
			t.Errorf("the release of %s: %v", processor, a.Parent.Done)
		}
	}
}

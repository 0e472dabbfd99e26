package sim

import "testing"

// family submits a parent with a step a, a step b that depends on it, and a step c
// that depends on both: tasks 1 to 4.
func family(t *testing.T, p plan) *model {
	t.Helper()
	m := newModel()
	m.level = stepsLevel
	for i, on := range [][]int{nil, {0}, {0, 1}} {
		p.steps = append(p.steps, planned{name: string(rune('a' + i)), on: on, task: newTask{kind: "k", max: 2}})
	}
	mustDo(t, m, command{verb: verbSubmit, tasks: []newTask{{kind: "k", parent: &p}}}, "")
	return m
}

func mustBe(t *testing.T, m *model, statuses ...string) {
	t.Helper()
	for i, want := range statuses {
		if got := m.find(uint64(i + 1)); got.status != want {
			t.Errorf("task %d is %s, want %s", i+1, got.status, want)
		}
	}
}

// mustSettle claims the task and settles it.
func mustSettle(t *testing.T, m *model, id uint64, c command) {
	t.Helper()
	mustDo(t, m, command{verb: verbClaimTask, id: id, worker: "w"}, "")
	c.id, c.worker = id, "w"
	mustDo(t, m, c, "")
}

// The sentences of the contract about parents that end by themselves.
func TestModel_parents(t *testing.T) {
	t.Parallel()
	m := family(t, plan{})
	mustBe(t, m, running, pending, blocked, blocked)
	mustDo(t, m, command{verb: verbClaimTask, id: 1, worker: "w"}, "task_not_claimable")
	mustDo(t, m, command{verb: verbDelete, id: 2}, "task_not_terminal")
	mustSettle(t, m, 2, command{verb: verbComplete, result: `{"x":1}`})
	mustBe(t, m, running, completed, pending, blocked)
	mustSettle(t, m, 3, command{verb: verbComplete, result: "raw", opaque: true})
	mustSettle(t, m, 4, command{verb: verbComplete})
	if p := m.find(1); p.status != completed || p.result != `{"a":{"x":1},"b":"cmF3","c":null}` {
		t.Errorf("the parent is %s with %s", p.status, p.result)
	}
	mustDo(t, m, command{verb: verbRetry, id: 1}, "task_completed")
	if mustDo(t, m, command{verb: verbDelete, id: 1}, ""); m.find(2) != nil {
		t.Error("a parent takes its steps along")
	}

	m = family(t, plan{})
	mustSettle(t, m, 2, command{verb: verbFail, reason: "no", permanent: true})
	mustBe(t, m, failed, failed, cancelled, cancelled)
	if p := m.find(1); p.reason != "step a failed: no" {
		t.Errorf("the parent's error is %q", p.reason)
	}
	mustDo(t, m, command{verb: verbRetry, id: 3}, "task_failed")
	mustDo(t, m, command{verb: verbRetry, id: 1}, "")
	mustBe(t, m, running, pending, blocked, blocked)
	mustDo(t, m, command{verb: verbClaimTask, id: 2, worker: "w"}, "")
	mustDo(t, m, command{verb: verbCancel, id: 1}, "")
	mustBe(t, m, running, claimed, cancelled, cancelled)
	mustDo(t, m, command{verb: verbRetry, id: 1}, "task_cancelled")
	mustDo(t, m, command{verb: verbComplete, id: 2, worker: "w"}, "")
	mustBe(t, m, cancelled, completed, cancelled, cancelled)
}

// The sentences of the contract about parents that a processor ends.
func TestModel_finalization(t *testing.T) {
	t.Parallel()
	m := family(t, plan{byClaim: true, goesOn: true})
	claim := func(processor, outcome, holder string) {
		t.Helper()
		a := mustDo(t, m, command{verb: verbClaimEnd, id: 1, worker: processor, timeoutMS: 4000}, "").parent
		if a.outcome != outcome || a.holder != holder {
			t.Errorf("%s: %s, held by %q; want %s, %q", processor, a.outcome, a.holder, outcome, holder)
		}
	}
	claim("p", endNotReady, "")
	mustSettle(t, m, 2, command{verb: verbComplete})
	claim("p", endClaimed, "p")
	claim("q", endHeld, "p")
	claim("p", endExtended, "p")
	mustDo(t, m, command{verb: verbFinalize, id: 1, worker: "q"}, "task_already_claimed")
	mustDo(t, m, command{verb: verbFinalize, id: 1, worker: "p"}, "steps_unfinished")
	mustDo(t, m, command{verb: verbFinalize, id: 1, worker: "p", token: 1}, "stale_claim")
	mustDo(t, m, command{verb: verbFinalize, id: 2, worker: "p"}, "task_not_claimable")
	mustDo(t, m, command{verb: verbCancel, id: 3}, "")
	mustBe(t, m, running, completed, cancelled, cancelled)
	m.u = 4000 + 4000/2000 + 1
	claim("q", endHeld, "p")
	m.u++
	claim("q", endClaimed, "q")
	if a := mustDo(t, m, command{verb: verbExtendEnd, id: 1, worker: "p"}, ""); a.parent.done {
		t.Error("who has lost the claim extends it")
	}
	mustDo(t, m, command{verb: verbFinalize, id: 1, worker: "q", token: m.tokens, result: "1"}, "")
	if a := mustDo(t, m, command{verb: verbFinalize, id: 1, worker: "p", failed: true}, ""); !a.parent.already || a.task.status != completed {
		t.Errorf("the second finalizes: %+v", a.task)
	}
	claim("p", endDone, "")
	for processor, want := range map[string]bool{"p": false, "q": true} {
		if a := mustDo(t, m, command{verb: verbReleaseEnd, id: 1, worker: processor}, ""); a.parent.done != want {
			t.Errorf("the release of %s: %v", processor, a.parent.done)
		}
	}
}

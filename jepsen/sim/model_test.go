package sim

import (
	"testing"
)

// do applies a command and checks its code.
func mustDo(t *testing.T, m *model, c command, code string) answer {
	t.Helper()
	a := m.entry(m.u, m.t, []*command{&c}, nil)[0]
	if a.code != code {
		t.Fatalf("%v: code %q, want %q", &c, a.code, code)
	}
	return a
}

// The sentences of the contract that most bugs break, held against the model
// alone.
func TestModel(t *testing.T) {
	t.Parallel()
	m := newModel()
	for _, n := range []newTask{{kind: "a", max: 2, key: "k"}, {kind: "b", max: -1, priority: 5}, {kind: "a", max: -1}} {
		mustDo(t, m, command{verb: verbSubmit, tasks: []newTask{n}}, "")
	}
	if a := mustDo(t, m, command{verb: verbSubmit, tasks: []newTask{{kind: "z", key: "k"}}}, ""); a.submitted[0].created || a.submitted[0].task.id != 1 || a.submitted[0].same {
		t.Error("a taken key answers with its task")
	}
	claim := command{verb: verbClaimNext, worker: "w", limit: 2, request: "q", leaseMS: 1000}
	first := mustDo(t, m, claim, "")
	if first.claims[0].id != 2 || first.claims[1].id != 1 {
		t.Error("higher priorities are claimed first, then the oldest")
	}
	again := mustDo(t, m, claim, "")
	if !again.repeated || again.claims[0].token != first.claims[0].token || m.tokens != 2 {
		t.Error("a repeated claim gets the first answer and takes nothing")
	}
	claim.worker = "v"
	mustDo(t, m, claim, "invalid_request")

	complete := command{verb: verbComplete, id: 1, worker: "v", token: first.claims[1].token}
	mustDo(t, m, complete, "wrong_worker")
	complete.worker, complete.token = "w", 1
	mustDo(t, m, complete, "stale_claim")
	item := leaseItem{id: 1, token: 2, seq: 1}
	mustDo(t, m, command{verb: verbExtend, id: 1, worker: "w", token: 2}, "")
	if a := mustDo(t, m, command{verb: verbExpire, items: []leaseItem{item}}, ""); a.expired != 0 {
		t.Error("an extend wins over the expiry behind it")
	}
	item.seq = 2
	if a := mustDo(t, m, command{verb: verbExpire, items: []leaseItem{item, item}}, ""); a.expired != 1 {
		t.Error("a lease is ended once")
	}
	complete.token = 2
	mustDo(t, m, complete, "stale_claim")
	mustDo(t, m, command{verb: verbClaimTask, id: 1, worker: "w"}, "")
	mustDo(t, m, command{verb: verbFail, id: 1, worker: "w", token: 3}, "")
	if m.find(1).status != failed {
		t.Error("the last attempt's failure is the task's")
	}
	if a := mustDo(t, m, command{verb: verbFail, id: 1, worker: "w", token: 3}, ""); !a.repeated {
		t.Error("the same call by the claim that ended it is repeated")
	}
	mustDo(t, m, command{verb: verbRetry, id: 1}, "max_attempts_reached")
	mustDo(t, m, command{verb: verbDelete, id: 1}, "")
	if a := mustDo(t, m, command{verb: verbSubmit, tasks: []newTask{{kind: "z", key: "k"}}}, ""); !a.submitted[0].created {
		t.Error("a deleted task's key is free")
	}
}

// A claim request is remembered for ten minutes after its last claim has ended.
func TestModel_forgets(t *testing.T) {
	t.Parallel()
	m := newModel()
	mustDo(t, m, command{verb: verbSubmit, tasks: []newTask{{kind: "a"}}}, "")
	claim := command{verb: verbClaimNext, worker: "w", limit: 1, request: "q"}
	mustDo(t, m, claim, "")
	m.u = 1000
	mustDo(t, m, command{verb: verbRelease, id: 1, worker: "w", token: 1}, "")
	m.u += rememberedMS - 1
	if a := mustDo(t, m, claim, ""); !a.repeated || a.claims[0].live {
		t.Errorf("a millisecond before: %+v", a)
	}
	m.u++
	if a := mustDo(t, m, claim, ""); a.repeated || a.claims[0].token != 2 {
		t.Errorf("after ten minutes: %+v", a)
	}
}

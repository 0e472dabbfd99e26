package model

import (
	"testing"
)

// do applies a command and checks its code.
func mustDo(t *testing.T, m *Model, c Command, code string) Answer {
	t.Helper()
	a := m.Entry(m.U, m.T, []*Command{&c}, nil)[0]
	if a.Code != code {
		t.Fatalf("%v: code %q, want %q", &c, a.Code, code)
	}
	return a
}

// The sentences of the contract that most bugs break, held against the model
// alone.
func TestModel(t *testing.T) {
	t.Parallel()
	m := New()
	for _, n := range []NewTask{{Kind: "a", Max: 2, Key: "k"}, {Kind: "b", Max: -1, Priority: 5}, {Kind: "a", Max: -1}} {
		mustDo(t, m, Command{Verb: VerbSubmit, Tasks: []NewTask{n}}, "")
	}
	if a := mustDo(t, m, Command{Verb: VerbSubmit, Tasks: []NewTask{{Kind: "z", Key: "k"}}}, ""); a.Submitted[0].Created || a.Submitted[0].Task.ID != 1 || a.Submitted[0].Same {
		t.Error("a taken key answers with its task")
	}
	claim := Command{Verb: VerbClaimNext, Worker: "w", Limit: 2, Request: "q", LeaseMS: 1000}
	first := mustDo(t, m, claim, "")
	if first.Claims[0].ID != 2 || first.Claims[1].ID != 1 {
		t.Error("higher priorities are claimed first, then the oldest")
	}
	again := mustDo(t, m, claim, "")
	if !again.Repeated || again.Claims[0].Token != first.Claims[0].Token || m.Tokens != 2 {
		t.Error("a repeated claim gets the first answer and takes nothing")
	}
	claim.Worker = "v"
	mustDo(t, m, claim, "invalid_request")

	complete := Command{Verb: VerbComplete, ID: 1, Worker: "v", Token: first.Claims[1].Token}
	mustDo(t, m, complete, "wrong_worker")
	complete.Worker, complete.Token = "w", 1
	mustDo(t, m, complete, "stale_claim")
	item := LeaseItem{ID: 1, Token: 2, Seq: 1}
	mustDo(t, m, Command{Verb: VerbExtend, ID: 1, Worker: "w", Token: 2}, "")
	if a := mustDo(t, m, Command{Verb: VerbExpire, Items: []LeaseItem{item}}, ""); a.Expired != 0 {
		t.Error("an extend wins over the expiry behind it")
	}
	item.Seq = 2
	if a := mustDo(t, m, Command{Verb: VerbExpire, Items: []LeaseItem{item, item}}, ""); a.Expired != 1 {
		t.Error("a lease is ended once")
	}
	complete.Token = 2
	mustDo(t, m, complete, "stale_claim")
	mustDo(t, m, Command{Verb: VerbClaimTask, ID: 1, Worker: "w"}, "")
	mustDo(t, m, Command{Verb: VerbFail, ID: 1, Worker: "w", Token: 3}, "")
	if m.Find(1).Status != Failed {
		t.Error("the last attempt's failure is the task's")
	}
	if a := mustDo(t, m, Command{Verb: VerbFail, ID: 1, Worker: "w", Token: 3}, ""); !a.Repeated {
		t.Error("the same call by the claim that ended it is repeated")
	}
	mustDo(t, m, Command{Verb: VerbRetry, ID: 1}, "max_attempts_reached")
	mustDo(t, m, Command{Verb: VerbDelete, ID: 1}, "")
	if a := mustDo(t, m, Command{Verb: VerbSubmit, Tasks: []NewTask{{Kind: "z", Key: "k"}}}, ""); !a.Submitted[0].Created {
		t.Error("a deleted task's key is free")
	}
}

// A claim request is remembered for ten minutes after its last claim has ended.
func TestModel_forgets(t *testing.T) {
	t.Parallel()
	m := New()
	mustDo(t, m, Command{Verb: VerbSubmit, Tasks: []NewTask{{Kind: "a"}}}, "")
	claim := Command{Verb: VerbClaimNext, Worker: "w", Limit: 1, Request: "q"}
	mustDo(t, m, claim, "")
	m.U = 1000
	mustDo(t, m, Command{Verb: VerbRelease, ID: 1, Worker: "w", Token: 1}, "")
	m.U += RememberedMS - 1
	if a := mustDo(t, m, claim, ""); !a.Repeated || a.Claims[0].Live {
		t.Errorf("a millisecond before: %+v", a)
	}
	m.U++
	if a := mustDo(t, m, claim, ""); a.Repeated || a.Claims[0].Token != 2 {
		t.Errorf("after ten minutes: %+v", a)
	}
}

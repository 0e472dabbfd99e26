package fsm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// outcome shows the further effects of a Complete: follow-ups as id and whether they are
// new, claims as task, token and whether they are live.
func outcome(r Result) string {
	s := string(r.Code)
	if r.Repeated {
		s += " repeated"
	}
	for _, f := range r.Submitted {
		s += fmt.Sprintf(" +%d %v", f.Task.ID, f.Created)
	}
	for _, c := range r.Claims {
		s += fmt.Sprintf(" claim %d/%d %v", c.Task.ID, c.Token, c.Live)
	}
	return s
}

func (h *harness) expect(c command.Command, want string) Result {
	h.t.Helper()
	r := h.do(c)
	if got := outcome(r); got != want {
		h.t.Errorf("%T: got%q, want %q", c, got, want)
	}
	mustCheck(h.t, h.m)
	return r
}

// oneClaimed returns a harness in which task 1, of type mail, is claimed by w1
// with token 1.
func oneClaimed(t *testing.T) (*harness, command.Hold) {
	t.Helper()
	h := newHarness(t)
	h.do(command.SetLevel{Level: 1})
	h.submit(1, record.NewTask{Type: "mail", Params: []byte("1")})
	h.do(command.ClaimNext{WorkerID: "w1", Limit: 1})
	return h, command.Hold{ID: 1, WorkerID: "w1", Token: 1}
}

func nextOf(types ...string) *command.ClaimNext {
	return &command.ClaimNext{WorkerID: "w1", Types: types, Limit: 1}
}

// TestComplete_SubmitsThenClaims ensures the order inside the one step: the
// task completes, the follow-ups come, the claim may get one of them.
func TestComplete_SubmitsThenClaims(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	r := h.expect(command.Complete{
		Hold: hold, Result: []byte(`"done"`),
		Submit: []record.NewTask{{Type: "index", Params: []byte("2"), Key: "k"}, {Type: "index", Key: "k"}, {Type: "scan"}},
		Claim:  nextOf("scan"),
	}, " +2 true +2 false +3 true claim 3/2 true")
	if r.Task.ID != 1 || r.Task.Status != record.StatusCompleted || string(r.Task.Result) != `"done"` {
		t.Errorf("the completed task is %+v", r.Task)
	}
	if got := h.m.Get(3); got.Status != record.StatusClaimed || got.WorkerID != "w1" || got.Attempts != 1 {
		t.Errorf("the claimed follow-up is %+v", got)
	}
	want := &record.Then{Submitted: []record.FollowUp{{ID: 2, Created: true}, {ID: 2, Created: false}, {ID: 3, Created: true}}, Claims: []record.ClaimRef{{TaskID: 3, Token: 2}}}
	if diff := cmp.Diff(want, h.m.Get(1).Then); diff != "" {
		t.Error(diff)
	}
}

// TestComplete_RepeatGetsTheFirstAnswer ensures that a repeat takes nothing
// new and counts no attempt, whatever became of the tasks.
func TestComplete_RepeatGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]command.Hold{"with token": {ID: 1, WorkerID: "w1", Token: 1}, "without": {ID: 1, WorkerID: "w1"}} {
		h, _ := oneClaimed(t)
		h.submit(3, record.NewTask{Type: "mail", Params: []byte("2")})
		c := command.Complete{Hold: hold, Submit: []record.NewTask{{Type: "index"}}, Claim: &command.ClaimNext{WorkerID: "w1", Limit: 2}}
		h.expect(c, " +5 true claim 2/2 true claim 3/3 true")
		h.expect(c, " repeated +5 true claim 2/2 true claim 3/3 true")
		h.do(command.Complete{Hold: command.Hold{ID: 2, WorkerID: "w1", Token: 2}})
		h.do(command.Release{Hold: command.Hold{ID: 3, WorkerID: "w1", Token: 3}})
		h.expect(c, " repeated +5 true claim 2/2 false claim 3/3 false")
		h.do(command.ClaimTask{ID: 3, WorkerID: "w2"})
		r := h.expect(c, " repeated +5 true claim 2/2 false claim 3/3 false")
		if r.Claims[1].Task.Token != 4 || r.Submitted[0].Task.Type != "index" {
			t.Errorf("%s: the tasks are not as they are now: %+v", name, r)
		}
		h.do(command.Delete{ID: 2})
		h.do(command.ClaimNext{WorkerID: "w1", Types: []string{"index"}, Limit: 1})
		h.do(command.Complete{Hold: command.Hold{ID: 5, WorkerID: "w1"}})
		h.do(command.Delete{ID: 5})
		r = h.expect(c, " repeated +5 true claim 2/2 false claim 3/3 false")
		if r.Submitted[0].Task.Type != "" || r.Claims[0].Task.Status != 0 {
			t.Errorf("%s: removed tasks come with more than their ids: %+v", name, r)
		}
		if n := h.m.counts[record.StatusPending]; n != 1 {
			t.Errorf("%s: %d tasks are pending, want 1", name, n)
		}
	}
}

// TestComplete_RepeatOfAnEmptyClaimTakesNothing ensures that a repeat does not
// claim what came after the first answer.
func TestComplete_RepeatOfAnEmptyClaimTakesNothing(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	c := command.Complete{Hold: hold, Claim: nextOf()}
	h.expect(c, "")
	if then := h.m.Get(1).Then; then != nil {
		t.Errorf("%+v is kept of a claim that found nothing", then)
	}
	h.submit(1, record.NewTask{Type: "mail"})
	h.expect(c, " repeated")
	c.Submit = []record.NewTask{{Type: "mail"}}
	h.expect(c, " repeated")
}

// TestComplete_ClaimRequestIsRemembered ensures that the inner claim's request
// id is one like any other.
func TestComplete_ClaimRequestIsRemembered(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	h.submit(3, record.NewTask{Type: "mail"})
	next := nextOf("mail")
	next.RequestID = "q1"
	c := command.Complete{Hold: hold, Claim: next}
	h.expect(c, " claim 2/2 true")
	h.expect(*next, " repeated claim 2/2 true")
	h.expect(c, " repeated claim 2/2 true")
	// Known of the same request: the first answer, within another complete.
	h.expect(command.Complete{Hold: command.Hold{ID: 2, WorkerID: "w1", Token: 2}, Claim: next}, " claim 2/2 false")
	h.expect(command.Complete{Hold: command.Hold{ID: 2, WorkerID: "w1", Token: 2}, Claim: next}, " repeated claim 2/2 false")
}

// TestComplete_OtherRequestRefusesAll ensures that nothing has happened when
// the inner claim is refused.
func TestComplete_OtherRequestRefusesAll(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	h.submit(3, record.NewTask{Type: "mail"})
	h.do(command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, RequestID: "q1"})
	before := hashOf(h.m)
	for _, next := range []command.ClaimNext{
		{WorkerID: "w2", Types: []string{"mail"}, Limit: 1, RequestID: "q1"},
		{WorkerID: "w1", Types: []string{"scan"}, Limit: 1, RequestID: "q1"},
		{WorkerID: "w1", Types: []string{"mail"}, Limit: 2, RequestID: "q1"},
	} {
		r := h.do(command.Complete{Hold: hold, Result: []byte("1"), Submit: []record.NewTask{{Type: "mail"}}, Claim: &next})
		if r.Code != CodeInvalidRequest || r.Claims != nil || r.Submitted != nil {
			t.Errorf("%+v: got %+v", next, r)
		}
		h.m.header.Index-- // the header's index is the only change
		if hashOf(h.m) != before {
			t.Errorf("%+v: refused, it changed the state", next)
		}
		mustCheck(t, h.m)
	}
	// Refusals of the outer call come first.
	next := command.ClaimNext{WorkerID: "w2", Limit: 1, RequestID: "q1"}
	h.expect(command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w2", Token: 1}, Claim: &next}, "wrong_worker")
	h.expect(command.Complete{Hold: hold, Claim: nextOf("none")}, "")
	h.expect(command.Complete{Hold: hold, Claim: &next}, " repeated")
}

// TestComplete_RefusedDoesNothingBeside ensures that a stale worker neither
// submits nor claims.
func TestComplete_RefusedDoesNothingBeside(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	h.submit(1, record.NewTask{Type: "mail"})
	h.do(command.Release{Hold: hold})
	c := command.Complete{Hold: hold, Submit: []record.NewTask{{Type: "mail"}}, Claim: nextOf()}
	h.expect(c, "stale_claim")
	if h.m.tasks.Len() != 2 || h.m.ClaimCount() != 0 {
		t.Errorf("%d tasks, %d claims", h.m.tasks.Len(), h.m.ClaimCount())
	}
}

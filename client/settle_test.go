package client

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

func TestClaim_Complete_submitsFollowUps(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, breaks, says(200, okAnswer))
	err := cl.Complete(t.Context(), []byte(`{ "a":1}`), Task{Payload: []byte(`[1,  2]`)}, Task{Payload: []byte{0xff}, IdempotencyKey: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	got := s.requests()[1:]
	if len(got) != 2 || got[0].body != got[1].body {
		t.Fatalf("the repeat is another request: %+v", got)
	}
	submit := got[0].field(t, "submit").([]any)
	key, _ := submit[0].(map[string]any)["idempotency_key"].(string)
	if len(key) != 26 {
		t.Errorf("the key of the first is %q", key)
	}
	want := fmt.Sprintf(`{"submit":[{"params":[1,  2],"idempotency_key":%q},{"payload":"/w==","idempotency_key":"mine"}],"worker_id":"w1","claim_token":5,"result":{ "a":1}}`, key)
	if got[0].body != want {
		t.Errorf("sent %s\nwant %s", got[0].body, want)
	}
}

func TestClaim_Complete_sendsNoMalformedFollowUp(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t)
	if err := cl.Complete(t.Context(), nil, Task{}); !errors.Is(err, ErrInvalidTask) {
		t.Errorf("got %v", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	if cl.isOver() {
		t.Error("the claim is taken for settled")
	}
}

// nextAnswer is the answer to a complete that claimed another task.
func nextAnswer(extra, task string) string {
	return `{"success":true,"task":{"id":17,"status":"completed"}` + extra + `,"claimed":{"task":` + task + `}}`
}

const nextTask = `{"id":18,"worker_id":"w1","claim_token":6,"lease_remaining_ms":4000%s}`

func TestClaim_CompleteAndClaim(t *testing.T) {
	t.Parallel()
	for name, lost := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, cl := claimFor(t, lost, says(200, nextAnswer(`,"repeated":true`, fmt.Sprintf(nextTask, `,"claim_state":"live"`))), says(200, okAnswer))
			req := ClaimRequest{Types: []string{"mail"}, Wait: time.Minute, MaxAttemptsRemaining: 2, SortBy: "random", Lease: 10 * time.Second}
			before := time.Now()
			next, err := cl.CompleteAndClaim(t.Context(), []byte(`"x"`), req)
			if err != nil || next.Task.ID != "18" || next.Token != 6 || !next.Repeated {
				t.Fatalf("got %+v, %v", next, err)
			}
			if !cl.isOver() || next.isOver() {
				t.Error("the first claim goes on, or the next does not")
			}
			if d := next.Deadline.Sub(before); d < 3*time.Second || d > 5*time.Second {
				t.Errorf("the deadline is in %v", d)
			}
			got := s.requests()[1:]
			if len(got) != 2 || got[0].body != got[1].body || got[0].path != "/api/tasks/17/complete" {
				t.Fatalf("sent %+v", got)
			}
			claim := got[0].field(t, "claim").(map[string]any)
			id, _ := claim["claim_request_id"].(string)
			want := fmt.Sprintf(`{"worker_id":"w1","claim_token":5,"result":"x","claim":{"claim_request_id":%q,"task_types":["mail"],"max_attempts_remaining":2,"sort_by":"random","lease_ms":10000}}`, id)
			if len(id) != 26 || got[0].body != want {
				t.Errorf("sent %s\nwant %s", got[0].body, want)
			}
			// The next claim is remembered, and settled with its own token.
			if err := next.Complete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if last := s.requests()[3]; last.path != "/api/tasks/18/complete" || last.field(t, "claim_token") != 6.0 {
				t.Errorf("sent %s %s", last.path, last.body)
			}
		})
	}
}

// A request id that was used before gets the same claim again, even by a complete that is not a repeat; the state of
// the claim shows it.
func TestClaim_CompleteAndClaim_knowsARepeatedClaim(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"": false, `,"claim_state":"live"`: true} {
		_, cl := claimFor(t, says(200, nextAnswer("", fmt.Sprintf(nextTask, state))))
		next, err := cl.CompleteAndClaim(t.Context(), nil, ClaimRequest{RequestID: "mine"})
		if err != nil || next.Repeated != want {
			t.Errorf("with %q: %+v, %v", state, next, err)
		}
	}
}

// Only ErrNoTasks says that the task was completed.
func TestClaim_CompleteAndClaim_tellsWhatWasDone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply     reply
		completed bool
		want      error
	}{
		"nothing to claim":          {says(200, nextAnswer("", "null")), true, ErrNoTasks},
		"what it claimed has ended": {says(200, nextAnswer(`,"repeated":true`, fmt.Sprintf(nextTask, `,"claim_state":"ended"`))), true, ErrNoTasks},
		"stale":                     {refuses(wire.CodeStaleClaim), false, ErrStaleClaim},
		"completed by another":      {refuses(wire.CodeTaskCompleted), false, ErrTaskCompleted},
	} {
		_, cl := claimFor(t, test.reply)
		next, err := cl.CompleteAndClaim(t.Context(), nil, ClaimRequest{})
		if next != nil || !errors.Is(err, test.want) || errors.Is(err, ErrNoTasks) != test.completed || cl.isOver() != test.completed {
			t.Errorf("%s: got %v, %v; over: %v", name, next, err, cl.isOver())
		}
	}
	s, cl := claimFor(t)
	if _, err := cl.CompleteAndClaim(t.Context(), nil, ClaimRequest{Lease: -1}); err == nil || errors.Is(err, ErrNoTasks) || len(s.requests()) != 1 {
		t.Errorf("a bad request: %v", err)
	}
}

func TestClaim_Fail_understandsItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("no route")
	for name, test := range map[string]struct {
		cause error
		want  string
	}{
		"plain":            {cause, `{"worker_id":"w1","claim_token":5,"error":"no route"}`},
		"permanent":        {fmt.Errorf("send: %w", Permanent(cause)), `{"worker_id":"w1","claim_token":5,"error":"send: no route","permanent":true}`},
		"later":            {fmt.Errorf("send: %w", RetryAfter(90*time.Second, cause)), `{"worker_id":"w1","claim_token":5,"error":"send: no route","retry_in_ms":90000}`},
		"at once":          {RetryAfter(-1, cause), `{"worker_id":"w1","claim_token":5,"error":"no route","retry_in_ms":0}`},
		"permanent counts": {RetryAfter(time.Second, Permanent(cause)), `{"worker_id":"w1","claim_token":5,"error":"no route","permanent":true}`},
	} {
		s, cl := claimFor(t, says(200, okAnswer))
		if err := cl.Fail(t.Context(), test.cause); err != nil {
			t.Fatal(err)
		}
		if err := cl.c.Fail(t.Context(), "17", test.cause); err != nil { // of TaskManager
			t.Fatal(err)
		}
		for _, got := range s.requests()[1:] {
			if got.body != test.want {
				t.Errorf("%s: sent %s\nwant %s", name, got.body, test.want)
			}
		}
	}
	if Permanent(nil) != nil || RetryAfter(time.Second, nil) != nil {
		t.Error("a mark makes an error of none")
	}
	if !errors.Is(Permanent(cause), cause) || !errors.Is(RetryAfter(1, cause), cause) {
		t.Error("a mark hides its error")
	}
}

func TestClaim_Release_waits(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, says(200, okAnswer))
	if err := cl.Release(t.Context(), -1); err == nil || cl.isOver() {
		t.Error("a negative delay was taken")
	}
	if err := cl.Release(t.Context(), 1500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[1].body; got != `{"worker_id":"w1","claim_token":5,"delay_ms":1500}` {
		t.Errorf("sent %s", got)
	}
}

func TestClaim_Extend_reportsProgress(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, says(200, `{"success":true,"lease_remaining_ms":60000,"cancel_requested":true}`))
	asked, err := cl.Extend(t.Context(), time.Minute, map[string]any{"step": "<3>"})
	if err != nil || !asked {
		t.Fatalf("got %v, %v", asked, err)
	}
	if got := s.requests()[1].body; got != `{"progress":{"step":"<3>"},"worker_id":"w1","claim_token":5,"lease_ms":60000}` {
		t.Errorf("sent %s", got)
	}
	if left := time.Until(cl.LeaseEndsAt()); left < 50*time.Second {
		t.Errorf("the lease has %v left", left)
	}
	if _, err := cl.Extend(t.Context(), 0, func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

// An exact extend may shorten the lease, for the program too.
func TestClaim_ExtendExact(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, says(200, `{"success":true,"lease_remaining_ms":60000}`), says(200, `{"success":true,"lease_remaining_ms":1500}`))
	if _, err := cl.Extend(t.Context(), time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := cl.ExtendExact(t.Context(), 1500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[2].body; got != `{"worker_id":"w1","claim_token":5,"lease_ms":1500,"exact":true}` {
		t.Errorf("sent %s", got)
	}
	if left := time.Until(cl.LeaseEndsAt()); left > 2*time.Second {
		t.Errorf("the lease has %v left", left)
	}
	if _, err := cl.ExtendExact(t.Context(), 0); err == nil {
		t.Error("no lease was taken")
	}
}

func TestClaim_CompleteLate(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, says(200, `{"success":true}`))
	if err := cl.CompleteLate(t.Context(), []byte(`1`)); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[1].body; got != `{"worker_id":"w1","claim_token":5,"result":1,"late":true}` {
		t.Errorf("sent %s", got)
	}
}

package client

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

func TestClient_Batch(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, says(200, `{"success":true,"failed":1,"results":[
		{"success":true,"created":false,"task":{"id":20}},
		{"success":true,"created":false,"task":{"id":21}},
		{"success":true,"tasks":[{"id":20,"claim_token":9,"lease_remaining_ms":30000}]},
		{"success":true,"tasks":[]},
		{"success":false,"error":"Task not found","code":"task_not_found","message":"Check"},
		{"success":true,"task":{"id":22,"status":"claimed","cancel_requested":true}},
		{"success":true,"lease_remaining_ms":90000,"cancel_requested":true,"task":{"id":17}},
		{"success":true,"task":{"id":17,"status":"completed"}}]}`))
	results, err := cl.c.Batch(t.Context(),
		SubmitOp(Task{Payload: []byte("[1,  2]")}),
		SubmitOp(Task{Payload: []byte("1"), IdempotencyKey: "mine"}),
		ClaimOp(ClaimRequest{WorkerID: "w1", RequestID: "r", Wait: time.Hour}, 1),
		ClaimOp(ClaimRequest{WorkerID: "w1", RequestID: "r2"}, 3),
		DeleteOp("99"), CancelOp("22"), cl.ExtendOp(time.Minute), cl.CompleteOp([]byte(`"x"`)))
	if !errors.Is(err, ErrTaskNotFound) || !strings.Contains(err.Error(), "op 5 of 8, delete") {
		t.Errorf("got %v", err)
	}
	if len(results) != 8 || !results[0].Created || results[1].Created || results[0].Task.ID != "20" || !errors.Is(results[4].Err, ErrTaskNotFound) ||
		len(results[2].Claims) != 1 || results[2].Claims[0].Token != 9 || len(results[3].Claims) != 0 || results[3].Err != nil ||
		!results[5].CancelRequested || !results[6].CancelRequested || results[7].Task.Status != StatusCompleted {
		t.Errorf("got %+v", results)
	}
	if !cl.isOver() || time.Until(cl.LeaseEndsAt()) < time.Minute {
		t.Error("the claim does not know what was done")
	}
	got := s.requests()[1]
	key, _, _ := strings.Cut(strings.SplitAfter(got.body, `"idempotency_key":"`)[1], `"`)
	want := `{"atomic":false,"ops":[{"op":"submit","params":[1,  2],"idempotency_key":"` + key + `"},{"op":"submit","params":1,"idempotency_key":"mine"},` +
		`{"op":"claim","worker_id":"w1","limit":1,"claim_request_id":"r"},{"op":"claim","worker_id":"w1","limit":3,"claim_request_id":"r2"},` +
		`{"op":"delete","id":99},{"op":"cancel","id":22},{"op":"extend","id":17,"worker_id":"w1","claim_token":5,"lease_ms":60000},` +
		`{"op":"complete","id":17,"worker_id":"w1","claim_token":5,"result":"x"}]}`
	if got.path != "/api/batch" || got.body != want {
		t.Errorf("sent %s %s\nwant %s", got.path, got.body, want)
	}
}

// Claims without a RequestID share one, and each is known by its place among the ops that are sent.
func TestClient_Batch_claimsShareAnID(t *testing.T) {
	t.Parallel()
	task := `{"id":20,"claim_token":9,"lease_remaining_ms":30000}`
	s, cl := claimFor(t, says(200, `{"success":true,"failed":0,"results":[{"success":true,"tasks":[]},{"success":true,"tasks":[]},{"success":true,"tasks":[]}],"rest":"`+
		strings.Repeat("x", fullAnswerMin)+`"}`), says(200, `{"success":true,"tasks":[`+task+`]}`))
	results, err := cl.c.Batch(t.Context(), CancelOp("malformed"), ClaimOp(ClaimRequest{WorkerID: "w1"}, 1),
		ClaimOp(ClaimRequest{WorkerID: "w1", RequestID: "own"}, 1), ClaimOp(ClaimRequest{WorkerID: "w1"}, 2))
	if len(results) != 4 || len(results[3].Claims) != 1 || !errors.Is(err, ErrTaskNotFound) {
		t.Errorf("got %+v, %v", results, err)
	}
	id, _, _ := strings.Cut(strings.SplitAfter(s.requests()[1].body, `{"atomic":false,"claim_request_id":"`)[1], `"`)
	want := []string{
		`{"atomic":false,"claim_request_id":"` + id + `","ops":[{"op":"claim","worker_id":"w1","limit":1},{"op":"claim","worker_id":"w1","limit":1,"claim_request_id":"own"},` +
			`{"op":"claim","worker_id":"w1","limit":2}]}`,
		`{"claim_request_id":"` + id + `","claim_request_place":0,"worker_id":"w1","limit":1}`,
		`{"worker_id":"w1","limit":1,"claim_request_id":"own"}`,
		`{"claim_request_id":"` + id + `","claim_request_place":2,"worker_id":"w1","limit":2}`,
	}
	for i, got := range s.requests()[1:] {
		if i >= len(want) || got.body != want[i] {
			t.Errorf("request %d is %s, want %s", i, got.body, want[i])
		}
	}
}

// A batch may be repeated only if each of its ops may be.
func TestClient_Batch_repeats(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ops  func(cl *Claim) []Op
		safe bool
	}{
		"safe":   {func(cl *Claim) []Op { return []Op{SubmitOp(Task{Payload: []byte("1")}), cl.FailOp(nil), CancelOp("3")} }, true},
		"retry":  {func(cl *Claim) []Op { return []Op{cl.ReleaseOp(time.Second), RetryOp("3", 0), CancelOp("3")} }, false},
		"delete": {func(cl *Claim) []Op { return []Op{cl.ReleaseOp(0), CancelOp("3"), DeleteOp("3")} }, false},
	} {
		s, cl := claimFor(t, breaks, says(200, `{"success":true,"failed":0,"results":[{"success":true},{"success":true},{"success":true}]}`))
		_, err := cl.c.Batch(t.Context(), test.ops(cl)...)
		if test.safe && (err != nil || len(s.requests()) != 3 || s.requests()[1].body != s.requests()[2].body) {
			t.Errorf("%s: got %v after %d requests", name, err, len(s.requests())-1)
		}
		if !test.safe && (!errors.Is(err, ErrOutcomeUnknown) || len(s.requests()) != 2 || cl.isOver()) {
			t.Errorf("%s: got %v after %d requests", name, err, len(s.requests())-1)
		}
	}
}

func TestClient_Atomically(t *testing.T) {
	t.Parallel()
	refused := says(409, `{"success":false,"error":"Task is already completed","code":"task_completed","message":"M","failed_op":1}`)
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		s, cl := claimFor(t, refused)
		results, err := cl.c.Atomically(t.Context(), cl.CompleteOp(nil), CancelOp("3"))
		if results != nil || !errors.Is(err, ErrTaskCompleted) || errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "op 2 of 2, cancel") {
			t.Errorf("got %v, %v", results, err)
		}
		if cl.isOver() || !strings.HasPrefix(s.requests()[1].body, `{"atomic":true,`) {
			t.Errorf("the claim is over: %v; sent %s", cl.isOver(), s.requests()[1].body)
		}
	})
	// The refusal of a repeat may be due to a first try that was done.
	t.Run("refused after a lost answer", func(t *testing.T) {
		t.Parallel()
		_, cl := claimFor(t, breaks, refused)
		if _, err := cl.c.Atomically(t.Context(), cl.CompleteOp(nil), CancelOp("3")); !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrTaskCompleted) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("done", func(t *testing.T) {
		t.Parallel()
		_, cl := claimFor(t, says(200, `{"success":true,"failed":0,"results":[{"success":true,"task":{"id":17,"status":"completed"}}]}`))
		results, err := cl.c.Atomically(t.Context(), cl.CompleteOp(nil))
		if err != nil || len(results) != 1 || !cl.isOver() {
			t.Errorf("got %v, %v", results, err)
		}
	})
}

func TestClient_Batch_sendsNothingMalformed(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, refuses(wire.CodeInvalidRequest))
	for name, op := range map[string]Op{
		"submit": SubmitOp(Task{}), "claim": ClaimOp(ClaimRequest{}, 1), "cancel": CancelOp("x"), "retry": RetryOp("0", 1), "delete": DeleteOp(""),
		"release": cl.ReleaseOp(-1), "extend": cl.ExtendOp(-1), "complete": cl.CompleteOp(nil, Task{}),
	} {
		if _, err := cl.c.Batch(t.Context(), op); err == nil || !strings.Contains(err.Error(), "op 1 of 1, "+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := cl.c.Batch(t.Context(), ClaimOp(ClaimRequest{WorkerID: "w1"}, 0)); err == nil || !strings.Contains(err.Error(), "claim: limit is 0") {
		t.Errorf("limit: got %v", err)
	}
	if results, err := cl.c.Batch(t.Context()); err != nil || results != nil {
		t.Errorf("of nothing: %v, %v", results, err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests were sent", n)
	}
}

// An op that cannot be encoded fails by itself. The others are sent, except in an atomic batch.
func TestClient_Batch_refusesTheMalformedInTheirPlaces(t *testing.T) {
	t.Parallel()
	s, cl := claimFor(t, says(200, `{"success":true,"results":[{"success":true,"task":{"id":17,"status":"completed"}},{"success":true,"task":{"id":3,"status":"cancelled"}}],"failed":0}`))
	ops := []Op{SubmitOp(Task{}), cl.CompleteOp(nil), DeleteOp("x"), CancelOp("3")}
	results, err := cl.c.Batch(t.Context(), ops...)
	if !errors.Is(err, ErrInvalidTask) || !errors.Is(err, ErrTaskNotFound) || !strings.Contains(err.Error(), "op 1 of 4, submit") || !strings.Contains(err.Error(), "op 3 of 4, delete") {
		t.Fatalf("got %v", err)
	}
	if !errors.Is(results[0].Err, ErrInvalidTask) || results[1].Err != nil || !errors.Is(results[2].Err, ErrTaskNotFound) || results[3].Task == nil || results[3].Task.ID != "3" {
		t.Errorf("got %+v", results)
	}
	want := `{"atomic":false,"ops":[{"op":"complete","id":17,"worker_id":"w1","claim_token":5},{"op":"cancel","id":3}]}`
	if got := s.requests(); len(got) != 2 || got[1].body != want {
		t.Errorf("sent %v", got[1:])
	}
	if !cl.isOver() {
		t.Error("the claim goes on after its complete")
	}
	if _, err := cl.c.Atomically(t.Context(), ops...); !errors.Is(err, ErrInvalidTask) || len(s.requests()) != 2 {
		t.Errorf("all or none: %v, %d requests", err, len(s.requests()))
	}
}

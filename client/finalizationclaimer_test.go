package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/api/wire"
)

const (
	finalizationClaimed = `{"success":true,"claimed":true,"already_claimed_by":"p1","task_state":"evaluating_results","message":"Successfully claimed for finalization","claim_token":7}`
	finalizationHeld    = `{"success":true,"claimed":false,"already_claimed_by":"p2","task_state":"waiting_for_steps","message":"Task already claimed for finalization","claim_token":null}`
	finalizationMissing = `{"success":true,"claimed":false,"already_claimed_by":null,"task_state":"not_found","message":"Task not found","claim_token":null}`
	finalizedAnswer     = `{"success":true,"action":"completed","already_finalized":true,"task":{"id":17,"status":"completed","worker_id":"p2","result":{ "a": 1 }}}`
)

func TestFinalizationClaimer_ClaimTask(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, finalizationClaimed), says(200, finalizationHeld), says(200, finalizationMissing))
	f := NewFinalizationClaimer(c, "p1")
	for _, test := range []struct {
		timeout time.Duration
		want    FinalizationClaim
		body    string
	}{
		{1001 * time.Millisecond, FinalizationClaim{Claimed: true, HeldBy: "p1", State: FinalizationEvaluatingResults, Message: "Successfully claimed for finalization", Token: 7}, `{"processor_id":"p1","timeout_seconds":2}`},
		{time.Minute, FinalizationClaim{HeldBy: "p2", State: FinalizationWaitingForSteps, Message: "Task already claimed for finalization"}, `{"processor_id":"p1","timeout_seconds":60}`},
		{0, FinalizationClaim{State: FinalizationNotFound, Message: "Task not found"}, `{"processor_id":"p1"}`},
	} {
		got, err := f.ClaimTask(t.Context(), "17", test.timeout)
		if err != nil {
			t.Fatal(err)
		}
		if got.Claimed != !got.Deadline.IsZero() {
			t.Errorf("claimed %v, and lasts until %v", got.Claimed, got.Deadline)
		}
		if diff := cmp.Diff(&test.want, got, cmpopts.IgnoreFields(FinalizationClaim{}, "Deadline")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		sent := s.requests()
		if last := sent[len(sent)-1]; last.method != "POST" || last.path != "/api/tasks/17/finalization/claim" || last.body != test.body {
			t.Errorf("sent %+v, want %s", last, test.body)
		}
	}
}

// The deadline is counted in whole seconds from before the try that was answered, because that try extends the claim
// of an earlier one.
func TestFinalizationClaimer_Deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := talkInMemory(t, withRetryAfter("2", refuses(wire.CodeNoLeader)), says(200, finalizationClaimed), says(200, finalizationClaimed))
		defer c.Close()
		f := NewFinalizationClaimer(c, "p1")
		start := time.Now()
		got, err := f.ClaimTask(t.Context(), "17", 9500*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		answered := time.Since(start)
		if lasts := got.Deadline.Sub(start) - answered; lasts != 9990*time.Millisecond { // less 0.1 %
			t.Errorf("it lasts %v from the try on that was answered", lasts)
		}
		if answered < 2*time.Second {
			t.Errorf("answered after %v", answered)
		}
		start = time.Now()
		if got, err = f.ClaimTask(t.Context(), "17", 0); err != nil || got.Deadline.Sub(start) != 29970*time.Millisecond {
			t.Errorf("of the server's default: %+v, %v", got, err)
		}
	})
}

func TestFinalizationClaimer_ExtendAndRelease(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"extended":true}`), says(200, `{"success":true,"extended":false}`), says(200, `{"success":true,"released":true}`), says(200, `{"success":true,"released":false}`))
	f := NewFinalizationClaimer(c, "p1")
	for i, want := range []bool{true, false} {
		if got, err := f.ExtendClaim(t.Context(), "17", time.Duration(i)*time.Nanosecond); err != nil || got != want {
			t.Errorf("extended %v, %v, want %v", got, err, want)
		}
	}
	for _, want := range []bool{true, false} {
		if got, err := f.ReleaseClaim(t.Context(), "17"); err != nil || got != want {
			t.Errorf("released %v, %v, want %v", got, err, want)
		}
	}
	var got []string
	for _, r := range s.requests() {
		got = append(got, strings.TrimPrefix(r.path, "/api/tasks/17/finalization/")+" "+r.body)
	}
	want := []string{
		`extend {"processor_id":"p1"}`, `extend {"processor_id":"p1","timeout_seconds":1}`, `release {"processor_id":"p1"}`, `release {"processor_id":"p1"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Finalize sends the token of the claimer's own claim, unless that was released.
func TestFinalizationClaimer_Finalize_token(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, finalizedAnswer), says(200, finalizationClaimed), says(200, finalizedAnswer), says(200, finalizedAnswer),
		says(200, `{"success":true,"released":true}`), says(200, finalizedAnswer))
	f := NewFinalizationClaimer(c, "p1")
	finalize := func(r FinalizeRequest) {
		t.Helper()
		if _, err := f.Finalize(t.Context(), "17", r); err != nil {
			t.Error(err)
		}
	}
	completed := FinalizeRequest{Outcome: StatusCompleted, Result: []byte(`{ "n":  1 }`)}
	finalize(completed)
	if _, err := f.ClaimTask(t.Context(), "17", 0); err != nil {
		t.Fatal(err)
	}
	finalize(completed)
	finalize(FinalizeRequest{Outcome: StatusFailed, Error: "bad\x00 <sum>", Token: 9})
	if _, err := f.ReleaseClaim(t.Context(), "17"); err != nil {
		t.Fatal(err)
	}
	finalize(FinalizeRequest{Outcome: StatusFailed})
	var got []string
	for _, r := range s.requests() {
		if r.path == "/api/tasks/17/finalize" {
			got = append(got, r.body)
		}
	}
	want := []string{
		`{"result":{ "n":  1 },"processor_id":"p1","outcome":"completed"}`,
		`{"result":{ "n":  1 },"processor_id":"p1","claim_token":7,"outcome":"completed"}`,
		`{"processor_id":"p1","claim_token":9,"outcome":"failed","error":"bad` + "\uFFFD" + ` \u003csum\u003e"}`,
		`{"processor_id":"p1","outcome":"failed"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestFinalizationClaimer_Finalize_answer(t *testing.T) {
	t.Parallel()
	_, c := talk(t, says(200, finalizedAnswer))
	got, err := NewFinalizationClaimer(c, "p1").Finalize(t.Context(), "17", FinalizeRequest{Outcome: StatusFailed})
	want := &Finalized{Action: StatusCompleted, AlreadyFinalized: true, Task: &Task{ID: "17", MaxAttempts: UnlimitedAttempts, Status: StatusCompleted, ClaimedBy: "p2", Result: []byte(`{ "a": 1 }`)}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// All four calls are repeated when their answer is lost.
func TestFinalizationClaimer_repeats(t *testing.T) {
	t.Parallel()
	calls := map[string]struct {
		answer string
		call   func(context.Context, *FinalizationClaimer) error
	}{
		"claim": {finalizationClaimed, func(ctx context.Context, f *FinalizationClaimer) error {
			_, err := f.ClaimTask(ctx, "17", 0)
			return err
		}},
		"extend": {`{"success":true,"extended":true}`, func(ctx context.Context, f *FinalizationClaimer) error {
			_, err := f.ExtendClaim(ctx, "17", 0)
			return err
		}},
		"release": {`{"success":true,"released":false}`, func(ctx context.Context, f *FinalizationClaimer) error {
			_, err := f.ReleaseClaim(ctx, "17")
			return err
		}},
		"finalize": {finalizedAnswer, func(ctx context.Context, f *FinalizationClaimer) error {
			_, err := f.Finalize(ctx, "17", FinalizeRequest{Outcome: StatusCompleted})
			return err
		}},
	}
	for name, call := range calls {
		for loss, lost := range losses {
			t.Run(name+" "+loss, func(t *testing.T) {
				t.Parallel()
				s, c := talk(t, lost, lost, says(200, call.answer))
				if err := call.call(t.Context(), NewFinalizationClaimer(c, "p1")); err != nil {
					t.Error(err)
				}
				if sent := s.requests(); len(sent) != 3 || sent[0] != sent[2] {
					t.Errorf("sent %+v", sent)
				}
			})
		}
	}
}

func TestFinalizationClaimer_refusals(t *testing.T) {
	t.Parallel()
	for code, want := range map[wire.Code]error{
		wire.CodeStepsUnfinished: ErrStepsUnfinished, wire.CodeTaskAlreadyClaimed: ErrTaskAlreadyClaimed, wire.CodeStaleClaim: ErrStaleClaim, wire.CodeTaskNotFound: ErrTaskNotFound,
	} {
		_, c := talk(t, refuses(code))
		if _, err := NewFinalizationClaimer(c, "p1").Finalize(t.Context(), "17", FinalizeRequest{Outcome: StatusCompleted}); !errors.Is(err, want) {
			t.Errorf("%s: got %v", code, err)
		}
	}
	s, c := talk(t, says(200, finalizationClaimed))
	f := NewFinalizationClaimer(c, "p1")
	for name, call := range map[string]func() error{
		"no id to claim":    func() error { _, err := f.ClaimTask(t.Context(), "x", 0); return err },
		"no id to finalize": func() error { _, err := f.Finalize(t.Context(), "x", FinalizeRequest{}); return err },
		"negative timeout":  func() error { _, err := f.ClaimTask(t.Context(), "17", -1); return err },
		"negative token":    func() error { _, err := f.Finalize(t.Context(), "17", FinalizeRequest{Token: -1}); return err },
		"result of bytes": func() error {
			_, err := f.Finalize(t.Context(), "17", FinalizeRequest{Result: []byte{255}})
			return err
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestClient_Finalization(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"attempts":[{"processor_id":"p1","claimed":true,"already_claimed_by":"p1","reason":null,"task_state":"evaluating_results","message":"M","attempted_at":"2026-01-02T03:04:05.006Z"},`+
		`{"processor_id":"p2","claimed":false,"already_claimed_by":null,"reason":"not_ready","task_state":"waiting_for_steps","message":"N","attempted_at":"2026-01-02T03:04:05.007Z"}],"claimed_by":"p1","claim_expires_at":"2026-01-02T03:04:35.006Z"}`),
		says(200, `{"success":true,"attempts":[],"claimed_by":null,"claim_expires_at":null}`))
	at := func(ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC) }
	want := &Finalization{ClaimedBy: "p1", ClaimExpiresAt: at(30_006), Attempts: []FinalizationAttempt{
		{ProcessorID: "p1", Claimed: true, AlreadyClaimedBy: "p1", State: FinalizationEvaluatingResults, Message: "M", AttemptedAt: at(6)},
		{ProcessorID: "p2", Reason: "not_ready", State: FinalizationWaitingForSteps, Message: "N", AttemptedAt: at(7)},
	}}
	got, err := c.Finalization(t.Context(), "17")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got, err := c.Finalization(t.Context(), "17"); err != nil || len(got.Attempts) != 0 || got.ClaimedBy != "" || !got.ClaimExpiresAt.IsZero() {
		t.Errorf("of none: %+v, %v", got, err)
	}
	if path := s.requests()[0].path; path != "/api/tasks/17/finalization" {
		t.Errorf("asked %s", path)
	}
}

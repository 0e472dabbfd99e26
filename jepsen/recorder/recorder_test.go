package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// serve starts a server that answers every request with handle.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Claimq-Index", "17")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Every answer, and every missing one, has the outcome that the contract says.
func TestCaller_outcomes(t *testing.T) {
	t.Parallel()
	refusal := func(code wire.Code) string { return fmt.Sprintf(`{"success":false,"error":"x","code":%q}`, code) }
	for _, tc := range []struct {
		name    string
		handle  http.HandlerFunc
		want    history.Outcome
		code    string
		nextOne bool // the next call goes to another node
	}{
		{"done", answer(201, `{"success":true,"task":{"id":4},"created":true}`), history.OK, "", false},
		{"refused", answer(400, refusal("invalid_task")), history.Failed, "invalid_task", false},
		{"no leader", answer(503, refusal("no_leader")), history.Failed, "no_leader", true},
		{"unknown", answer(504, refusal("outcome_unknown")), history.Unknown, "outcome_unknown", true},
		{"our bug", answer(500, refusal("internal")), history.Unknown, "internal", true},
		{"a proxy's error", answer(502, "<html>"), history.Unknown, CodeOddAnswer, true},
		{"a code with another status", answer(504, refusal("no_leader")), history.Unknown, CodeOddAnswer, true},
		{"done, it says, and nothing else", answer(201, `{"success":true}`), history.Unknown, CodeOddAnswer, true},
		{"not done, with the status of done", answer(200, `{"success":false,"task":{"id":4}}`), history.Unknown, CodeOddAnswer, true},
		{"a broken connection", hangUp, history.Unknown, CodeNoAnswer, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := New(1)
			t.Cleanup(rec.Close)
			var calls atomic.Int64
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				tc.handle(w, r)
			})
			c := rec.Caller([]string{url, "elsewhere"}, 0)
			op := c.Submit(t.Context(), wire.NewTask{Params: json.RawMessage("1"), IdempotencyKey: "k"})
			if op.Outcome != tc.want || op.Code != tc.code {
				t.Errorf("outcome: got %s %q, want %s %q", op.Outcome, op.Code, tc.want, tc.code)
			}
			if got := c.at == 1; got != tc.nextOne || Again(op) != tc.nextOne {
				t.Errorf("goes to the next node: got %v, again %v, want %v", got, Again(op), tc.nextOne)
			}
			if calls.Load() != 1 {
				t.Errorf("requests: got %d, want 1: a repeat must be an op of its own", calls.Load())
			}
			if diff := cmp.Diff([]history.Op{op}, rec.History().Ops); diff != "" {
				t.Errorf("recorded (-returned +recorded):\n%s", diff)
			}
		})
	}
}

// A request to a node that is down was not sent; a node that is too slow may have carried
// it out.
func TestCaller_noAnswer(t *testing.T) {
	t.Parallel()
	rec := New(1)
	t.Cleanup(rec.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	if op := rec.Caller([]string{down.URL}, 0).Call(t.Context(), history.Op{Kind: history.Get, TaskID: 1}); op.Outcome != history.Failed || op.Code != CodeNotConnected {
		t.Errorf("a node that is down: got %s %s", op.Outcome, op.Code)
	}
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := rec.Caller([]string{slow}, 0)
	c.Timeout = 20 * time.Millisecond
	if op := c.Call(t.Context(), history.Op{Kind: history.Get, TaskID: 1}); op.Outcome != history.Unknown || op.Code != CodeNoAnswer {
		t.Errorf("a slow node: got %s %s", op.Outcome, op.Code)
	}
}

// Each kind of call records in its op what was sent and what was answered.
func TestCaller_ops(t *testing.T) {
	t.Parallel()
	rec := New(1)
	t.Cleanup(rec.Close)
	const body = `{"success":true,"repeated":true,"task":{"id":4,"idempotency_key":"k","status":"claimed","attempts":2,"worker_id":"w","claim_token":9}}`
	var asked []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		answer(200, body)(w, r)
	})
	c := rec.Caller([]string{url}, 0)
	ctx := context.Background()
	limit := int32(5)
	c.Submit(ctx, wire.NewTask{IdempotencyKey: "k", MaxAttempts: &limit})
	c.Claim(ctx, wire.Claim{WorkerID: "w", ClaimRequestID: "r", LeaseMS: 100})
	c.Settle(ctx, history.Complete, 4, wire.Settle{WorkerID: "w", ClaimToken: 9, Result: json.RawMessage("1")})
	c.Settle(ctx, history.Extend, 4, wire.Settle{WorkerID: "w", ClaimToken: 9, LeaseMS: 200})
	c.Call(ctx, history.Op{Kind: history.Get, TaskID: 4, Stale: true})

	seen := &history.Task{ID: 4, Key: "k", Status: "claimed", Token: 9, Attempts: 2, Worker: "w"}
	base := history.Op{Process: 1, Outcome: history.OK, Node: url, Repeated: true, Index: 17, TaskID: 4}
	with := func(change func(op *history.Op)) history.Op { op := base; change(&op); return op }
	want := []history.Op{
		with(func(op *history.Op) { op.Kind, op.Key, op.MaxAttempts = history.Submit, "k", 5 }),
		with(func(op *history.Op) {
			op.Kind, op.Worker, op.RequestID, op.LeaseMS, op.Token, op.Seen = history.Claim, "w", "r", 100, 9, seen
		}),
		with(func(op *history.Op) {
			op.Kind, op.Worker, op.Token, op.Result, op.Seen = history.Complete, "w", 9, "1", seen
		}),
		with(func(op *history.Op) {
			op.Kind, op.Worker, op.Token, op.LeaseMS, op.Seen = history.Extend, "w", 9, 200, seen
		}),
		with(func(op *history.Op) { op.Kind, op.Stale, op.Seen = history.Get, true, seen }),
	}
	got := rec.History().Ops
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(history.Op{}, "Call", "Return")); diff != "" {
		t.Errorf("ops (-want +got):\n%s", diff)
	}
	for i := range got {
		if got[i].Call >= got[i].Return || i > 0 && got[i].Call < got[i-1].Return {
			t.Errorf("op %d: called at %d, returned at %d", i, got[i].Call, got[i].Return)
		}
	}
	wantAsked := "POST /api/tasks POST /api/tasks/claim POST /api/tasks/4/complete POST /api/tasks/4/extend GET /api/tasks/4?consistency=stale"
	if joined := strings.Join(asked, " "); joined != wantAsked {
		t.Errorf("asked: got %s, want %s", joined, wantAsked)
	}
}

// The final state is read page by page, from any node that answers.
func TestRecorder_ReadFinal(t *testing.T) {
	t.Parallel()
	rec := New(1)
	t.Cleanup(rec.Close)
	broken := serve(t, hangUp)
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			answer(200, `{"success":true,"tasks":[{"id":1,"status":"completed","claim_token":3,"attempts":1,"result":{"a": 1}}],"next_cursor":"c"}`)(w, r)
			return
		}
		answer(200, `{"success":true,"tasks":[{"id":2,"status":"failed"}],"next_cursor":null}`)(w, r)
	})
	if err := rec.ReadFinal(t.Context(), []string{broken, good}); err != nil {
		t.Fatal(err)
	}
	want := []history.Task{{ID: 1, Status: "completed", Token: 3, Attempts: 1, Result: `{"a": 1}`}, {ID: 2, Status: "failed"}}
	if diff := cmp.Diff(want, rec.History().Final.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

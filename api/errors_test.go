package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// TestServer_Refusals causes every refusal of the state machine through the API, and checks its text and details.
func TestServer_Refusals(t *testing.T) {
	t.Parallel()
	const w, held = `{"worker_id":"w"}`, `"task_id":1,"status":"claimed","worker_id":"w"`
	claimed := []string{`POST /api/tasks {"params":0}`, "POST /api/tasks/claim " + w}
	ended := append(claimed, "POST /api/tasks/1/complete "+w)
	failed := []string{
		`POST /api/tasks {"params":0,"max_attempts":1}`, "POST /api/tasks/claim " + w, `POST /api/tasks/1/fail {"worker_id":"w","error":"e"}`,
	}
	for _, c := range []struct {
		name         string
		before       []string
		target, body string
		code         wire.Code
		text, advice string
		details      string
	}{
		{"an unknown task", nil, "GET /api/tasks/1", "", wire.CodeTaskNotFound, "Task not found", "Check the id or the key: there is no such task, or it was deleted", ""},
		{"an unknown key", nil, "GET /api/tasks/by-key/k", "", wire.CodeTaskNotFound, "Task not found", "Check the id or the key: there is no such task, or it was deleted", ""},
		{"completing an unknown task", nil, "POST /api/tasks/1/complete", w, wire.CodeTaskNotFound, "Task not found", "Check the id or the key: there is no such task, or it was deleted", ""},
		{"deleting an unknown task", nil, "DELETE /api/tasks/1", "", wire.CodeTaskNotFound, "Task not found", "Check the id or the key: there is no such task, or it was deleted", ""},
		{"nothing to claim", nil, "POST /api/tasks/claim", w, wire.CodeNoPendingTasks, "No pending tasks available", "No pending tasks available", `"filters":{}`},
		{"claiming a claimed task", claimed, "POST /api/tasks/1/claim", `{"worker_id":"v"}`, wire.CodeTaskAlreadyClaimed, "Task already claimed by another worker", "Race condition detected, please retry", held},
		{"completing a pending task", claimed[:1], "POST /api/tasks/1/complete", w, wire.CodeTaskNotClaimed, "Task is not claimed", "Claim the task first; its claim has ended or never began", `"task_id":1,"status":"pending","worker_id":null`},
		{"completing a pending task with a token", claimed[:1], "POST /api/tasks/1/complete", `{"worker_id":"w","claim_token":1}`, wire.CodeStaleClaim, "Claim is no longer valid", "Stop working on this task: its claim has ended, and the next worker that claims it does it again", `"task_id":1,"status":"pending","worker_id":null`},
		{"extending another's claim", claimed, "POST /api/tasks/1/extend", `{"worker_id":"v"}`, wire.CodeWrongWorker, "Task is claimed by another worker", "Stop working on this task: only the worker that holds its claim may change it", held},
		{"releasing with an old token", claimed, "POST /api/tasks/1/release", `{"worker_id":"w","claim_token":9}`, wire.CodeStaleClaim, "Claim is no longer valid", "Stop working on this task: its claim has ended, and the next worker that claims it does it again", held},
		{"failing a completed task", ended, "POST /api/tasks/1/fail", `{"worker_id":"w","error":"e"}`, wire.CodeTaskCompleted, "Task is already completed", "Nothing is left to do: the task has its result", `"task_id":1,"status":"completed","worker_id":"w"`},
		{"claiming a completed task", ended, "POST /api/tasks/1/claim", w, wire.CodeTaskCompleted, "Task is already completed", "Nothing is left to do: the task has its result", `"status":"completed"`},
		{"completing a failed task", failed, "POST /api/tasks/1/complete", w, wire.CodeTaskFailed, "Task has already failed", "Retry the task if it is to run again", `"task_id":1,"status":"failed","worker_id":"w"`},
		{"deleting a claimed task", claimed, "DELETE /api/tasks/1", "", wire.CodeTaskNotTerminal, "Task has not ended", "Wait until the task is completed, failed or cancelled, then delete it", held},
		{"retrying without attempts left", failed, "POST /api/tasks/1/retry", "", wire.CodeMaxAttemptsReached, "Maximum attempts reached", "Send add_attempts to raise max_attempts", `"task_id":1,"status":"failed","worker_id":"w","attempts":1,"max_attempts":1`},
		{"no such path", nil, "GET /api/nothing", "", wire.CodeNotFound, "No such path", "Check the path: docs/api.md lists the calls of this server", ""},
		{"no such method", nil, "PUT /api/tasks", "", wire.CodeMethodNotAllowed, "Method not allowed", "Use one of the methods in the Allow header", ""},
		{"no worker_id", nil, "POST /api/tasks/claim", `{}`, wire.CodeInvalidRequest, "Missing required field: worker_id", "Send worker_id in the JSON body", `"field":"worker_id"`},
		{"a bad worker_id", nil, "POST /api/tasks/claim", `{"worker_id":"a b"}`, wire.CodeInvalidWorkerID, "Invalid worker_id format", "Send a worker_id of 1 to 128 of A-Z a-z 0-9 _ . : @ -, but not . or ..", `"field":"worker_id"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := setup(t)
			for _, b := range c.before {
				method, rest, _ := strings.Cut(b, " ")
				path, body, _ := strings.Cut(rest, " ")
				if a := s.call(t, method+" "+path, body); a.status >= 300 {
					t.Fatalf("%s: %s", b, a.body)
				}
			}
			checkRefusal(t, s.call(t, c.target, c.body), c.code, c.text, c.advice, c.details)
		})
	}
}

func checkRefusal(t *testing.T, got answer, code wire.Code, text, advice, details string) {
	t.Helper()
	f := got.refused(t, code)
	if f["error"] != text || f["message"] != advice {
		t.Errorf("error %q, message %q\nwant  %q, %q", f["error"], f["message"], text, advice)
	}
	if !strings.Contains(got.body, details) {
		t.Errorf("details %s are not in %s", details, got.body)
	}
	wantRetry := ""
	if code.Status() == 503 {
		wantRetry = "1"
	}
	if got.header["Retry-After"] != wantRetry {
		t.Errorf("Retry-After %q, want %q", got.header["Retry-After"], wantRetry)
	}
}

// TestServer_ResultCodes checks the refusals that no current command leads to.
func TestServer_ResultCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[fsm.Code][2]string{
		fsm.CodeTaskNotClaimable: {"Task cannot be claimed now", "Wait until what reason names has passed"},
		fsm.CodeTaskCancelled:    {"Task is cancelled", "Retry the task if it is to run again"},
	} {
		s, node := setup(t)
		node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
			return nodes.Proposed{Result: fsm.Result{Code: code, Task: &fsm.Task{ID: 5, Status: fsm.StatusScheduled}}}, nil
		}
		checkRefusal(t, s.call(t, "POST /api/tasks/5/claim", `{"worker_id":"w"}`), wire.Code(code), want[0], want[1], `"task_id":5,"status":"scheduled","worker_id":null`)
	}
}

// TestServer_NodeErrors injects each error that a node can return.
func TestServer_NodeErrors(t *testing.T) {
	t.Parallel()
	const notWritten = "Nothing was written: repeat the request after the time in Retry-After"
	const repeat = "The command may still be applied: repeat it with the same idempotency_key, claim_request_id or claim_token"
	for _, c := range []struct {
		err                error
		code               wire.Code
		text, advice       string
		readCode           wire.Code // "": as code
		readText, readDoes string
	}{
		{nodes.ErrNotLeader, wire.CodeNoLeader, "The cluster has no leader", notWritten, "", "", ""},
		{nodes.ErrNoLeader, wire.CodeNoLeader, "The cluster has no leader", notWritten, "", "", ""},
		{nodes.ErrOverloaded, wire.CodeOverloaded, "The server is overloaded", notWritten, "", "", ""},
		{nodes.ErrShuttingDown, wire.CodeShuttingDown, "The server is shutting down", "Nothing was written: repeat the request at another node", "", "", ""},
		{nodes.ErrTooLarge, wire.CodePayloadTooLarge, "The request is larger than a log entry may be", "Send less, or keep the data elsewhere and send where it is", "", "", ""},
		{nodes.ErrOutcomeUnknown, wire.CodeOutcomeUnknown, "The outcome is unknown", repeat, wire.CodeOverloaded, "The server is overloaded", notWritten},
		{context.DeadlineExceeded, wire.CodeOutcomeUnknown, "The outcome is unknown", repeat, wire.CodeOverloaded, "The server is overloaded", notWritten},
		{fmt.Errorf("%w: %w", nodes.ErrNoLeader, context.DeadlineExceeded), wire.CodeNoLeader, "The cluster has no leader", notWritten, wire.CodeOverloaded, "The server is overloaded", notWritten},
		{nodes.ErrLevel, wire.CodeInvalidRequest, "The cluster's feature level is too low for this request", "Once all nodes run the new version, run claimq cluster upgrade --finalize", "", "", ""},
		{errors.New("a bug"), wire.CodeInternal, "Internal server error", "Report this with its request_id: the server's log has the reason", "", "", ""},
	} {
		s, node := setup(t)
		wrapped := fmt.Errorf("propose: %w", c.err)
		node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) { return nodes.Proposed{}, wrapped }
		node.OnRead = func(context.Context, uint64) error { return wrapped }
		for _, target := range []string{"POST /api/tasks", "POST /api/tasks/claim", "POST /api/tasks/1/claim", "POST /api/tasks/1/complete", "POST /api/tasks/1/fail", "POST /api/tasks/1/extend", "POST /api/tasks/1/release", "POST /api/tasks/1/retry", "POST /api/tasks/1/cancel", "PATCH /api/tasks/1", "DELETE /api/tasks/1", "POST /api/batch", "PATCH /api/types/a", "POST /api/tasks/1/finalization/claim", "POST /api/tasks/1/finalization/extend", "POST /api/tasks/1/finalization/release", "POST /api/tasks/1/finalize"} {
			checkRefusal(t, s.call(t, target, goodBodies[target]), c.code, c.text, c.advice, "")
		}
		code, text, advice := c.code, c.text, c.advice
		if c.readCode != "" {
			code, text, advice = c.readCode, c.readText, c.readDoes
		}
		for _, target := range []string{"GET /api/tasks/1", "GET /api/tasks/by-key/k", "GET /api/tasks", "GET /api/types", "GET /api/stats", "GET /api/tasks/1/finalization", "GET /api/tasks?consistency=stale"} {
			checkRefusal(t, s.call(t, target, ""), code, text, advice, "")
		}
	}
}

// goodBodies has a valid body for each call that needs one.
var goodBodies = map[string]string{
	"POST /api/tasks":                        `{"params":1}`,
	"POST /api/tasks/claim":                  `{"worker_id":"w"}`,
	"POST /api/tasks/1/claim":                `{"worker_id":"w"}`,
	"POST /api/tasks/1/complete":             `{"worker_id":"w"}`,
	"POST /api/tasks/1/fail":                 `{"worker_id":"w","error":"e"}`,
	"POST /api/tasks/1/extend":               `{"worker_id":"w"}`,
	"POST /api/tasks/1/release":              `{"worker_id":"w"}`,
	"POST /api/tasks/1/retry":                `{}`,
	"POST /api/tasks/1/cancel":               ``,
	"PATCH /api/tasks/1":                     `{"priority":1}`,
	"POST /api/batch":                        `{"ops":[{"op":"submit","params":1},{"id":1,"op":"delete"},{"op":"complete","id":1,"worker_id":"w","submit":[{"params":1}],"claim":{}}]}`,
	"POST /api/tasks/1/finalization/claim":   `{"processor_id":"p"}`,
	"POST /api/tasks/1/finalization/extend":  `{"processor_id":"p"}`,
	"POST /api/tasks/1/finalization/release": `{"processor_id":"p"}`,
	"POST /api/tasks/1/finalize":             `{"processor_id":"p","outcome":"completed"}`,
	"PATCH /api/types/a":                     `{"rate_limit":0.5,"backoff":{"initial_ms":1}}`,
}

// TestServer_Panic checks that a panic costs one answer and not the process.
func TestServer_Panic(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) { panic("a bug") }
	got := s.call(t, "POST /api/tasks", `{"params":1}`, "X-Request-ID: r-7")
	checkRefusal(t, got, wire.CodeInternal, "Internal server error", "Report this with its request_id: the server's log has the reason", `"request_id":"r-7"`)
	node.OnPropose = nil
	submitOne(t, s, `{"params":1}`)
}

// TestServer_Wait checks that a mutation waits at most 10 s for a node that never answers, and that its outcome is
// then called unknown.
func TestServer_Wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		node.OnPropose = func(ctx context.Context, _ command.Command) (nodes.Proposed, error) {
			<-ctx.Done()
			return nodes.Proposed{}, ctx.Err()
		}
		for range 3 {
			start := time.Now()
			s.call(t, "POST /api/tasks", `{"params":1}`).refused(t, wire.CodeOutcomeUnknown)
			if took := time.Since(start); took > 10*time.Second || took < 9*time.Second {
				t.Errorf("answered after %s", took)
			}
			<-time.After(300 * time.Millisecond) // of the bubble's clock
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestServer_Drain checks that a draining server refuses work and stays alive.
func TestServer_Drain(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	s.Drain()
	for _, target := range []string{
		"POST /api/tasks", "GET /api/stats", "GET /readyz", "POST /api/tasks/1/finalization/claim", "POST /api/tasks/1/finalization/extend",
		"POST /api/tasks/1/finalization/release", "POST /api/tasks/1/finalize", "GET /api/tasks/1/finalization",
	} {
		checkRefusal(t, s.call(t, target, goodBodies[target]), wire.CodeShuttingDown, "The server is shutting down", "Nothing was written: repeat the request at another node", "")
	}
	if a := s.call(t, "GET /healthz", ""); a.status != fasthttp.StatusOK {
		t.Errorf("healthz: %d", a.status)
	}
}

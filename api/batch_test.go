package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// ownCalls are the calls that correspond to ops of a batch. They need three tasks, the first one claimed by w.
var ownCalls = []struct{ op, target, body string }{
	{`{"op":"submit","params":1,"idempotency_key":"k"}`, "POST /api/tasks", `{"params":1,"idempotency_key":"k"}`},
	{`{"op":"submit","params":2,"idempotency_key":"k"}`, "POST /api/tasks", `{"params":2,"idempotency_key":"k"}`},
	{`{"op":"claim","worker_id":"v"}`, "POST /api/tasks/claim", `{"worker_id":"v"}`},
	{`{"op":"claim","worker_id":"v","limit":1,"claim_request_id":"r"}`, "POST /api/tasks/claim", `{"worker_id":"v","limit":1,"claim_request_id":"r"}`},
	{`{"op":"claim","worker_id":"v","limit":1,"claim_request_id":"r"}`, "POST /api/tasks/claim", `{"worker_id":"v","limit":1,"claim_request_id":"r"}`},
	{`{"op":"claim","worker_id":"w","limit":1,"claim_request_id":"r"}`, "POST /api/tasks/claim", `{"worker_id":"w","limit":1,"claim_request_id":"r"}`},
	{`{"op":"claim","worker_id":"v","task_types":["x"],"sort_by":"random"}`, "POST /api/tasks/claim", `{"worker_id":"v","task_types":["x"],"sort_by":"random"}`},
	{`{"op":"claim","worker_id":"v","task_types":["x"],"limit":2}`, "POST /api/tasks/claim", `{"worker_id":"v","task_types":["x"],"limit":2}`},
	{`{"op":"extend","id":1,"worker_id":"w","progress":[1]}`, "POST /api/tasks/1/extend", `{"worker_id":"w","progress":[1]}`},
	{`{"op":"extend","id":1,"worker_id":"v"}`, "POST /api/tasks/1/extend", `{"worker_id":"v"}`},
	{`{"op":"complete","id":1,"worker_id":"w","claim_token":1,"submit":[{"params":3}],"claim":{}}`, "POST /api/tasks/1/complete", `{"worker_id":"w","claim_token":1,"submit":[{"params":3}],"claim":{}}`},
	{`{"op":"complete","id":1,"worker_id":"w","claim_token":1,"submit":[{"params":3}],"claim":{}}`, "POST /api/tasks/1/complete", `{"worker_id":"w","claim_token":1,"submit":[{"params":3}],"claim":{}}`},
	{`{"op":"complete","id":99,"worker_id":"w"}`, "POST /api/tasks/99/complete", `{"worker_id":"w"}`},
	{`{"op":"fail","id":2,"worker_id":"v","error":"e","permanent":true}`, "POST /api/tasks/2/fail", `{"worker_id":"v","error":"e","permanent":true}`},
	{`{"op":"retry","id":2,"add_attempts":1}`, "POST /api/tasks/2/retry", `{"add_attempts":1}`},
	{`{"op":"release","id":3,"worker_id":"v","delay_ms":100}`, "POST /api/tasks/3/release", `{"worker_id":"v","delay_ms":100}`},
	{`{"op":"cancel","id":3}`, "POST /api/tasks/3/cancel", ``},
	{`{"op":"delete","id":4}`, "DELETE /api/tasks/4", ``},
	{`{"op":"delete","id":3}`, "DELETE /api/tasks/3", ``},
}

func setupOwnCalls(t *testing.T) *Server {
	t.Helper()
	s, _ := setup(t)
	for range 3 {
		submitOne(t, s, `{"params":0}`)
	}
	claimOne(t, s, "w")
	return s
}

// TestServer_BatchIsOwnCalls checks that each op of a batch is answered as its own call, byte for byte.
func TestServer_BatchIsOwnCalls(t *testing.T) {
	t.Parallel()
	var ops, want []string
	failed := 0
	single := setupOwnCalls(t)
	for _, c := range ownCalls {
		ops = append(ops, c.op)
		a := single.call(t, c.target, c.body, "X-Request-ID: r-1")
		want = append(want, a.body)
		if a.status >= 300 {
			failed++
		}
	}
	if failed != 5 {
		t.Errorf("%d refusals among the calls, want 5", failed)
	}
	got := setupOwnCalls(t).call(t, "POST /api/batch", `{"ops":[`+strings.Join(ops, ",")+`]}`, "X-Request-ID: r-1")
	if got.status != 200 || got.header["X-Claimq-Index"] == "" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	var answer struct {
		Success bool
		Results []json.RawMessage
		Failed  int
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
		t.Fatal(err)
	}
	if !answer.Success || answer.Failed != failed || len(answer.Results) != len(want) {
		t.Fatalf("success %v, failed %d, %d results, want %d, %d", answer.Success, answer.Failed, len(answer.Results), failed, len(want))
	}
	for i, r := range answer.Results {
		if diff := cmp.Diff(want[i], string(r)); diff != "" {
			t.Errorf("%s (-own call +op):\n%s", ops[i], diff)
		}
	}
}

// TestServer_BatchAtomic checks that an atomic batch is answered like its first refused op, and then changes nothing.
func TestServer_BatchAtomic(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":0}`)
	for _, c := range []struct {
		op   string
		code wire.Code
		want string
	}{
		{`{"op":"complete","id":1,"worker_id":"w"}`, wire.CodeTaskNotClaimed, `{"success":false,"error":"Task is not claimed","code":"task_not_claimed","message":"Claim the task first; its claim has ended or never began","request_id":"r-1","task_id":1,"status":"pending","worker_id":null,"failed_op":1}`},
		{`{"op":"delete","id":9}`, wire.CodeTaskNotFound, `{"success":false,"error":"Task not found","code":"task_not_found","message":"Check the id or the key: there is no such task, or it was deleted","request_id":"r-1","failed_op":1}`},
		{`{"op":"claim","worker_id":"w","task_types":["x"]}`, wire.CodeNoPendingTasks, `{"success":false,"error":"No pending tasks available","code":"no_pending_tasks","message":"No pending tasks available","request_id":"r-1","filters":{"task_types":["x"]},"failed_op":1}`},
		{`{"op":"claim","worker_id":"w","task_types":["x"],"limit":5}`, wire.CodeNoPendingTasks, `{"success":false,"error":"No pending tasks available","code":"no_pending_tasks","message":"No pending tasks available","request_id":"r-1","filters":{"task_types":["x"]},"failed_op":1}`},
	} {
		got := s.call(t, "POST /api/batch", `{"atomic":true,"ops":[{"op":"submit","params":1},`+c.op+`,{"op":"cancel","id":1}]}`, "X-Request-ID: r-1")
		if got.status != c.code.Status() || got.body != c.want {
			t.Errorf("%s: %d\n got %s\nwant %s", c.op, got.status, got.body, c.want)
		}
	}
	if n := node.Machine.Stats(node.Stamp).Counts; n[fsm.StatusPending] != 1 || n[fsm.StatusCancelled] != 0 {
		t.Errorf("counts %v", n)
	}
	good := s.call(t, "POST /api/batch", `{"atomic":true,"ops":[{"op":"submit","params":1},{"op":"cancel","id":1}]}`)
	var answer wire.BatchAnswer
	if err := json.Unmarshal([]byte(good.body), &answer); err != nil || good.status != 200 || !answer.Success || answer.Failed != 0 || len(answer.Results) != 2 {
		t.Errorf("%d %s: %v", good.status, good.body, err)
	}
	if answer.Results[0].Task.ID != 2 || !answer.Results[0].Created || answer.Results[1].Task.Status != "cancelled" {
		t.Errorf("results %+v", answer.Results)
	}
}

// TestServer_BatchAtTheLimit checks the largest batches that are accepted.
func TestServer_BatchAtTheLimit(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	ops := make([]string, 1000)
	for i := range ops {
		ops[i] = `{"op":"submit","params":0}`
	}
	got := s.call(t, "POST /api/batch", `{"ops":[`+strings.Join(ops, ",")+`]}`)
	if got.status != 200 || !strings.HasSuffix(got.body, `,"failed":0}`) || node.Machine.Stats(node.Stamp).Counts[fsm.StatusPending] != 1000 {
		t.Errorf("1,000 ops: %d %.200s", got.status, got.body)
	}
	claims := strings.TrimSuffix(strings.Repeat(`{"op":"claim","worker_id":"w","limit":1000},`, 10), ",")
	if got := s.call(t, "POST /api/batch", `{"ops":[`+claims+`]}`); got.status != 200 {
		t.Errorf("10,000 tasks: %d %.200s", got.status, got.body)
	}
	if f := s.call(t, "POST /api/batch", `{"ops":[`+claims+`,{"op":"cancel","id":1}]}`).refused(t, ir); f["field"] != "ops" {
		t.Errorf("10,001 tasks: %v", f)
	}
}

// TestOp_MarshalJSON checks that the server can read the ops that clients build.
func TestOp_MarshalJSON(t *testing.T) {
	t.Parallel()
	two := int32(2)
	body, err := json.Marshal(wire.Batch{Atomic: true, Ops: []wire.Op{
		{Op: "submit", Fields: wire.NewTask{Params: json.RawMessage(`{}`), MaxAttempts: &two, Labels: wire.Labels{"a": "b"}}},
		{Op: "fail", ID: 7, Fields: wire.Settle{WorkerID: "w", Error: "e", Permanent: true}},
		{Op: "retry", ID: 8, Fields: wire.Retry{}},
		{Op: "cancel", ID: 9},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := command.Batch{Atomic: true, Ops: []command.Command{
		command.Submit{Tasks: []fsm.NewTask{{Type: "default", Params: []byte("{}"), MaxAttempts: 2, Labels: []fsm.Label{{Name: "a", Value: "b"}}}}},
		command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}, Error: "e", Permanent: true},
		command.Retry{ID: 8},
		command.Cancel{ID: 9},
	}}
	if diff := cmp.Diff(command.Command(want), proposedBy(t, "POST /api/batch", string(body))); diff != "" {
		t.Errorf("command (-want +got):\n%s\n%s", diff, body)
	}
	if b, err := json.Marshal(wire.Op{Op: "fail", Fields: []int{1}}); err == nil {
		t.Errorf("fields that are no object became %s", b)
	}
}

// TestServer_BatchFirstFieldOfOp checks that the fields of an op may come in any order.
func TestServer_BatchFirstFieldOfOp(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		fields := []string{`"params":{"op":"delete","x":["\"op\""]}`, `"labels":{"op":"x"}`, `"idempotency_key":"op"`}
		fields = append(fields[:i], append([]string{`"op":"submit"`}, fields[i:]...)...)
		got := proposedBy(t, "POST /api/batch", fmt.Sprintf(`{"ops":[{"op":"cancel","id":1},{%s}]}`, strings.Join(fields, ", ")))
		want := fsm.NewTask{
			Type: "default", Params: []byte(`{"op":"delete","x":["\"op\""]}`), Key: "op", MaxAttempts: fsm.DefaultAttempts,
			Labels: []fsm.Label{{Name: "op", Value: "x"}},
		}
		if diff := cmp.Diff(command.Command(command.Submit{Tasks: []fsm.NewTask{want}}), got.(command.Batch).Ops[1]); diff != "" {
			t.Errorf("op at %d: command (-want +got):\n%s", i, diff)
		}
	}
}

// TestServer_BatchMinimal checks that a minimal batch gets only ids and statuses of its tasks, and everything else as
// usual.
func TestServer_BatchMinimal(t *testing.T) {
	t.Parallel()
	s := setupOwnCalls(t)
	got := s.call(t, "POST /api/batch", `{"return":"minimal","ops":[{"op":"submit","params":5,"idempotency_key":"k"},{"op":"submit","params":6,"idempotency_key":"k"},`+
		`{"op":"extend","id":1,"worker_id":"w","claim_token":1},{"op":"complete","id":1,"worker_id":"w","claim_token":1,"submit":[{"params":3}],"claim":{"worker_id":"v","limit":1}},`+
		`{"op":"complete","id":9,"worker_id":"w"},{"op":"cancel","id":3},{"op":"delete","id":3}]}`, "X-Request-ID: r-1")
	claimed := regexp.MustCompile(`"claimed":\{"tasks":\[\{"id":2,.*"params":0,.*\}\]\}`)
	if !claimed.MatchString(got.body) {
		t.Errorf("the claimed task is not whole: %s", got.body)
	}
	want := `{"success":true,"results":[{"success":true,"task":{"id":4,"status":"pending"},"created":true},` +
		`{"success":true,"task":{"id":4,"status":"pending"},"created":false,"same_request":false},` +
		`{"success":true,"task":{"id":1,"status":"claimed"},"lease_remaining_ms":30000,"cancel_requested":false},` +
		`{"success":true,"task":{"id":1,"status":"completed"},"submitted":[{"id":5,"created":true}],CLAIMED},` +
		`{"success":false,"error":"Task not found","code":"task_not_found","message":"Check the id or the key: there is no such task, or it was deleted","request_id":"r-1"},` +
		`{"success":true,"task":{"id":3,"status":"cancelled"}},{"success":true,"deleted":1}],"failed":1}`
	if diff := cmp.Diff(want, claimed.ReplaceAllString(got.body, "CLAIMED")); got.status != 200 || diff != "" {
		t.Errorf("%d (-want +got):\n%s", got.status, diff)
	}
	if f := s.call(t, "POST /api/batch", `{"return":"ids","ops":[{"op":"cancel","id":2}]}`).refused(t, ir); f["field"] != "return" {
		t.Errorf("an unknown return: %v", f)
	}
}

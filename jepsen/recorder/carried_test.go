package recorder

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/jepsen/history"
)

// A call that somebody else makes is the ops that it is made of.
func TestCarried_Answered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, body string
		status           int
		answer           string
		err              error
		want             []history.Op
	}{
		{
			"a submit", "/api/tasks", `{"task_type":"mail","params":1,"idempotency_key":"k","max_attempts":0}`, 201, `{"success":true,"created":true,"task":{"id":7}}`, nil,
			[]history.Op{{Kind: history.Submit, Outcome: history.OK, TaskType: "mail", Key: "k", TaskID: 7, Created: true}},
		},
		{
			"a claim of two", "/api/tasks/claim", `{"worker_id":"w","limit":2,"claim_request_id":"r"}`, 200, `{"success":true,"tasks":[{"id":7,"claim_token":1,"claim_state":"live"},{"id":8,"claim_token":2,"claim_state":"ended"}],"repeated":true}`, nil,
			[]history.Op{
				{Kind: history.Claim, Outcome: history.OK, Worker: "w", RequestID: "r", Limit: 2, TaskID: 7, Token: 1, Repeated: true},
				{Kind: history.Claim, Outcome: history.OK, Worker: "w", RequestID: "r", Limit: 2, TaskID: 8, Token: 2, Repeated: true},
			},
		},
		{
			"a complete that submits and claims", "/api/tasks/7/complete", `{"worker_id":"w","claim_token":1,"submit":[{"task_type":"mail","params":1,"idempotency_key":"k2"}],"claim":{"worker_id":"w","claim_request_id":"r"}}`,
			200, `{"success":true,"task":{"id":7,"status":"completed","claim_token":1,"attempts":1},"submitted":[{"id":9,"created":true}],"claimed":{"task":null}}`, nil,
			[]history.Op{
				{Kind: history.Complete, Outcome: history.OK, TaskID: 7, Token: 1, Worker: "w", Seen: &history.Task{ID: 7, Status: "completed", Token: 1, Attempts: 1}},
				{Kind: history.Submit, Outcome: history.OK, TaskType: "mail", Key: "k2", TaskID: 9, Created: true},
				{Kind: history.Claim, Outcome: history.OK, Worker: "w", RequestID: "r"},
			},
		},
		{
			"a fail of a task that waits then", "/api/tasks/7/fail", `{"worker_id":"w","claim_token":1}`, 200, `{"success":true,"task":{"id":7,"status":"scheduled","attempts":1}}`, nil,
			[]history.Op{{Kind: history.Fail, Outcome: history.OK, TaskID: 7, Token: 1, Worker: "w", Seen: &history.Task{ID: 7, Status: "pending", Attempts: 1}}},
		},
		{
			"releases", "/api/batch", `{"ops":[{"op":"release","id":7,"worker_id":"w","claim_token":1},{"op":"release","id":8,"worker_id":"w","claim_token":2}]}`, 200,
			`{"success":true,"results":[{"success":true,"task":{"id":7,"status":"pending"}},{"success":false,"code":"stale_claim"}]}`, nil,
			[]history.Op{
				{Kind: history.Release, Outcome: history.OK, TaskID: 7, Token: 1, Worker: "w", Seen: &history.Task{ID: 7, Status: "pending"}},
				{Kind: history.Release, Outcome: history.Failed, Code: "stale_claim", TaskID: 8, Token: 2, Worker: "w"},
			},
		},
		{
			"an extend that is refused", "/api/tasks/7/extend", `{"worker_id":"w","claim_token":1,"lease_ms":500}`, 409, `{"success":false,"code":"stale_claim"}`, nil,
			[]history.Op{{Kind: history.Extend, Outcome: history.Failed, Code: "stale_claim", TaskID: 7, Token: 1, Worker: "w", LeaseMS: 500}},
		},
		{
			"no answer", "/api/tasks/7/release", `{"worker_id":"w","claim_token":1}`, 0, "", errors.New("broken"),
			[]history.Op{{Kind: history.Release, Outcome: history.Unknown, Code: CodeNoAnswer, TaskID: 7, Token: 1, Worker: "w"}},
		},
		{
			"a redirect", "/api/tasks/claim", `{"worker_id":"w"}`, 307, "", nil,
			[]history.Op{{Kind: history.Claim, Outcome: history.Failed, Code: codeRedirected, Worker: "w"}},
		},
		{"another call", "/api/restore", "{}", 200, `{"success":true}`, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := New(1)
			r.Carry().Answered(http.MethodPost, c.path, []byte(c.body), c.status, http.Header{}, []byte(c.answer), c.err)
			times := cmpopts.IgnoreFields(history.Op{}, "Call", "Return", "Process")
			if diff := cmp.Diff(c.want, r.History().Ops, times); diff != "" {
				t.Error(diff)
			}
			if again := r.Carry(); again.process != 1 {
				t.Errorf("the next call is process %d's", again.process)
			}
		})
	}
}

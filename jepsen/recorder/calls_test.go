package recorder

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// A complete that also submits and claims gives an op for each part, with the same call and
// outcome. An answer that lacks a part is odd.
func TestCaller_Complete(t *testing.T) {
	t.Parallel()
	const task = `{"success":true,"task":{"id":7,"status":"completed","claim_token":1,"attempts":1}`
	for _, tc := range []struct {
		name   string
		handle http.HandlerFunc
		want   history.Outcome
		ids    [3]uint64
	}{
		{"done", answer(200, task+`,"submitted":[{"id":8,"created":true}],"claimed":{"task":{"id":9,"claim_token":2}}}`), history.OK, [3]uint64{7, 8, 9}},
		{"nothing to claim", answer(200, task+`,"submitted":[{"id":8,"created":true}],"claimed":{"task":null}}`), history.OK, [3]uint64{7, 8, 0}},
		{"refused", answer(409, `{"success":false,"code":"stale_claim"}`), history.Failed, [3]uint64{7, 0, 0}},
		{"no answer", hangUp, history.Unknown, [3]uint64{7, 0, 0}},
		{"nothing said of the submit", answer(200, task+`,"claimed":{"task":null}}`), history.Unknown, [3]uint64{7, 0, 0}},
		{"nothing said of the claim", answer(200, task+`,"submitted":[{"id":8,"created":true}]}`), history.Unknown, [3]uint64{7, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := New(1)
			t.Cleanup(rec.Close)
			ops := rec.Caller([]string{serve(t, tc.handle)}, 0).Settle(t.Context(), history.Complete, 7, wire.Settle{
				WorkerID: "w", ClaimToken: 1, Claim: &wire.Claim{WorkerID: "w", ClaimRequestID: "r"},
				Submit: []wire.NewTask{{Params: json.RawMessage("1"), IdempotencyKey: "k"}},
			})
			if len(ops) != 3 || len(rec.History().Ops) != 3 {
				t.Fatalf("got %d ops, %d recorded, want 3", len(ops), len(rec.History().Ops))
			}
			for i, kind := range []history.Kind{history.Complete, history.Submit, history.Claim} {
				op := ops[i]
				if op.Kind != kind || op.Outcome != tc.want || op.TaskID != tc.ids[i] || !op.Whole || op.Process != ops[0].Process || op.Call != ops[0].Call {
					t.Errorf("op %d: got %+v", i, op)
				}
			}
		})
	}
}

// The claim of a complete can be identified even without a claim_request_id: its repeat is the
// same one.
func TestCaller_Settle_anonymousClaim(t *testing.T) {
	t.Parallel()
	rec := New(1)
	t.Cleanup(rec.Close)
	c := rec.Caller([]string{serve(t, hangUp)}, 0)
	var names []string
	for _, token := range []uint64{1, 1, 2} {
		ops := c.Settle(t.Context(), history.Complete, 7, wire.Settle{WorkerID: "w", ClaimToken: token, Claim: &wire.Claim{WorkerID: "w"}})
		names = append(names, ops[1].RequestID)
	}
	if names[0] == "" || names[0] != names[1] || names[1] == names[2] {
		t.Errorf("got %q, want a name that only the repeat has as well", names)
	}
}

// A complete's claim that was over when the repeat reported it had no holder, unless it has a
// claim_request_id.
func TestCaller_Settle_claimOver(t *testing.T) {
	t.Parallel()
	const task = `{"success":true,"repeated":true,"task":{"id":7,"status":"completed","claim_token":1},"claimed":{"task":{"id":8,"status":"pending","claim_token":2,"claim_state":"%s"}}}`
	for _, c := range []struct {
		state, request string
		outcome        history.Outcome
		task           uint64
	}{
		{"ended", "", history.Unknown, 0}, {"live", "", history.OK, 8}, {"ended", "r", history.OK, 8},
	} {
		rec := New(1)
		t.Cleanup(rec.Close)
		caller := rec.Caller([]string{serve(t, answer(http.StatusOK, fmt.Sprintf(task, c.state)))}, 0)
		ops := caller.Settle(t.Context(), history.Complete, 7, wire.Settle{WorkerID: "w", ClaimToken: 1, Claim: &wire.Claim{WorkerID: "w", ClaimRequestID: c.request}})
		if ops[1].Outcome != c.outcome || ops[1].TaskID != c.task {
			t.Errorf("%s, request %q: got %+v", c.state, c.request, ops[1])
		}
	}
}

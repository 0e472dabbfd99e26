package recorder

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// Each op of a batch has its own outcome; all ops of an atomic one have the same, and only
// the refused op has the reason.
func TestCaller_Batch(t *testing.T) {
	t.Parallel()
	const done = `{"success":true,"task":{"id":8},"created":true},{"success":true,"task":{"id":7,"status":"completed","claim_token":1,"attempts":1},"repeated":true}`
	type want struct {
		outcome  history.Outcome
		code     string
		task     uint64
		repeated bool
	}
	for _, tc := range []struct {
		name   string
		atomic bool
		handle http.HandlerFunc
		want   [2]want
	}{
		{"done", true, answer(200, `{"success":true,"results":[`+done+`]}`), [2]want{{history.OK, "", 8, false}, {history.OK, "", 7, true}}},
		{
			"the second is refused", false, answer(200, `{"success":true,"results":[{"success":true,"task":{"id":8},"created":true},{"success":false,"code":"stale_claim"}],"failed":1}`),
			[2]want{{history.OK, "", 8, false}, {history.Failed, "stale_claim", 7, false}},
		},
		{
			"all for the second", true, answer(409, `{"success":false,"code":"stale_claim","failed_op":1}`),
			[2]want{{history.Failed, CodeWithOthers, 0, false}, {history.Failed, "stale_claim", 7, false}},
		},
		{"not now", true, answer(503, `{"success":false,"code":"no_leader"}`), [2]want{{history.Failed, "no_leader", 0, false}, {history.Failed, "no_leader", 7, false}}},
		{"too few results", false, answer(200, `{"success":true,"results":[]}`), [2]want{{history.Unknown, CodeOddAnswer, 0, false}, {history.Unknown, CodeOddAnswer, 7, false}}},
		{"no answer", true, hangUp, [2]want{{history.Unknown, CodeNoAnswer, 0, false}, {history.Unknown, CodeNoAnswer, 7, false}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := New(1)
			t.Cleanup(rec.Close)
			ops := rec.Caller([]string{serve(t, tc.handle)}, 0).Batch(t.Context(), wire.Batch{Atomic: tc.atomic, Ops: []wire.Op{
				{Op: "submit", Fields: wire.NewTask{Params: json.RawMessage("1"), IdempotencyKey: "k"}},
				{Op: "complete", ID: 7, Fields: wire.Settle{WorkerID: "w", ClaimToken: 1}},
			}})
			if len(ops) != 2 || len(rec.History().Ops) != 2 {
				t.Fatalf("got %d ops, %d recorded, want 2", len(ops), len(rec.History().Ops))
			}
			for i, op := range ops {
				if got := (want{op.Outcome, op.Code, op.TaskID, op.Repeated}); got != tc.want[i] || op.Whole != tc.atomic || op.Call != ops[0].Call {
					t.Errorf("op %d: got %+v, want %+v", i, op, tc.want[i])
				}
			}
		})
	}
}

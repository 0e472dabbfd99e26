package recorder

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

func calls(op history.Op) func(context.Context, *Caller) history.Op {
	return func(ctx context.Context, c *Caller) history.Op { return c.Call(ctx, op) }
}

// Each call uses its route, and its op has the contents of the answer.
func TestCaller_routes(t *testing.T) {
	t.Parallel()
	const task = `{"success":true,"repeated":true,"task":{"id":7,"status":"pending","claim_token":3}}`
	pending := &history.Task{ID: 7, Status: "pending", Token: 3}
	paused := true
	for _, tc := range []struct {
		do     func(ctx context.Context, c *Caller) history.Op
		asked  string
		answer string
		want   history.Op
	}{
		{func(ctx context.Context, c *Caller) history.Op {
			return c.ClaimTask(ctx, 7, wire.Claim{WorkerID: "w"})
		}, "POST /api/tasks/7/claim", task, history.Op{Kind: history.ClaimTask, TaskID: 7, Token: 3, Worker: "w", Repeated: true, Seen: pending}},
		{func(ctx context.Context, c *Caller) history.Op {
			return c.Settle(ctx, history.Release, 7, wire.Settle{ClaimToken: 3, DelayMS: 5})[0]
		}, "POST /api/tasks/7/release", task, history.Op{Kind: history.Release, TaskID: 7, Token: 3, DelayMS: 5, Repeated: true, Seen: pending}},
		{func(ctx context.Context, c *Caller) history.Op {
			return c.Settle(ctx, history.Extend, 7, wire.Settle{ClaimToken: 3, LeaseMS: 5})[0]
		}, "POST /api/tasks/7/extend", `{"success":true}`, history.Op{Kind: history.Extend, TaskID: 7, Token: 3, LeaseMS: 5}},
		{calls(history.Op{Kind: history.Retry, TaskID: 7, Token: 3}), "POST /api/tasks/7/retry", task, history.Op{Kind: history.Retry, TaskID: 7, Token: 3, Repeated: true, Seen: pending}},
		{calls(history.Op{Kind: history.Cancel, TaskID: 7}), "POST /api/tasks/7/cancel", task, history.Op{Kind: history.Cancel, TaskID: 7, Repeated: true, Seen: pending}},
		{calls(history.Op{Kind: history.Delete, TaskID: 7}), "DELETE /api/tasks/7", `{"success":true,"deleted":1}`, history.Op{Kind: history.Delete, TaskID: 7}},
		{calls(history.Op{Kind: history.Get, TaskID: 7, Stale: true, MinIndex: 4, WaitMS: 9}), "GET /api/tasks/7?consistency=stale&wait_ms=9 from 4", task, history.Op{Kind: history.Get, TaskID: 7, Stale: true, MinIndex: 4, WaitMS: 9, Repeated: true, Seen: pending}},
		{calls(history.Op{Kind: history.List, Status: "pending", TaskType: "a b", Desc: true, Limit: 2}), "GET /api/tasks?limit=2&order=desc&status=pending&task_type=a+b", `{"success":true,"tasks":[{"id":7,"status":"pending","claim_token":3},{"id":8,"task_type":"tick"}],"next_cursor":"c"}`, history.Op{
			Kind: history.List, Status: "pending", TaskType: "a b", Desc: true, Limit: 2, Listed: []history.Task{*pending}, More: true,
		}},
		{calls(history.Op{Kind: history.SetType, TaskType: "a/b", Paused: &paused}), "PATCH /api/types/a%2Fb", `{"success":true}`, history.Op{
			Kind: history.SetType, TaskType: "a/b", Paused: &paused,
		}},
		{calls(history.Op{Kind: history.Act, Action: "cancel", TaskType: "t", Status: "pending"}), "POST /api/tasks/actions", `{"success":true,"matched":2,"done":1,"more":true}`, history.Op{
			Kind: history.Act, Action: "cancel", TaskType: "t", Status: "pending", Count: 1, More: true,
		}},
		{calls(history.Op{Kind: history.ClaimFinalization, TaskID: 7, Worker: "p", LeaseMS: 2000}), "POST /api/tasks/7/finalization/claim", `{"success":true,"claimed":false,"already_claimed_by":"q","task_state":"ready"}`, history.Op{
			Kind: history.ClaimFinalization, TaskID: 7, Worker: "p", LeaseMS: 2000, Holder: "q", State: "ready",
		}},
		{calls(history.Op{Kind: history.ExtendFinalization, TaskID: 7, Worker: "p"}), "POST /api/tasks/7/finalization/extend", `{"success":true,"extended":true}`, history.Op{Kind: history.ExtendFinalization, TaskID: 7, Worker: "p", Done: true}},
		{calls(history.Op{Kind: history.ReleaseFinalization, TaskID: 7, Worker: "p"}), "POST /api/tasks/7/finalization/release", `{"success":true,"released":true}`, history.Op{
			Kind: history.ReleaseFinalization, TaskID: 7, Worker: "p", Done: true,
		}},
		{calls(history.Op{Kind: history.Finalize, TaskID: 7, Worker: "p", Goal: "failed"}), "POST /api/tasks/7/finalize", `{"success":true,"action":"completed","already_finalized":true,"task":{"id":7,"status":"pending","claim_token":3}}`, history.Op{
			Kind: history.Finalize, TaskID: 7, Worker: "p", Goal: "failed", Action: "completed", Repeated: true, Seen: pending,
		}},
	} {
		t.Run(string(tc.want.Kind), func(t *testing.T) {
			t.Parallel()
			asked := ""
			rec := New(1)
			t.Cleanup(rec.Close)
			c := rec.Caller([]string{serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked = r.Method + " " + r.URL.RequestURI()
				if from := r.Header.Get("X-Claimq-Min-Index"); from != "" {
					asked += " from " + from
				}
				fmt.Fprint(w, tc.answer)
			})}, 0)
			got := tc.do(t.Context(), c)
			tc.want.Outcome = history.OK
			if asked != tc.asked {
				t.Errorf("asked %q, want %q", asked, tc.asked)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(history.Op{}, "Call", "Return", "Process", "Node", "Types")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

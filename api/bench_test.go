package api

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// benchmarkHandler measures the handler alone, without a connection, over a node that returns p at once.
func benchmarkHandler(b *testing.B, target, body string, p nodes.Proposed) {
	benchmarkKeyed(b, target, body, p, "", nil)
}

// benchmarkKeyed is benchmarkHandler with the key of that name among the server's keys.
func benchmarkKeyed(b *testing.B, target, body string, p nodes.Proposed, name string, keys []door.Key) {
	s, node := setup(b, withKeys(keys...))
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) { return p, nil }
	method, path, _ := strings.Cut(target, " ")
	var ctx fasthttp.RequestCtx
	ctx.Init2(conntest.Nop{}, nil, true)
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(path)
	ctx.Request.Header.SetHost("127.0.0.1:7400")
	ctx.Request.Header.Set("Content-Type", "application/json")
	ctx.Request.Header.Set("User-Agent", "claimq")
	if name != "" {
		ctx.Request.Header.Set(headerAPIKey, keyText(name))
	}
	ctx.Request.SetBodyString(body)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		s.core.handle(&ctx, false)
	}
	if ctx.Response.StatusCode() >= 300 {
		b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
}

// benchTask is a claimed task with 256 bytes of params.
func benchTask() fsm.Task {
	return fsm.Task{
		ID: 123456, Type: "mail", Params: []byte(`"` + strings.Repeat("x", 254) + `"`), MaxAttempts: 3, Attempts: 1,
		Status: fsm.StatusClaimed, WorkerID: "worker-17", Token: 234567, LeaseSeq: 1, ClaimLeaseMS: 30_000, LeaseEndU: 31_000,
		ClaimedAt: nodetest.Start, CreatedAt: nodetest.Start, UpdatedAt: nodetest.Start,
	}
}

var benchStamp = fsm.Stamp{U: 1_000, T: nodetest.Start}

func BenchmarkSubmitHandler(b *testing.B) {
	task := benchTask()
	task.Status, task.WorkerID, task.Token = fsm.StatusPending, "", 0
	benchmarkHandler(b, "POST /api/tasks", `{"task_type":"mail","params":`+string(task.Params)+`}`,
		nodes.Proposed{Index: 99, Stamp: benchStamp, Result: fsm.Result{Submitted: []fsm.Submitted{{Task: &task, Created: true}}}})
}

func BenchmarkClaimHandler(b *testing.B) {
	task := benchTask()
	benchmarkHandler(b, "POST /api/tasks/claim", `{"worker_id":"worker-17","task_types":["mail"],"lease_ms":30000,"claim_request_id":"0193a4b5-c6d7-7e8f-9a0b-1c2d3e4f5061"}`,
		nodes.Proposed{Index: 99, Stamp: benchStamp, Result: fsm.Result{Claims: []fsm.Claim{{Task: &task, Token: 234567, Live: true}}}})
}

func BenchmarkCompleteHandler(b *testing.B) {
	task := benchTask()
	task.Status = fsm.StatusCompleted
	benchmarkHandler(b, "POST /api/tasks/123456/complete", `{"worker_id":"worker-17","claim_token":234567,"result":{"ok":true}}`,
		nodes.Proposed{Index: 99, Stamp: benchStamp, Result: fsm.Result{Task: &task}})
}

func BenchmarkSubmitManyHandler(b *testing.B) {
	task := benchTask()
	item := `{"task_type":"mail","params":` + string(task.Params) + `}`
	benchmarkHandler(b, "POST /api/tasks", `{"tasks":[`+strings.TrimSuffix(strings.Repeat(item+",", 100), ",")+`]}`,
		nodes.Proposed{Index: 99, Stamp: benchStamp, Result: fsm.Result{Submitted: func() []fsm.Submitted {
			out := make([]fsm.Submitted, 100)
			for i := range out {
				out[i] = fsm.Submitted{Task: &task, Created: true}
			}
			return out
		}()}})
}

// BenchmarkKeyedSubmitHandler is BenchmarkSubmitHandler with a key, with and without a rate, on a server with a
// thousand keys.
func BenchmarkKeyedSubmitHandler(b *testing.B) {
	task := benchTask()
	task.Status, task.WorkerID, task.Token = fsm.StatusPending, "", 0
	p := nodes.Proposed{Index: 99, Stamp: benchStamp, Result: fsm.Result{Submitted: []fsm.Submitted{{Task: &task, Created: true}}}}
	keys := []door.Key{testKey("producer", "free"), limited(testKey("producer", "rated"), door.KeyRateMax)}
	for i := range 998 {
		keys = append(keys, testKey("producer", "other-"+strconv.Itoa(i)))
	}
	for _, name := range []string{"free", "rated"} {
		b.Run(name, func(b *testing.B) {
			benchmarkKeyed(b, "POST /api/tasks", `{"task_type":"mail","params":`+string(task.Params)+`}`, p, name, keys)
		})
	}
}

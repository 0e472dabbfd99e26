package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/claimq/claimq/client"
)

// stepsClient returns a client of a server that stands in for a cluster and knows one task with steps. The caller
// calls the returned function.
func stepsClient() (*client.Client, func()) {
	mux := http.NewServeMux()
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	mux.HandleFunc("POST /api/tasks", answer(`{"success":true,"created":true,"task":{"id":17,"status":"running","steps":[`+
		`{"step":"fetch","id":18,"status":"pending","depends_on":[]},{"step":"mail","id":19,"status":"blocked","depends_on":["fetch"]},`+
		`{"step":"shop","id":20,"status":"blocked","depends_on":["fetch"]},{"step":"merge","id":21,"status":"blocked","depends_on":["mail","shop"]}]}}`))
	mux.HandleFunc("POST /api/tasks/claim", answer(`{"success":true,"task":{"id":21,"status":"claimed","parent_id":17,"step":"merge","depends_on":["mail","shop"],`+
		`"worker_id":"w1","claim_token":104,"lease_remaining_ms":30000}}`))
	mux.HandleFunc("POST /api/tasks/21/complete", answer(`{"success":true,"task":{"id":21,"status":"completed"}}`))
	mux.HandleFunc("POST /api/tasks/21/steps", answer(`{"success":true,"parent_id":17,"added":2,"steps":[{"step":"page-1","id":22,"status":"pending","depends_on":[]},{"step":"bind","id":23,"status":"blocked","depends_on":["page-1","plan"]}]}`))
	mux.HandleFunc("GET /api/tasks", answer(`{"success":true,"next_cursor":null,"tasks":[{"id":18,"step":"fetch","result":null},{"id":19,"step":"mail","result":30},{"id":20,"step":"shop","result":12}]}`))
	mux.HandleFunc("GET /api/tasks/17", answer(`{"success":true,"task":{"id":17,"status":"running","steps":[{"step":"fetch","id":18,"status":"completed","depends_on":[]},`+
		`{"step":"mail","id":19,"status":"failed","depends_on":["fetch"],"error":"no route"},{"step":"shop","id":20,"status":"completed","depends_on":["fetch"]}],"finalize":"claim"}}`))
	mux.HandleFunc("POST /api/tasks/17/finalization/claim", answer(`{"success":true,"claimed":true,"already_claimed_by":"p1","task_state":"evaluating_results","message":"Successfully claimed for finalization","claim_token":7}`))
	mux.HandleFunc("POST /api/tasks/17/finalize", answer(`{"success":true,"action":"failed","already_finalized":false,"task":{"id":17,"status":"failed","worker_id":"p1","error":"1 of 3 steps failed"}}`))
	server := httptest.NewServer(mux)
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	return c, func() {
		c.Close()
		server.Close()
	}
}

// newTask is client.NewTask for parameters that can always be encoded.
func newTask(taskType string, params any) client.Task {
	task, err := client.NewTask(taskType, params)
	if err != nil {
		panic(err)
	}
	return task
}

// One step, then two in parallel, and one that combines their results.
func ExampleClient_SubmitWorkflow() {
	c, done := stepsClient()
	defer done()

	report := client.Task{TaskType: "report", IdempotencyKey: "report-2029-12"}
	report.AddStep("fetch", newTask("fetch", map[string]int{"month": 12}))
	report.AddStep("mail", newTask("sum", "mail"), "fetch")
	report.AddStep("shop", newTask("sum", "shop"), "fetch")
	report.AddStep("merge", newTask("merge", "sum of sums"), "mail", "shop")
	w, err := c.SubmitWorkflow(context.Background(), report)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("task", w.ID, "ends with step", w.Steps["merge"])
	// Output: task 17 ends with step 21
}

// A step that runs adds steps to its task: page-1, and bind, which waits for it and for plan.
func ExampleClaim_AddSteps() {
	c, done := stepsClient()
	defer done()
	ctx := context.Background()

	claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1", Types: []string{"plan"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := claim.AddSteps(ctx,
		client.Step{Name: "page-1", Task: newTask("page", 1)},
		client.Step{Name: "bind", Task: newTask("bind", "book"), DependsOn: []string{"page-1", "plan"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("page-1 is task", ids["page-1"])
	// Output: page-1 is task 22
}

// A step reads the results of the steps that it depends on.
func ExampleClient_DependencyResults() {
	c, done := stepsClient()
	defer done()
	ctx := context.Background()

	claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1", Types: []string{"merge"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	results, err := c.DependencyResults(ctx, claim.Task)
	if err != nil {
		fmt.Println(err)
		return
	}
	sum := 0
	for _, result := range results {
		var part int
		if err := json.Unmarshal(result, &part); err != nil {
			fmt.Println(claim.Fail(ctx, client.Permanent(err)))
			return
		}
		sum += part
	}
	fmt.Println(sum, claim.Complete(ctx, fmt.Append(nil, sum)))
	// Output: 42 <nil>
}

// One of several processors looks at the steps and decides how their task ends.
func ExampleFinalizationClaimer() {
	c, done := stepsClient()
	defer done()
	ctx := context.Background()

	p := client.NewFinalizationClaimer(c, "p1")
	claim, err := p.ClaimTask(ctx, "17", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	if !claim.Claimed || claim.State != client.FinalizationEvaluatingResults {
		fmt.Println(claim.Message, claim.HeldBy) // later, or another's
		return
	}
	task, err := c.Get(ctx, "17")
	if err != nil {
		fmt.Println(err)
		return
	}
	failed := 0
	for _, step := range task.Steps {
		if step.Task.Status != client.StatusCompleted {
			failed++
		}
	}
	end := client.FinalizeRequest{Outcome: client.StatusCompleted}
	if failed > 0 {
		end = client.FinalizeRequest{Outcome: client.StatusFailed, Error: fmt.Sprintf("%d of %d steps failed", failed, len(task.Steps))}
	}
	finalized, err := p.Finalize(ctx, "17", end)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(finalized.Action, finalized.AlreadyFinalized)
	// Output: failed false
}

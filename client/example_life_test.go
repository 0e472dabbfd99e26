package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// lifeServer stands in for a cluster and answers the calls of these examples.
func lifeServer() *httptest.Server {
	mux := http.NewServeMux()
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	claimed := func(id int) string {
		return fmt.Sprintf(`{"id":%d,"task_type":"mail","params":{"to":"ada"},"status":"claimed","worker_id":"w1","claim_token":%d,"lease_remaining_ms":30000}`, id, id+100)
	}
	mux.HandleFunc("POST /api/tasks", answer(`{"success":true,"created":true,"task":{"id":17,"status":"scheduled","run_at":"2030-01-02T08:00:00.000Z"}}`))
	mux.HandleFunc("POST /api/tasks/claim", answer(`{"success":true,"task":`+claimed(17)+`}`))
	mux.HandleFunc("POST /api/tasks/17/complete", answer(`{"success":true,"task":{"id":17,"status":"completed"},"submitted":[{"id":20,"created":true}],"claimed":{"task":`+claimed(18)+`}}`))
	mux.HandleFunc("POST /api/tasks/18/complete", answer(`{"success":true,"task":{"id":18,"status":"completed"},"claimed":{"task":null}}`))
	mux.HandleFunc("POST /api/tasks/17/fail", answer(`{"success":true,"task":{"id":17,"status":"failed"}}`))
	mux.HandleFunc("POST /api/tasks/17/extend", answer(`{"success":true,"lease_remaining_ms":30000,"cancel_requested":true}`))
	mux.HandleFunc("POST /api/tasks/17/cancel", answer(`{"success":true,"task":{"id":17,"status":"claimed","cancel_requested":true}}`))
	mux.HandleFunc("PATCH /api/tasks/17", answer(`{"success":true,"task":{"id":17,"status":"pending","priority":100}}`))
	mux.HandleFunc("PATCH /api/types/mail", answer(`{"success":true,"type":{"task_type":"mail","counts":{"pending":3},"paused":false,"max_claimed":10,"rate_limit":2.5}}`))
	mux.HandleFunc("POST /api/batch", answer(`{"success":true,"failed":0,"results":[{"success":true,"task":{"id":17,"status":"completed"}},{"success":true,"created":true,"task":{"id":19,"status":"pending"}}]}`))
	return httptest.NewServer(mux)
}

// lifeClient returns a client of a lifeServer. The caller calls the returned function.
func lifeClient() (*client.Client, func()) {
	server := lifeServer()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	return c, func() {
		c.Close()
		server.Close()
	}
}

func claim17(c *client.Client) *client.Claim {
	claim, err := c.ClaimNext(context.Background(), client.ClaimRequest{WorkerID: "w1"})
	if err != nil {
		panic(err)
	}
	return claim
}

// All settings of a task.
func ExampleTask() {
	c, done := lifeClient()
	defer done()

	task, err := client.NewTask("report", map[string]int{"month": 12})
	if err != nil {
		fmt.Println(err)
		return
	}
	task.IdempotencyKey = "report-2029-12"
	task.Unique = client.UniqueActive // the key is free again when the task has ended
	task.RunAt = time.Date(2030, 1, 2, 8, 0, 0, 0, time.UTC)
	task.ExpiresAt = task.RunAt.Add(24 * time.Hour) // it fails if it has not been claimed by then
	task.Lease = 10 * time.Minute
	task.Backoff = &client.Backoff{Initial: time.Second, Max: time.Hour, Jitter: 0.2}
	task.Retention = 90 * 24 * time.Hour
	task.Labels = map[string]string{"customer": "7"}
	task.Group = "customer-7" // one report per customer at a time
	fmt.Println(c.Submit(context.Background(), task))
	// Output: 17 <nil>
}

// A worker waits for its first task, and then gets each next one with a single request.
func ExampleClaim_CompleteAndClaim() {
	c, done := lifeClient()
	defer done()
	ctx := context.Background()

	next := client.ClaimRequest{WorkerID: "w1", Types: []string{"mail"}, Wait: time.Minute}
	claim, err := c.ClaimNext(ctx, next)
	for err == nil {
		fmt.Println("working on", claim.Task.ID)
		claim, err = claim.CompleteAndClaim(ctx, []byte(`"sent"`), next)
	}
	if errors.Is(err, client.ErrNoTasks) { // the last task was completed all the same
		fmt.Println("wait again")
	}
	// Output:
	// working on 17
	// working on 18
	// wait again
}

// Follow-ups are submitted together with the completion: both are done, or neither.
func ExampleClaim_Complete() {
	c, done := lifeClient()
	defer done()
	claim := claim17(c)

	invoice, err := client.NewTask("invoice", map[string]string{"order": claim.Task.ID})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(claim.Complete(context.Background(), []byte(`{"sent":true}`), invoice))
	// Output: <nil>
}

func ExampleClaim_Fail() {
	c, done := lifeClient()
	defer done()
	claim := claim17(c)

	deliver := func() error { return client.Permanent(errors.New("no such address")) }
	if err := deliver(); err != nil {
		// Permanent means no further attempt. client.RetryAfter(time.Hour, err) would set the time of the next one;
		// with any other error the backoff does.
		fmt.Println(claim.Fail(context.Background(), err))
	}
	// Output: <nil>
}

func ExampleClaim_Extend() {
	c, done := lifeClient()
	defer done()
	claim := claim17(c)

	cancelRequested, err := claim.Extend(context.Background(), time.Minute, map[string]int{"done": 3, "of": 10})
	fmt.Println(cancelRequested, err)
	// Output: true <nil>
}

func ExampleClient_Cancel() {
	c, done := lifeClient()
	defer done()

	task, err := c.Cancel(context.Background(), "17")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Status, task.CancelRequested) // the worker learns of it at its next extend
	// Output: claimed true
}

func ExampleClient_Patch() {
	c, done := lifeClient()
	defer done()

	task, err := c.Patch(context.Background(), "17", client.Patch{Priority: new(100), RunAt: new(time.Time{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Status, task.Priority)
	// Output: pending 100
}

// Workers get no tasks of a paused type; submits continue. The key needs the role operator.
func ExampleClient_SetType_pause() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		if _, err := c.SetType(ctx, "mail", client.TypeSettings{Paused: new(true)}); err != nil {
			return err
		}
		id, err := c.Submit(ctx, client.Task{TaskType: "mail", Payload: []byte(`{}`)})
		if err != nil {
			return err
		}
		_, err = c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1", Types: []string{"mail"}})
		fmt.Println("paused:", errors.Is(err, client.ErrNoTasks))
		if _, err := c.SetType(ctx, "mail", client.TypeSettings{Paused: new(false)}); err != nil {
			return err
		}
		claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1", Types: []string{"mail"}})
		if err != nil {
			return err
		}
		fmt.Println("resumed:", claim.Task.ID == id)
		return nil
	})
	// Output:
	// paused: true
	// resumed: true
}

func ExampleClient_SetType() {
	c, done := lifeClient()
	defer done()

	mail, err := c.SetType(context.Background(), "mail", client.TypeSettings{MaxClaimed: new(10), RateLimit: new(2.5)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*mail.Settings.MaxClaimed, *mail.Settings.RateLimit, mail.Counts[client.StatusPending])
	// Output: 10 2.5 3
}

// Several operations at once: all are done, or none.
func ExampleClient_Atomically() {
	c, done := lifeClient()
	defer done()
	claim := claim17(c)

	results, err := c.Atomically(context.Background(),
		claim.CompleteOp([]byte(`"sent"`)),
		client.SubmitOp(client.Task{TaskType: "mail", Payload: []byte(`{"to":"bob"}`)}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Task.ID, r.Task.Status)
	}
	// Output:
	// 17 completed
	// 19 pending
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// inMemory runs an example with a client of an in-memory server.
func inMemory(run func(context.Context, *client.Client, *clienttest.Server) error) {
	var t inMemoryTest
	err := run(context.Background(), clientOf(&t), t.server)
	for _, f := range t.cleanups {
		f()
	}
	if err != nil {
		fmt.Println(err)
	}
}

func clientOf(t *inMemoryTest) *client.Client {
	t.server = clienttest.New(t)
	return t.server.Client()
}

// inMemoryTest is the part of a testing.TB that the server needs.
type inMemoryTest struct {
	server   *clienttest.Server
	cleanups []func()
}

func (t *inMemoryTest) Helper()                           {}
func (t *inMemoryTest) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *inMemoryTest) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (t *inMemoryTest) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func ExampleClient_Wait() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		id, err := c.Submit(ctx, client.Task{TaskType: "sum", Payload: []byte(`[1,2]`)})
		if err != nil {
			return err
		}
		go func() { // a worker, somewhere
			if claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1"}); err == nil {
				_ = claim.Complete(ctx, []byte(`3`))
			}
		}()
		task, err := c.Wait(ctx, id) // ctx bounds it
		if err != nil {
			return err
		}
		fmt.Println(task.Status, string(task.Result))
		return nil
	})
	// Output: completed 3
}

// The claim is extended while the work continues, and the work stops when the claim is lost.
func ExampleClaim_KeepAlive() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		if _, err := c.Submit(ctx, client.Task{Payload: []byte(`1`)}); err != nil {
			return err
		}
		claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1", Lease: 30 * time.Second})
		if err != nil {
			return err
		}
		working, stop := claim.KeepAlive(ctx)
		defer stop()
		err = slowly(working, claim.Task.Payload, claim.Token)
		if errors.Is(context.Cause(working), client.ErrLeaseLost) {
			return nil // another worker may have the task: write nothing more
		}
		if err != nil {
			return claim.Fail(ctx, err)
		}
		return claim.Complete(ctx, nil)
	})
	// Output: working on 1 with token 1
}

func slowly(_ context.Context, payload []byte, token int64) error {
	fmt.Printf("working on %s with token %d\n", payload, token)
	return nil
}

func ExampleClaim_Release() {
	inMemory(func(ctx context.Context, c *client.Client, s *clienttest.Server) error {
		id, err := c.Submit(ctx, client.Task{Payload: []byte(`1`)})
		if err != nil {
			return err
		}
		claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1"})
		if err != nil {
			return err
		}
		if err := claim.Release(ctx, time.Minute); err != nil { // not now
			return err
		}
		task, err := c.Get(ctx, id)
		if err != nil {
			return err
		}
		fmt.Println(task.Status, "for", task.RunAt.Sub(s.Now()), "after", task.Attempts, "attempts")
		return nil
	})
	// Output: scheduled for 1m0s after 0 attempts
}

// Permanent for errors that another attempt cannot fix, RetryAfter for those that need a longer wait than the
// backoff.
func ExamplePermanent() {
	inMemory(func(ctx context.Context, c *client.Client, s *clienttest.Server) error {
		for _, cause := range []error{
			client.Permanent(errors.New("no such address")),
			client.RetryAfter(time.Hour, errors.New("mailbox full")),
		} {
			id, err := c.Submit(ctx, client.Task{Payload: []byte(`1`), MaxAttempts: 3})
			if err != nil {
				return err
			}
			claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1"})
			if err != nil {
				return err
			}
			if err := claim.Fail(ctx, fmt.Errorf("send: %w", cause)); err != nil {
				return err
			}
			task, err := c.Get(ctx, id)
			if err != nil {
				return err
			}
			fmt.Println(task.Status, task.Error)
		}
		return nil
	})
	// Output:
	// failed send: no such address
	// scheduled send: mailbox full
}

func ExampleClient_ClaimMany() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		for _, n := range []string{`1`, `2`, `3`} {
			if _, err := c.Submit(ctx, client.Task{Payload: []byte(n)}); err != nil {
				return err
			}
		}
		claims, err := c.ClaimMany(ctx, client.ClaimRequest{WorkerID: "w1"}, 2)
		if err != nil {
			return err
		}
		ops := make([]client.Op, len(claims))
		for i, claim := range claims {
			ops[i] = claim.CompleteOp(claim.Task.Payload)
		}
		results, err := c.Batch(ctx, ops...) // one request for all
		for _, r := range results {
			fmt.Println(r.Task.ID, r.Task.Status)
		}
		return err
	})
	// Output:
	// 1 completed
	// 2 completed
}

// All failed tasks of a type get three more attempts.
func ExampleClient_Act() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		if _, err := c.Submit(ctx, client.Task{TaskType: "mail", Payload: []byte(`1`), MaxAttempts: 1}); err != nil {
			return err
		}
		claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1"})
		if err != nil {
			return err
		}
		if err := claim.Fail(ctx, errors.New("the mail server is down")); err != nil {
			return err
		}
		again := client.Action{Action: client.ActionRetry, Filter: client.Filter{TaskType: "mail", Status: client.StatusFailed}, AddAttempts: 3}
		acted, err := c.Act(ctx, again)
		fmt.Printf("%d of %d\n", acted.Done, acted.Matched)
		return err
	})
	// Output: 1 of 1
}

func ExampleClient_SetSchedule() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		nightly := client.Schedule{
			Name: "nightly", Cron: "30 2 * * *", Timezone: "Europe/Prague",
			Task: client.Task{TaskType: "report", Payload: []byte(`{"of":"yesterday"}`)},
		}
		set, err := c.SetSchedule(ctx, nightly) // setting it again changes nothing
		if err != nil {
			return err
		}
		fmt.Println(set.NextRunAt.UTC())
		return nil
	})
	// Output: 2026-01-01 01:30:00 +0000 UTC
}

func ExampleClient_Why() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		paused := true
		if _, err := c.SetType(ctx, "mail", client.TypeSettings{Paused: &paused}); err != nil {
			return err
		}
		id, err := c.Submit(ctx, client.Task{TaskType: "mail", Payload: []byte(`1`)})
		if err != nil {
			return err
		}
		why, err := c.Why(ctx, id)
		if err != nil {
			return err
		}
		fmt.Println(why.Reasons[0].Code)
		return nil
	})
	// Output: type_paused
}

// Events ends at the present end of the trail; Follow continues as it grows.
func ExampleClient_Events() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		id, err := c.Submit(ctx, client.Task{TaskType: "mail", Payload: []byte(`1`)})
		if err != nil {
			return err
		}
		if _, err := c.Cancel(ctx, id); err != nil {
			return err
		}
		for event, err := range c.Events(ctx, client.EventFilter{TaskType: "mail"}) {
			if err != nil {
				return err
			}
			fmt.Println(event.TaskID, event.Event)
		}
		return nil
	})
	// Output:
	// 1 submitted
	// 1 cancelled
}

// A refusal matches a sentinel, and is an Error with the details.
func ExampleError() {
	inMemory(func(ctx context.Context, c *client.Client, _ *clienttest.Server) error {
		_, err := c.Get(ctx, "4711")
		fmt.Println(errors.Is(err, client.ErrTaskNotFound))
		var refusal *client.Error
		if errors.As(err, &refusal) {
			fmt.Println(refusal.Status, refusal.Code)
			fmt.Println(refusal.Advice)
		}
		return nil
	})
	// Output:
	// true
	// 404 task_not_found
	// Check the id or the key: there is no such task, or it was deleted
}

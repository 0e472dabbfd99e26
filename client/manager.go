package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/remember"
	"github.com/claimq/claimq/internal/repeat"
)

// Get returns the task. Errors: ErrTaskNotFound, ...
func (c *Client) Get(ctx context.Context, taskID string) (*Task, error) {
	id, err := parseID(taskID)
	if err != nil {
		return nil, fmt.Errorf("get task: %w", err)
	}
	t, err := c.taskCall(ctx, Request{Method: http.MethodGet, Path: "/api/tasks/" + strconv.FormatUint(id, 10)})
	if err != nil {
		return nil, fmt.Errorf("get task %d: %w", id, err)
	}
	return t, nil
}

// GetByIdempotencyKey returns the task that has the key. Errors: ErrTaskNotFound, ...
func (c *Client) GetByIdempotencyKey(ctx context.Context, key string) (*Task, error) {
	if key == "" {
		return nil, fmt.Errorf("get task by key: %w: the key is empty", ErrTaskNotFound)
	}
	t, err := c.taskCall(ctx, Request{Method: http.MethodGet, Path: "/api/tasks/by-key/" + url.PathEscape(key)})
	if err != nil {
		return nil, fmt.Errorf("get task by key %q: %w", key, err)
	}
	return t, nil
}

// Claim claims the task for the worker, or extends the claim that the worker has on it, and remembers the claim for
// Complete and Fail. It is not extended automatically. The client remembers its last 65,536 claims. Errors:
// ErrTaskNotFound, ErrTaskAlreadyClaimed, ErrTaskNotClaimable, ErrInvalidWorkerID, the error of the task's end, ...
func (c *Client) Claim(ctx context.Context, taskID, workerID string) error {
	id, err := parseID(taskID)
	if err != nil {
		return fmt.Errorf("claim task: %w", err)
	}
	if _, err := c.claimTasks(ctx, taskPath(id, "claim"), ClaimRequest{WorkerID: workerID}, 0); err != nil {
		return fmt.Errorf("claim task %d: %w", id, err)
	}
	return nil
}

// Complete completes the task with the last claim of it that this client made. Completing twice with the same claim
// returns nil. Errors: ErrTaskNotFound; the error of the task's end if another claim ended it; ErrTaskNotClaimed or
// ErrWrongWorker if this client has no claim; ErrStaleClaim if its claim is over.
func (c *Client) Complete(ctx context.Context, taskID string, result []byte) error {
	return c.settleByID(ctx, taskID, repeat.OpComplete, func(s wire.Settle) ([]byte, error) {
		return completion(s, result, nil)
	})
}

// Fail ends the attempt with the last claim of the task that this client made. If attempts are left, the task becomes
// pending again, after its backoff if it has one; otherwise it has failed. Permanent and RetryAfter work as with
// Claim.Fail. Errors: as Complete.
func (c *Client) Fail(ctx context.Context, taskID string, err error) error {
	return c.settleByID(ctx, taskID, repeat.OpFail, func(s wire.Settle) ([]byte, error) { return failure(s, err) })
}

func (c *Client) settleByID(ctx context.Context, taskID string, kind repeat.Op, body func(wire.Settle) ([]byte, error)) error {
	id, err := parseID(taskID)
	if err != nil {
		return fmt.Errorf("%s task: %w", kind, err)
	}
	claim, ok := c.claims.Get(id)
	if !ok {
		// The server says why this is not possible. No worker has this name, so the call cannot change anything.
		claim = remember.Claim{WorkerID: "nobody-" + rand.Text()}
	}
	b, err := body(wire.Settle{WorkerID: claim.WorkerID, ClaimToken: claim.Token})
	if err == nil {
		_, _, err = c.op(ctx, c.lanes.settles, opCall{kind: kind, id: id, body: b})
	}
	if err != nil {
		return fmt.Errorf("%s task %d: %w", kind, id, err)
	}
	return nil
}

// Retry makes a failed, cancelled, scheduled or claimed task pending if it has attempts left. For a task with steps
// it retries all steps that failed or were cancelled, or none if one of them has no attempt left. If a parent with
// OnStepFailure continue has completed or failed, the retry of one of its steps makes it run again. Retry is not repeated
// when its answer is lost, because the repeat could take the task from a worker that has claimed it meanwhile.
// Errors: ErrTaskNotFound, ErrTaskCompleted, ErrMaxAttemptsReached, ErrOutcomeUnknown; ErrKeyTaken if the task is
// unique while active and another has its key.
func (c *Client) Retry(ctx context.Context, taskID string) error {
	return c.RetryAdding(ctx, taskID, 0)
}

// RetryAdding is Retry, but first adds attempts to the task's limit if it has one; for a task with steps, to the
// limit of each step that it retries.
func (c *Client) RetryAdding(ctx context.Context, taskID string, attempts int) error {
	id, err := parseID(taskID)
	if err != nil {
		return fmt.Errorf("retry task: %w", err)
	}
	if attempts < 0 || attempts > math.MaxInt32 {
		return fmt.Errorf("retry task %d: %d attempts cannot be added", id, attempts)
	}
	body, err := json.Marshal(wire.Retry{AddAttempts: int32(attempts)})
	if err == nil {
		_, err = c.call(ctx, Request{
			Method: http.MethodPost, Path: taskPath(id, "retry"), Body: body, Repeatable: repeat.OpRetry.Safe(false),
		})
	}
	if err != nil {
		return fmt.Errorf("retry task %d: %w", id, err)
	}
	return nil
}

// Delete removes a task that has ended, and frees its key. A task with steps is removed together with them; a step
// cannot be removed alone. If an answer was lost and the repeat finds no task, Delete has succeeded. Errors:
// ErrTaskNotFound, ErrTaskNotTerminal, ...
func (c *Client) Delete(ctx context.Context, taskID string) error {
	id, err := parseID(taskID)
	if err != nil {
		return fmt.Errorf("delete task: %w", err)
	}
	// Ids are never reused, so a repeat cannot hit another task.
	a, err := c.call(ctx, Request{Method: http.MethodDelete, Path: "/api/tasks/" + strconv.FormatUint(id, 10), Repeatable: true})
	if err != nil && !(a.repeats.Doubted && errors.Is(err, ErrTaskNotFound)) {
		return fmt.Errorf("delete task %d: %w", id, err)
	}
	return nil
}

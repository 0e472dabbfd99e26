package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/claimq/claimq/internal/repeat"
)

// Cancel ends a task that is not claimed as cancelled. Of a claimed one it asks
// the worker to stop, which learns of it at its next extend; its Complete still
// counts. A task with steps is cancelled with all of its steps, and ends when none
// of them is claimed any more. Cancel returns the task as it is then: StatusCancelled, or with
// CancelRequested. Cancelling twice is no error. Errors: ErrTaskNotFound,
// ErrTaskCompleted, ErrTaskFailed, ...
func (c *Client) Cancel(ctx context.Context, taskID string) (*Task, error) {
	id, err := parseID(taskID)
	if err != nil {
		return nil, fmt.Errorf("cancel task: %w", err)
	}
	t, err := c.taskCall(ctx, Request{
		Method: http.MethodPost, Path: taskPath(id, "cancel"), Body: []byte("{}"), Repeatable: repeat.OpCancel.Safe(false),
	})
	if err != nil {
		return nil, fmt.Errorf("cancel task %d: %w", id, err)
	}
	return t, nil
}

// Patch says what of a task to change. nil leaves a field as it is.
type Patch struct {
	Priority *int       // int32
	RunAt    *time.Time // the zero time: claimable at once
	// Labels replace all that the task has. An empty map removes them.
	Labels map[string]string
}

// Patch changes a task that is not claimed and has not ended, and returns it as
// it is then. When its answer is lost it is repeated with the same values.
// Errors: ErrTaskNotFound, ErrTaskAlreadyClaimed, what the task has ended as, ...
func (c *Client) Patch(ctx context.Context, taskID string, p Patch) (*Task, error) {
	id, err := parseID(taskID)
	if err != nil {
		return nil, fmt.Errorf("change task: %w", err)
	}
	body, err := p.encode()
	if err != nil {
		return nil, fmt.Errorf("change task %d: %w", id, err)
	}
	t, err := c.taskCall(ctx, Request{
		Method: http.MethodPatch, Path: "/api/tasks/" + strconv.FormatUint(id, 10), Body: body, Repeatable: repeat.OpPatch.Safe(false),
	})
	if err != nil {
		return nil, fmt.Errorf("change task %d: %w", id, err)
	}
	return t, nil
}

// encode is a map: what is not there stays as it is, and null clears.
func (p *Patch) encode() ([]byte, error) {
	fields := map[string]any{}
	if p.Priority != nil {
		if *p.Priority < math.MinInt32 || *p.Priority > math.MaxInt32 {
			return nil, fmt.Errorf("priority %d is not an int32", *p.Priority)
		}
		fields["priority"] = *p.Priority
	}
	if p.RunAt != nil {
		fields["run_at"] = wireTime(*p.RunAt)
	}
	if p.Labels != nil {
		if err := checkLabels(p.Labels); err != nil {
			return nil, err
		}
		fields["labels"] = p.Labels
	}
	return json.Marshal(fields)
}

// taskCall makes a call that answers with the task.
func (c *Client) taskCall(ctx context.Context, r Request) (*Task, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	decoded, err := decodeAnswer(a.body)
	if err != nil {
		return nil, err
	}
	if decoded.Task == nil {
		return nil, errors.New("the answer has no task")
	}
	return fromWire(decoded.Task), nil
}

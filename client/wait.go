package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claimq/claimq/internal/repeat"
)

// Wait waits until the task has ended, and returns it as it is then. It waits
// for as long as ctx lets it, in requests of at most 25 s, and without a deadline
// for as long as it takes; ctx's end is its error. Errors: ErrTaskNotFound, also
// when the task is removed meanwhile; ErrNoLeader, ... when the cluster does not
// answer for as long as a call may take.
func (c *Client) Wait(ctx context.Context, id string) (*Task, error) {
	number, err := parseID(id)
	if err != nil {
		return nil, fmt.Errorf("wait for task: %w", err)
	}
	path := "/api/tasks/" + formatID(number)
	until := waitUntil(ctx, waitMax)
	for {
		asked := time.Now()
		wait := max(0, min(time.Until(until), repeat.PollMax))
		a, err := c.call(ctx, Request{
			Method: http.MethodGet, Path: path + "?wait_ms=" + strconv.FormatInt(milliseconds(wait), 10), Wait: wait,
		})
		if err != nil {
			return nil, fmt.Errorf("wait for task %s: %w", id, err)
		}
		decoded, err := decodeAnswer(a.body)
		if err == nil && decoded.Task == nil {
			err = errors.New("the answer has no task")
		}
		if err != nil {
			return nil, fmt.Errorf("wait for task %s: %w", id, err)
		}
		if t := fromWire(decoded.Task); t.Status.Ended() {
			return t, nil
		}
		if err := waitFor(ctx, emptyPause-time.Since(asked)); err != nil {
			return nil, fmt.Errorf("wait for task %s: %w", id, err)
		}
	}
}

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Why explains why a task is not running. A task that is claimed, running or has ended has no reasons.
type Why struct {
	Reasons []Reason
	// Ahead is the number of claimable tasks of its type and share key that will be claimed before it; -1 if it cannot
	// be claimed itself.
	Ahead int64
}

// Reason is one reason. Code and Message are always set; the other fields depend on Code.
type Reason struct {
	// Code is type_paused, limit_reached, rate_limited, share_paused, share_limit_reached, share_rate_limited, scheduled,
	// blocked, group_behind, no_worker or queued. Later versions may add others.
	Code     string
	Message  string
	ShareKey string    // share_paused, share_limit_reached, share_rate_limited: the task's
	Holders  []Holder  // limit_reached, share_limit_reached: the first 100 claims of the type or of the share key
	At       time.Time // rate_limited, share_rate_limited, scheduled: when that ends
	Steps    []string  // blocked: the names of at most 100 steps that it waits for
	TaskID   string    // group_behind: the head of its group
	// LastAskedAt is for no_worker: when a worker last asked for such a task; zero: not since this leader took over.
	LastAskedAt time.Time
}

// Holder is a claim of a task.
type Holder struct{ TaskID, WorkerID string }

// Why explains why the task is not running, as of one index of the log. Errors: ErrTaskNotFound, ...
func (c *Client) Why(ctx context.Context, id string) (*Why, error) {
	number, err := parseID(id)
	if err != nil {
		return nil, fmt.Errorf("ask why: %w", err)
	}
	var w wire.Why
	if err := c.get(ctx, taskPath(number, "why"), &w); err != nil {
		return nil, fmt.Errorf("ask why task %s waits: %w", id, err)
	}
	why := &Why{Ahead: -1, Reasons: make([]Reason, len(w.Reasons))}
	if w.Ahead != nil {
		why.Ahead = *w.Ahead
	}
	for i := range w.Reasons {
		why.Reasons[i] = reasonFromWire(&w.Reasons[i])
	}
	return why, nil
}

func reasonFromWire(w *wire.Reason) Reason {
	r := Reason{Code: w.Code, Message: w.Message, ShareKey: w.ShareKey, Steps: w.Steps, LastAskedAt: timeOf(w.LastAskedAt)}
	r.At = timeOf(w.At)
	if w.RunAt != nil {
		r.At = *w.RunAt
	}
	if w.ID != 0 {
		r.TaskID = formatID(w.ID)
	}
	for _, h := range w.Holders {
		r.Holders = append(r.Holders, Holder{TaskID: formatID(h.TaskID), WorkerID: h.WorkerID})
	}
	return r
}

// get makes a GET and decodes its answer into v.
func (c *Client) get(ctx context.Context, path string, v any) error {
	a, err := c.call(ctx, Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

// withQuery appends the query to the path, if there is one.
func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// timeOf returns *t, or the zero time for nil.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func formatID(id uint64) string { return strconv.FormatUint(id, 10) }

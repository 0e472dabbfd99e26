package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// The actions that Act does with many tasks.
const (
	ActionRetry  = "retry"
	ActionCancel = "cancel"
	ActionDelete = "delete"
)

// Action is something to do with all tasks that a filter selects.
type Action struct {
	Action string // ActionRetry, ActionCancel or ActionDelete
	// Filter selects the tasks; NewestFirst and LastEndedFirst are not used. The zero
	// Filter is refused without All.
	Filter      Filter
	All         bool // all tasks, without a Filter
	AddAttempts int  // with ActionRetry: added to a limited MaxAttempts first
	DryRun      bool // only count
	// Expect, if not nil, is how many tasks the filter has to select: else nothing
	// is done, and the error is ErrCountMismatch.
	Expect *int64
}

// Acted is what became of an Action.
type Acted struct {
	Matched int64 // tasks that the filter selected
	Done    int64 // tasks that it was done with; the others refused it
}

// Act does something with many tasks, in steps: it is not atomic. A task that the
// filter selects no more when its step comes is left alone. It goes on until all
// are done, or ctx ends. Errors: ErrCountMismatch; ErrOutcomeUnknown when an
// answer is lost, for then some may be done: doing it again without Expect does
// the rest.
func (c *Client) Act(ctx context.Context, a Action) (Acted, error) {
	filter, err := a.Filter.wire()
	if err != nil {
		return Acted{}, fmt.Errorf("%s tasks: %w", a.Action, err)
	}
	w := wire.Action{Action: a.Action, Filter: filter, All: a.All, AddAttempts: int32(a.AddAttempts), DryRun: a.DryRun, Expect: a.Expect}
	var acted Acted
	for {
		body, err := json.Marshal(w)
		if err != nil {
			return acted, fmt.Errorf("%s tasks: encode request: %w", a.Action, err)
		}
		answer, err := c.call(ctx, Request{Method: http.MethodPost, Path: "/api/tasks/actions", Body: body})
		if err != nil {
			return acted, fmt.Errorf("%s tasks: %w", a.Action, err)
		}
		var step wire.Acted
		if err := json.Unmarshal(answer.body, &step); err != nil {
			return acted, fmt.Errorf("%s tasks: decode answer: %w", a.Action, err)
		}
		if acted.Matched == 0 {
			acted.Matched = step.Matched
		}
		acted.Done += step.Done
		if !step.More || step.Done == 0 {
			return acted, nil
		}
		w.Expect = nil // it was met
	}
}

// wire returns the filter as an action takes it.
func (f Filter) wire() (wire.Filter, error) {
	w := wire.Filter{
		Status: string(f.Status), TaskType: f.TaskType, WorkerID: f.WorkerID, Labels: f.Labels,
		CreatedAfter: exactTime(f.CreatedAfter), CreatedBefore: exactTime(f.CreatedBefore), ErrorGroup: f.ErrorGroup,
	}
	if f.ParentID != "" {
		id, err := strconv.ParseUint(f.ParentID, 10, 64)
		if err != nil {
			return w, fmt.Errorf("parent id %q is no id", f.ParentID)
		}
		w.ParentID = id
	}
	return w, nil
}

// exactTime is nil for the zero time.
func exactTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

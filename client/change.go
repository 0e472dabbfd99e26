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

	"github.com/claimq/claimq/api/wire"
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
// it is then. When its answer is lost it is repeated with the same values. Errors:
// ErrTaskNotFound, ErrTaskAlreadyClaimed, what the task has ended as, ...; after a lost
// answer these are ErrOutcomeUnknown, too.
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
		return nil, inDoubt(&a, err)
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

// inDoubt returns the error of a call whose repeats the server does not know as such. What stands
// in its way may have come after a try that was done, whose answer was lost.
func inDoubt(a *answer, err error) error {
	var refusal *Error
	if a.repeats.Doubted && errors.As(err, &refusal) && !errors.Is(err, ErrOutcomeUnknown) &&
		(refusal.Status == http.StatusNotFound || refusal.Status == http.StatusConflict) {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

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
	DryRun      bool // only say what could be done
	// Expect, if not nil, is how many tasks the filter has to select: else nothing
	// is done, and the error is ErrCountMismatch.
	Expect *int64
}

// Acted is the outcome of an Action.
type Acted struct {
	Matched int64 // tasks that the filter selected
	Done    int64 // tasks that it was done with; the others refused it
	// Of a DryRun: with how many it could be done now, and how many it would leave as
	// they are, by why: the Code of the error with which one of them would be refused,
	// or NothingToDo.
	Can    int64
	Cannot map[string]int64
}

// idleStepsMax bounds the steps of an Act in a row that did nothing: a node may have lost the
// leadership at once.
const idleStepsMax = 4

// NothingToDo is why an Action would leave a task that is as it would make it.
const NothingToDo = "nothing_to_do"

// Act does something with many tasks, in steps: it is not atomic. A task that the
// filter selects no more when its step comes is left alone. It goes on until all
// are done, or ctx ends; Acted is what was done by then. Errors: ErrCountMismatch; that
// several steps in a row did nothing, with more to do; ErrOutcomeUnknown when an
// answer is lost, for then some may be done: doing it again without Expect does
// the rest.
func (c *Client) Act(ctx context.Context, a Action) (Acted, error) {
	filter, err := a.Filter.wire()
	if err != nil {
		return Acted{}, fmt.Errorf("%s tasks: %w", a.Action, err)
	}
	w := wire.Action{Action: a.Action, Filter: filter, All: a.All, AddAttempts: int32(a.AddAttempts), DryRun: a.DryRun, Expect: a.Expect}
	var acted Acted
	for idle := 0; ; {
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
		if step.Can != nil {
			acted.Can, acted.Cannot = *step.Can, step.Cannot
		}
		if !step.More {
			return acted, nil
		}
		w.Expect = nil // it was met
		if idle++; step.Done > 0 {
			idle = 0
		}
		if idle == idleStepsMax {
			return acted, fmt.Errorf("%s tasks: %d requests in a row did nothing, and there is more to do", a.Action, idle)
		}
		if idle > 0 {
			if err := waitFor(ctx, emptyPause<<idle); err != nil {
				return acted, fmt.Errorf("%s tasks: %w", a.Action, err)
			}
		}
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

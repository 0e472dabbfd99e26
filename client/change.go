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
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

// Cancel cancels a task. A task that is not claimed ends at once. For a claimed task the worker is asked to stop and
// learns of it at its next extend; its Complete still counts. A task with steps is cancelled with all of its steps
// and ends when none of them is claimed. Cancel returns the task after the change: with StatusCancelled, or with
// CancelRequested. Cancelling twice is not an error. Errors: ErrTaskNotFound, ErrTaskCompleted, ErrTaskFailed, ...
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

// Signal hands a task the signal that it waits for (Task.WaitForSignal): any JSON up to 64 KiB, or nil. It returns the
// task after the call. Only the first signal counts: if the task has been handed another one, Signal returns the task
// with that one, and differs is true. Errors: ErrTaskNotFound; ErrTaskFailed or ErrTaskCancelled, ... if the task has
// ended without its signal; ErrTaskNotClaimable if it does not wait for one.
func (c *Client) Signal(ctx context.Context, taskID string, signal []byte) (t *Task, differs bool, err error) {
	id, err := parseID(taskID)
	if err != nil {
		return nil, false, fmt.Errorf("signal task: %w", err)
	}
	body, err := json.Marshal(struct {
		Signal json.RawMessage `json:"signal,omitempty"`
	}{signal})
	if err != nil {
		return nil, false, fmt.Errorf("signal task %d: %w", id, err)
	}
	answer, _, err := c.post(ctx, taskPath(id, "signal"), body)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("signal task %d: %w", id, err)
	case answer.Task == nil:
		return nil, false, fmt.Errorf("signal task %d: the answer has no task", id)
	}
	return fromWire(answer.Task), answer.SameSignal != nil && !*answer.SameSignal, nil
}

// Patch says which fields of a task to change. A nil field does not change.
type Patch struct {
	Priority *int       // int32
	RunAt    *time.Time // the zero time: claimable at once
	// Labels replaces all labels of the task. An empty map removes them.
	Labels map[string]string
	// ShareKey replaces the share key of the task; "" removes it.
	ShareKey *string
}

// Patch changes a task that is not claimed and has not ended, and returns it after the change. If its answer is lost, it
// is repeated with the same values. Errors: ErrTaskNotFound, ErrTaskAlreadyClaimed, the error of the task's end, ...;
// after a lost answer these also are ErrOutcomeUnknown.
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

// encode uses a map so that absent fields do not change, and null clears one.
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
	switch {
	case p.ShareKey == nil:
	case !utf8.ValidString(*p.ShareKey):
		return nil, errors.New("share key is not UTF-8")
	case *p.ShareKey == "":
		fields["share_key"] = nil
	default:
		fields["share_key"] = *p.ShareKey
	}
	return json.Marshal(fields)
}

// taskCall makes a call that is answered with the task.
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

// inDoubt returns the error of a call whose repeats the server does not recognize. A refusal of the repeat is marked
// with ErrOutcomeUnknown because an earlier try, whose answer was lost, may be its cause.
func inDoubt(a *answer, err error) error {
	var refusal *Error
	if a.repeats.Doubted && errors.As(err, &refusal) && !errors.Is(err, ErrOutcomeUnknown) &&
		(refusal.Status == http.StatusNotFound || refusal.Status == http.StatusConflict) {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

// Actions for Act.
const (
	ActionRetry  = "retry"
	ActionCancel = "cancel"
	ActionDelete = "delete"
)

// Action is something to do with all tasks that a filter selects.
type Action struct {
	Action string // ActionRetry, ActionCancel or ActionDelete
	// Filter selects the tasks; NewestFirst and LastEndedFirst are ignored. The zero Filter is refused unless All is
	// set.
	Filter      Filter
	All         bool // all tasks, without a Filter
	AddAttempts int  // for ActionRetry: added to a limited MaxAttempts first
	DryRun      bool // only report what could be done
	// Expect, if not nil, is the number of tasks that the filter must select. If it selects another number, nothing
	// is done and the error is ErrCountMismatch.
	Expect *int64
}

// Acted is the outcome of an Action.
type Acted struct {
	Matched int64 // tasks that the filter selected
	Done    int64 // tasks that were changed; the others refused it
	// For a DryRun: how many tasks the action could change now, and how many it would not change, by reason. A
	// reason is the Code of the error that a task would be refused with, or NothingToDo.
	Can    int64
	Cannot map[string]int64
}

// idleStepsMax bounds the consecutive steps of an Act that did nothing. A few are normal, because a node may have
// lost the leadership at once.
const idleStepsMax = 4

// NothingToDo is the reason in Acted.Cannot for tasks that already are as the Action would make them.
const NothingToDo = "nothing_to_do"

// Act performs an action on many tasks, in steps, so it is not atomic: a task that the filter no longer selects when
// its step comes is left alone. It continues until all are done or ctx ends; Acted says what was done by then.
// Errors: ErrCountMismatch; an error if several steps in a row did nothing though more was to do; ErrOutcomeUnknown
// if an answer is lost, because some tasks may have been changed. Calling it again without Expect does the rest.
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
		w.Expect = nil // it was met by the first step
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
		Status: string(f.Status), TaskType: f.TaskType, WorkerID: f.WorkerID, Labels: f.Labels, ShareKey: f.ShareKey,
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

// exactTime returns nil for the zero time.
func exactTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

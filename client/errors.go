package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Errors for the server's refusals, for errors.Is; an *Error has the details. The client itself returns some of them
// when no call to the server is needed.
var (
	// ErrTaskNotFound is returned when the task does not exist.
	ErrTaskNotFound = errors.New("task not found")
	// ErrTaskAlreadyClaimed is returned when another worker holds the task.
	ErrTaskAlreadyClaimed = errors.New("task already claimed")
	// ErrTaskNotClaimed is returned when a call without a token needs a claim and the task is not claimed.
	ErrTaskNotClaimed = errors.New("task not claimed")
	// ErrTaskNotClaimable is returned when the task cannot be claimed now: it waits for its time, for other steps or
	// for its group, its type has reached its limit, or it has steps, which are claimed instead.
	ErrTaskNotClaimable = errors.New("task not claimable")
	// ErrTaskNotTerminal is returned when a task to delete has not ended.
	ErrTaskNotTerminal = errors.New("task has not ended")
	// ErrTaskCompleted is returned when the task has been completed with another claim.
	ErrTaskCompleted = errors.New("task is completed")
	// ErrTaskFailed is returned when the task has failed for good.
	ErrTaskFailed = errors.New("task has failed")
	// ErrTaskCancelled is returned when the task has been cancelled.
	ErrTaskCancelled = errors.New("task is cancelled")
	// ErrMaxAttemptsReached is returned when a task to retry has no attempts left.
	ErrMaxAttemptsReached = errors.New("no attempts left")
	// ErrInvalidTask is returned when the server or the client refuses a task as malformed.
	ErrInvalidTask = errors.New("invalid task")
	// ErrInvalidWorkerID is returned for a malformed worker id.
	ErrInvalidWorkerID = errors.New("invalid worker id")
	// ErrWrongWorker is returned when another worker holds the claim.
	ErrWrongWorker = errors.New("claimed by another worker")
	// ErrStaleClaim is returned when the claim is over, because its lease ended or the task was taken from it.
	// Nothing was done.
	ErrStaleClaim = errors.New("the claim is over")
	// ErrStepsUnfinished is returned when a parent's steps have not all ended.
	ErrStepsUnfinished = errors.New("steps have not all ended")
	// ErrCountMismatch is returned when the filter of an Action does not select the expected number of tasks. Nothing
	// was done.
	ErrCountMismatch = errors.New("count mismatch")
	// ErrKeyTaken is returned when a task that is unique while active is to be retried, and another active task or a
	// remembered removed one has its idempotency key.
	ErrKeyTaken = errors.New("idempotency key is taken")
	// ErrPlaceAhead is returned for a place that the cluster's trail has not reached. The place belongs to another
	// cluster, or to a state that was lost.
	ErrPlaceAhead = errors.New("the trail has not come to this place")
	// ErrEventsGone is returned when the requested part of the trail is no longer kept.
	ErrEventsGone = errors.New("events are gone")
	// ErrScheduleNotFound is returned when the schedule does not exist.
	ErrScheduleNotFound = errors.New("schedule not found")
	// ErrTooLarge is returned when a payload, a result or the whole request is larger than the server accepts; the
	// text names the limit.
	ErrTooLarge = errors.New("too large")
	// ErrNoTasks is returned when there is nothing to claim.
	ErrNoTasks = errors.New("no tasks to claim")
	// ErrRateLimited is returned when the API key has used up its rate.
	ErrRateLimited = errors.New("rate limited")
	// ErrOverloaded is returned when the server cannot accept more now. Nothing was written.
	ErrOverloaded = errors.New("server overloaded")
	// ErrUnauthorized is returned when the API key is missing or unknown.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden is returned when the API key's role or task types do not permit the call, or the server does not
	// accept the host name of the endpoint.
	ErrForbidden = errors.New("forbidden")
	// ErrOutcomeUnknown is returned when the call may have been done, or may still be. To find out, repeat it in a
	// way that the server recognizes: a submit with the same key, a claim with the same request id, a settling call
	// with the same claim.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNoLeader is returned when the cluster had no leader. Nothing was written.
	ErrNoLeader = errors.New("no leader")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("client is closed")
)

// ErrLeaseLost is the context.Cause of the context of Claim.KeepAlive when the lease could not be extended or the
// claim was taken away.
var ErrLeaseLost = errors.New("lease lost")

// ErrCancelRequested is the context.Cause of the context of Claim.KeepAlive when a cancel of the task was requested.
// The claim still holds.
var ErrCancelRequested = errors.New("cancel requested")

// ErrShutdown is the context.Cause of a handler's context when its Worker stops and WorkerConfig.StopWait is over. A
// handler that then returns an error gives its task back, and the attempt is not counted.
var ErrShutdown = errors.New("worker is shutting down")

// Error is a refusal by the server, or by a proxy in front of it (then Code is empty). errors.Is finds the sentinel
// of its Code.
type Error struct {
	Status    int    // HTTP status
	Code      string // stable; listed in docs/api.md
	Text      string // what happened
	Advice    string // what to do
	RequestID string // as in the server's log
	// RetryAfter is the wait that the server asks for; 0: it does not say.
	RetryAfter time.Duration
	// Details is the whole JSON body, with fields that depend on the code (worker_id, status, field, ...). nil if the
	// body was not JSON.
	Details json.RawMessage
}

// Error returns what happened, the code, and what to do.
func (e *Error) Error() string {
	s := e.Text
	if e.Code != "" {
		s += " (" + e.Code + ")"
	} else {
		s += fmt.Sprintf(" (HTTP status %d)", e.Status)
	}
	if e.Advice != "" && e.Advice != e.Text {
		s += ": " + e.Advice
	}
	return s
}

// Is reports whether target is the sentinel of e.Code.
func (e *Error) Is(target error) bool {
	s := sentinel(wire.Code(e.Code))
	return s != nil && s == target
}

// sentinel maps a code to its error; nil: it has none.
func sentinel(code wire.Code) error {
	switch code {
	case wire.CodeTaskNotFound:
		return ErrTaskNotFound
	case wire.CodeTaskAlreadyClaimed:
		return ErrTaskAlreadyClaimed
	case wire.CodeTaskNotClaimed:
		return ErrTaskNotClaimed
	case wire.CodeTaskNotClaimable:
		return ErrTaskNotClaimable
	case wire.CodeTaskNotTerminal:
		return ErrTaskNotTerminal
	case wire.CodeTaskCompleted:
		return ErrTaskCompleted
	case wire.CodeTaskFailed:
		return ErrTaskFailed
	case wire.CodeTaskCancelled:
		return ErrTaskCancelled
	case wire.CodeMaxAttemptsReached:
		return ErrMaxAttemptsReached
	case wire.CodeInvalidTask:
		return ErrInvalidTask
	case wire.CodeInvalidWorkerID:
		return ErrInvalidWorkerID
	case wire.CodeWrongWorker:
		return ErrWrongWorker
	case wire.CodeStaleClaim:
		return ErrStaleClaim
	case wire.CodeStepsUnfinished:
		return ErrStepsUnfinished
	case wire.CodeCountMismatch:
		return ErrCountMismatch
	case wire.CodeKeyTaken:
		return ErrKeyTaken
	case wire.CodePlaceAhead:
		return ErrPlaceAhead
	case wire.CodeEventsGone:
		return ErrEventsGone
	case wire.CodeScheduleNotFound:
		return ErrScheduleNotFound
	case wire.CodePayloadTooLarge:
		return ErrTooLarge
	case wire.CodeNoPendingTasks:
		return ErrNoTasks
	case wire.CodeRateLimited:
		return ErrRateLimited
	case wire.CodeOverloaded:
		return ErrOverloaded
	case wire.CodeUnauthorized:
		return ErrUnauthorized
	case wire.CodeForbidden:
		return ErrForbidden
	case wire.CodeOutcomeUnknown:
		return ErrOutcomeUnknown
	case wire.CodeNoLeader:
		return ErrNoLeader
	}
	return nil
}

// TaskError is an error about one attempt of a task. The methods of Claim return it, and a Worker does where a task
// is concerned. errors.Is and errors.As see through it.
type TaskError struct {
	Act      string // the call that failed: complete, fail, release, extend, ...; "": none
	TaskID   string
	TaskType string
	Attempt  int // its number, from 1
	Err      error
}

func (e *TaskError) Error() string {
	act := e.Act
	if act != "" {
		act += " "
	}
	return fmt.Sprintf("%stask %s (%s, attempt %d): %v", act, e.TaskID, e.TaskType, e.Attempt, e.Err)
}

func (e *TaskError) Unwrap() error { return e.Err }

// wrap adds the claim's task to err, unless it already names it.
func (cl *Claim) wrap(act string, err error) error {
	if of, ok := find[*TaskError](err); ok && of.TaskID == cl.Task.ID {
		return err
	}
	return &TaskError{Act: act, TaskID: cl.Task.ID, TaskType: cl.Task.TaskType, Attempt: cl.Task.Attempts, Err: err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// Permanent marks a cause of Fail as one that another attempt cannot fix: the task fails at once, even if it has
// attempts left. The text is err's. Permanent of nil is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

// RetryAfter marks a cause of Fail with how long the task waits, in place of its backoff, before it can be claimed
// again if it has attempts left. d is limited to 0 to 365 days. The text is err's. RetryAfter of nil is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{error: err, after: d}
}

// Snoozed reports whether a handler's error is one of Snooze, and for how long it gives the task back.
func Snoozed(err error) (d time.Duration, ok bool) {
	var snooze *snoozeError
	if !errors.As(err, &snooze) {
		return 0, false
	}
	return snooze.delay, true
}

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.delay) }

// Snooze gives the task back when a handler of a Worker returns it: the task can be claimed again after d, and the
// attempt is not counted. d is limited to 0 to 365 days. Results and follow-ups that the handler set with SetResult
// and Then are dropped. Claim.Fail does not understand it; use Claim.Release instead.
func Snooze(d time.Duration) error { return &snoozeError{delay: max(d, 0)} }

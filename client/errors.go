package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// The errors of the server's refusals, for errors.Is; an *Error has the
// details. The client itself returns some of them too where it knows the
// answer, or that there is none.
var (
	// ErrTaskNotFound is returned when there is no such task.
	ErrTaskNotFound = errors.New("task not found")
	// ErrTaskAlreadyClaimed is returned when another worker holds the task.
	ErrTaskAlreadyClaimed = errors.New("task already claimed")
	// ErrTaskNotClaimed is returned when a call without a token needs a claim
	// and nobody has one.
	ErrTaskNotClaimed = errors.New("task not claimed")
	// ErrTaskNotClaimable is returned when the task cannot be claimed now: it waits
	// for its time, for steps before it or for its group, its type has reached its
	// limit, or it has steps, which are claimed in its place.
	ErrTaskNotClaimable = errors.New("task not claimable")
	// ErrTaskNotTerminal is returned when a task that has not ended is deleted.
	ErrTaskNotTerminal = errors.New("task has not ended")
	// ErrTaskCompleted is returned when the task has been completed, by another
	// claim than the one that asks.
	ErrTaskCompleted = errors.New("task is completed")
	// ErrTaskFailed is returned when the task has failed for good.
	ErrTaskFailed = errors.New("task has failed")
	// ErrTaskCancelled is returned when the task has been cancelled.
	ErrTaskCancelled = errors.New("task is cancelled")
	// ErrMaxAttemptsReached is returned when a retry finds no attempt left.
	ErrMaxAttemptsReached = errors.New("no attempts left")
	// ErrInvalidTask is returned for a task that the server or the client
	// refuses as malformed.
	ErrInvalidTask = errors.New("invalid task")
	// ErrInvalidWorkerID is returned for a worker id that is not one.
	ErrInvalidWorkerID = errors.New("invalid worker id")
	// ErrWrongWorker is returned when another worker holds the claim.
	ErrWrongWorker = errors.New("claimed by another worker")
	// ErrStaleClaim is returned when the claim is over: its lease ended, or the
	// task was taken from it. What it would have done was not done.
	ErrStaleClaim = errors.New("the claim is over")
	// ErrStepsUnfinished is returned when a parent's steps have not all ended.
	ErrStepsUnfinished = errors.New("steps have not all ended")
	// ErrCountMismatch is returned when the filter of an Action does not select as
	// many tasks as it expects. Nothing was done.
	ErrCountMismatch = errors.New("count mismatch")
	// ErrKeyTaken is returned when a task that is unique while it is active is
	// retried while another has its idempotency key, or one that was removed is
	// remembered with it.
	ErrKeyTaken = errors.New("idempotency key is taken")
	// ErrPlaceAhead is returned for a place that the cluster's trail has not come to: it is
	// another cluster's, or of a state that was lost.
	ErrPlaceAhead = errors.New("the trail has not come to this place")
	// ErrEventsGone is returned when the trail asked for is not kept any more.
	ErrEventsGone = errors.New("events are gone")
	// ErrScheduleNotFound is returned when there is no such schedule.
	ErrScheduleNotFound = errors.New("schedule not found")
	// ErrTooLarge is returned when a payload, a result or the whole request is
	// larger than the server takes; the text says how large it may be.
	ErrTooLarge = errors.New("too large")
	// ErrNoTasks is returned when there is nothing to claim.
	ErrNoTasks = errors.New("no tasks to claim")
	// ErrRateLimited is returned when the API key's rate is used up.
	ErrRateLimited = errors.New("rate limited")
	// ErrOverloaded is returned when the server cannot take more now. Nothing
	// was written.
	ErrOverloaded = errors.New("server overloaded")
	// ErrUnauthorized is returned when there is no or no known API key.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden is returned when the API key's role or task types do not allow
	// the call, or the server does not know itself by the host of the endpoint.
	ErrForbidden = errors.New("forbidden")
	// ErrOutcomeUnknown is returned when the call may or may not have been done,
	// or may still be done. A repeat that the server recognizes settles it: a
	// submit with the same key, a claim with the same request id, a settling
	// with the same claim.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNoLeader is returned when the cluster had no leader. Nothing was
	// written.
	ErrNoLeader = errors.New("no leader")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("client is closed")
)

// ErrLeaseLost is the context.Cause of the context of Claim.KeepAlive when the
// claim's lease could not be extended, or was taken away.
var ErrLeaseLost = errors.New("lease lost")

// ErrCancelRequested is the context.Cause of the context of Claim.KeepAlive when
// somebody asked for the task to be cancelled. The claim still holds.
var ErrCancelRequested = errors.New("cancel requested")

// ErrShutdown is the context.Cause of a handler's context when its Worker is
// stopping and WorkerConfig.StopWait is over. A handler that then returns an error
// gives its task back: the attempt is not counted.
var ErrShutdown = errors.New("worker is shutting down")

// Error is a refusal by the server, or by a proxy before it (then Code is
// empty). errors.Is finds the sentinel of its Code.
type Error struct {
	Status    int    // of HTTP
	Code      string // stable; docs/api.md lists them
	Text      string // what happened
	Advice    string // what to do
	RequestID string // for the server's log
	// RetryAfter is what the server asks to wait for; 0: it does not say.
	RetryAfter time.Duration
	// Details is the whole JSON body, with what differs by code (worker_id,
	// status, field, ...). nil if the body was not JSON.
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

// Is reports whether target is the sentinel of e's code.
func (e *Error) Is(target error) bool {
	s := sentinel(wire.Code(e.Code))
	return s != nil && s == target
}

// sentinel is the one table from code to error. nil: the code has none.
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

// TaskError is an error about one attempt of a task: of each method of Claim, and of a
// Worker where it is about a task. errors.Is and errors.As see through it.
type TaskError struct {
	Act      string // what was tried: complete, fail, release, extend, ...; "": it is of no call
	TaskID   string
	TaskType string
	Attempt  int // its number, from 1
	Err      error
}

// Error returns what was tried, the task, and why it was not done.
func (e *TaskError) Error() string {
	act := e.Act
	if act != "" {
		act += " "
	}
	return fmt.Sprintf("%stask %s (%s, attempt %d): %v", act, e.TaskID, e.TaskType, e.Attempt, e.Err)
}

// Unwrap returns Err.
func (e *TaskError) Unwrap() error { return e.Err }

// wrap returns err as one about the claim's task, if it is not one yet.
func (cl *Claim) wrap(act string, err error) error {
	if of, ok := find[*TaskError](err); ok && of.TaskID == cl.Task.ID {
		return err
	}
	return &TaskError{Act: act, TaskID: cl.Task.ID, TaskType: cl.Task.TaskType, Attempt: cl.Task.Attempts, Err: err}
}

// permanentError is what Permanent returns.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// Permanent marks a cause of Fail as one that no further attempt can help: the
// task is failed, whatever attempts it has left. The text is err's. Permanent of
// nil is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// retryError is what RetryAfter returns.
type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

// RetryAfter marks a cause of Fail with how long the task waits before it can be
// claimed again, if it has attempts left, in place of its backoff. A negative d
// is 0, one of over 365 days is 365 days. The text is err's. RetryAfter of nil is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{error: err, after: d}
}

// Snoozed returns for how long err, what a handler returned, gives its task back; ok is false
// if it is not of Snooze.
func Snoozed(err error) (d time.Duration, ok bool) {
	var snooze *snoozeError
	if !errors.As(err, &snooze) {
		return 0, false
	}
	return snooze.delay, true
}

// snoozeError is what Snooze returns.
type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.delay) }

// Snooze is what a handler of a Worker returns to give its task back: nobody can
// claim it before d has passed, and the attempt is not counted. A negative d is
// 0, one of over 365 days is 365 days. What the handler said with SetResult and Then is dropped. It means nothing to
// Claim.Fail; there is Claim.Release.
func Snooze(d time.Duration) error { return &snoozeError{delay: max(d, 0)} }

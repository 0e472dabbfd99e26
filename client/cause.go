package client

import (
	"fmt"
	"time"
)

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
// is 0. The text is err's. RetryAfter of nil is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{error: err, after: d}
}

// snoozeError is what Snooze returns.
type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.delay) }

// Snooze is what a handler of a Worker returns to give its task back: nobody can
// claim it before d has passed, and the attempt is not counted. A negative d is
// 0. What the handler said with SetResult and Then is dropped. It means nothing to
// Claim.Fail; there is Claim.Release.
func Snooze(d time.Duration) error { return &snoozeError{delay: max(d, 0)} }

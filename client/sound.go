package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// Where what a handler says is cut, as the server has the bounds.
const (
	// errorBytesMax is of the text of a failure.
	errorBytesMax = 16 << 10
	// progressBytesMax is of the JSON of a progress.
	progressBytesMax = 4 << 10
	// delayMax is of how long a task waits.
	delayMax = 365 * 24 * time.Hour
)

// probe is an error that no program has.
type probe struct{ error }

// errProbe is one that is in no program's error.
var errProbe = errors.New("probe")

// sound returns err, or if one of its methods panics, as those of a nil pointer in an error do,
// one that says the same, as far as it can be told.
func sound(err error) (safe error) {
	if err == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			safe = soundOf(err)
		}
	}()
	_ = err.Error()
	if of := (*probe)(nil); errors.As(err, &of) || errors.Is(err, errProbe) { // all that it wraps is asked
		return of
	}
	return err
}

// soundOf makes an error of what can be told of err.
func soundOf(err error) error {
	if p, ok := find[*PanicError](err); ok {
		return &PanicError{Value: fmt.Sprint(p.Value), Stack: p.Stack} // fmt catches panics
	}
	if s, ok := find[*snoozeError](err); ok {
		return s
	}
	if p, ok := find[*permanentError](err); ok {
		return Permanent(errors.New(textOf(p.error)))
	}
	if r, ok := find[*retryError](err); ok {
		return RetryAfter(r.after, errors.New(textOf(r.error)))
	}
	return errors.New(textOf(err))
}

// find is errors.As of an error whose methods may panic.
func find[T error](err error) (found T, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	ok = errors.As(err, &found)
	return found, ok
}

// textOf is the text of an error whose methods may panic.
func textOf(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("an error of type %T, whose Error panics: %v", err, v)
			if of := reflect.ValueOf(err); of.Kind() == reflect.Pointer && of.IsNil() {
				text = fmt.Sprintf("a nil pointer of type %T as an error, which is not nil by that", err)
			}
		}
	}()
	return err.Error()
}

// retryOf is what WorkerConfig.Retry says, or the default if it panics.
func (r *shift) retryOf(cl *Claim, cause error) (d time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			r.tellOf(cl, slog.LevelError, "WorkerConfig.Retry panicked", fmt.Errorf("WorkerConfig.Retry panicked: %v", v))
			d = defaultRetry(cl.Task, cause)
		}
	}()
	return r.w.cfg.Retry(cl.Task, cause)
}

// cutProgress is the JSON of a progress, or if that is too long a string with as much of its
// beginning as there is room for.
func cutProgress(raw json.RawMessage) json.RawMessage {
	if len(raw) <= progressBytesMax {
		return raw
	}
	text := string(raw)
	if of := ""; json.Unmarshal(raw, &of) == nil {
		text = of
	}
	for n := min(len(text), progressBytesMax); ; {
		cut, err := marshal(strings.ToValidUTF8(text[:n], "") + "…")
		over := len(cut) - progressBytesMax
		if err != nil || over <= 0 {
			return cut
		}
		n -= max(over/6, 1) // an escape has 6 bytes
	}
}

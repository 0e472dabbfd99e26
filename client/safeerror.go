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

// Limits for what a handler returns, as the server has them.
const (
	errorBytesMax    = 16 << 10
	progressBytesMax = 4 << 10
	delayMax         = 365 * 24 * time.Hour
)

// probeError is a type of error that no program has.
type probeError struct{ error }

// errProbe is an error that no program's error wraps.
var errProbe = errors.New("probe")

// safeError returns err. If one of its methods panics, as those of a nil pointer may, it returns a replacement that says
// the same as far as possible.
func safeError(err error) (safe error) {
	if err == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			safe = plainError(err)
		}
	}()
	_ = err.Error()
	if of := (*probeError)(nil); errors.As(err, &of) || errors.Is(err, errProbe) { // this calls the methods of all wrapped errors
		return of
	}
	return err
}

// plainError makes an error of what can be read from err.
func plainError(err error) error {
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

// find is errors.As for an error whose methods may panic.
func find[T error](err error) (found T, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	ok = errors.As(err, &found)
	return found, ok
}

// textOf returns the text of an error whose methods may panic.
func textOf(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("an error of type %T, whose Error panics: %v", err, v)
			if of := reflect.ValueOf(err); of.Kind() == reflect.Pointer && of.IsNil() {
				text = fmt.Sprintf("a nil pointer of type %T used as an error, which therefore is not nil", err)
			}
		}
	}()
	return err.Error()
}

// retryOf calls WorkerConfig.Retry, and uses the default if it panics.
func (r *workerRun) retryOf(cl *Claim, cause error) (d time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			r.tellOf(cl, slog.LevelError, "WorkerConfig.Retry panicked", fmt.Errorf("WorkerConfig.Retry panicked: %v", v))
			d = defaultRetry(cl.Task, cause)
		}
	}()
	return r.w.cfg.Retry(cl.Task, cause)
}

// cutProgress returns a progress unchanged or, if it is too large, as a string with its beginning.
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

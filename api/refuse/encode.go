package refuse

import (
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
)

// Append appends the body of a failed call: the contract's fields, then
// the details that there are.
func Append(b []byte, f *Refusal, requestID []byte) []byte {
	b = AppendOpen(b, f, requestID)
	return append(b, '}')
}

// AppendOpen is Append without the closing brace.
func AppendOpen(b []byte, f *Refusal, requestID []byte) []byte {
	b = append(b, `{"success":false,"error":`...)
	b = jsonout.String(b, f.Text)
	b = append(b, `,"code":"`...)
	b = append(b, f.Code...)
	b = append(b, `","message":`...)
	b = jsonout.String(b, f.Advice)
	b = append(b, `,"request_id":`...)
	b = jsonout.String(b, requestID)
	if f.Field != "" {
		b = append(b, `,"field":`...)
		b = jsonout.String(b, f.Field)
	}
	if f.Task != nil {
		b = appendTask(b, f)
	}
	if f.Reason != "" {
		b = append(b, `,"reason":`...)
		b = jsonout.String(b, f.Reason)
	}
	return append(b, f.Details...)
}

// appendTask appends what stood against a command: the task's status
// and who holds it.
func appendTask(b []byte, f *Refusal) []byte {
	t, holder := f.Task, f.holder
	if holder == "" {
		holder = t.WorkerID
	}
	b = append(b, `,"task_id":`...)
	b = strconv.AppendUint(b, t.ID, 10)
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	b = append(b, `","worker_id":`...)
	b = jsonout.StringOrNull(b, holder)
	if f.Code == wire.CodeMaxAttemptsReached {
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(t.Attempts), 10)
		b = append(b, `,"max_attempts":`...)
		b = strconv.AppendInt(b, int64(t.MaxAttempts), 10)
	}
	return b
}

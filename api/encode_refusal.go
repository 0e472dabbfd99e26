package api

import (
	"strconv"

	"github.com/claimq/claimq/api/wire"
)

// appendRefusal appends the body of a failed call: the contract's fields, then
// the details that there are.
func appendRefusal(b []byte, f *refusal, requestID []byte) []byte {
	b = appendRefusalOpen(b, f, requestID)
	return append(b, '}')
}

// appendRefusalOpen is appendRefusal without the closing brace.
func appendRefusalOpen(b []byte, f *refusal, requestID []byte) []byte {
	b = append(b, `{"success":false,"error":`...)
	b = appendString(b, f.text)
	b = append(b, `,"code":"`...)
	b = append(b, f.code...)
	b = append(b, `","message":`...)
	b = appendString(b, f.advice)
	b = append(b, `,"request_id":`...)
	b = appendString(b, requestID)
	if f.field != "" {
		b = append(b, `,"field":`...)
		b = appendString(b, f.field)
	}
	if f.task != nil {
		b = appendRefusalTask(b, f)
	}
	if f.reason != "" {
		b = append(b, `,"reason":`...)
		b = appendString(b, f.reason)
	}
	return append(b, f.details...)
}

// appendRefusalTask appends what stood against a command: the task's status
// and who holds it.
func appendRefusalTask(b []byte, f *refusal) []byte {
	t, holder := f.task, f.holder
	if holder == "" {
		holder = t.WorkerID
	}
	b = append(b, `,"task_id":`...)
	b = strconv.AppendUint(b, t.ID, 10)
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	b = append(b, `","worker_id":`...)
	b = appendWorker(b, holder)
	if f.code == wire.CodeMaxAttemptsReached {
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(t.Attempts), 10)
		b = append(b, `,"max_attempts":`...)
		b = strconv.AppendInt(b, int64(t.MaxAttempts), 10)
	}
	return b
}

package refuse

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
)

// Append appends the body of a failed call: the contract's fields, then any details.
func Append(b []byte, f *Refusal, requestID []byte) []byte {
	b = AppendOpen(b, f, requestID)
	return append(b, '}')
}

// AppendOpen is Append without the closing brace.
func AppendOpen(b []byte, f *Refusal, requestID []byte) []byte {
	b = jsonout.StringField(b, `{"success":false,"error":`, f.Text)
	b = jsonout.WordField(b, `,"code":`, f.Code)
	b = jsonout.StringField(b, `,"message":`, f.Advice)
	b = jsonout.StringField(b, `,"request_id":`, requestID)
	if f.Field != "" {
		b = jsonout.StringField(b, `,"field":`, f.Field)
	}
	if f.Task != nil {
		b = appendTask(b, f)
	}
	if f.Reason != "" {
		b = jsonout.StringField(b, `,"reason":`, f.Reason)
	}
	return append(b, f.Details...)
}

// appendTask appends what conflicts with a command: the task's status and its holder.
func appendTask(b []byte, f *Refusal) []byte {
	t, holder := f.Task, f.holder
	if holder == "" {
		holder = t.WorkerID
	}
	b = jsonout.UintField(b, `,"task_id":`, t.ID)
	b = jsonout.WordField(b, `,"status":`, t.Status.String())
	b = jsonout.StringOrNull(b, `,"worker_id":`, holder)
	if f.Code == wire.CodeMaxAttemptsReached {
		b = jsonout.IntField(b, `,"attempts":`, int64(t.Attempts))
		b = jsonout.IntField(b, `,"max_attempts":`, int64(t.MaxAttempts))
	}
	return b
}

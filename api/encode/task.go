package encode

import (
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// The functions of this file append JSON to a buffer by hand. A call's answers
// are held against the types of package wire by the tests.

// View says what of a task is shown.
type View struct {
	Now    fsm.Stamp
	Params bool // params and payload
	Result bool // result and result_payload
	Log    bool // attempts_log
	// InForce is what counts for the task; nil: it is not shown.
	InForce *fsm.InForce
	// Steps are how the steps of a parent are; nil: they are not shown.
	Steps []fsm.StepView
}

// Task appends a task as the contract shows it, fields in its order.
func Task(b []byte, t *fsm.Task, v View) []byte {
	b = appendTaskBody(b, t, t.Token, t.Status == fsm.StatusClaimed, v)
	return append(b, '}')
}

// Claimed appends a task in the answer to a claim: with the token that
// this claim got and, of a repeated answer, whether the claim is still live.
func Claimed(b []byte, c *fsm.Claim, repeated bool, now fsm.Stamp) []byte {
	live := c.Live && c.Task.Status == fsm.StatusClaimed
	if c.Task.Status == 0 {
		// It was deleted since. What is not known any more is left out.
		b = append(b, `{"id":`...)
		b = strconv.AppendUint(b, c.Task.ID, 10)
		b = append(b, `,"claim_token":`...)
		b = strconv.AppendUint(b, c.Token, 10)
		return append(b, `,"claim_state":"ended"}`...)
	}
	b = appendTaskBody(b, &c.Task, c.Token, live, View{Now: now, Params: true, Result: true})
	if repeated {
		b = append(b, `,"claim_state":"`...)
		if c.Live {
			b = append(b, `live"`...)
		} else {
			b = append(b, `ended"`...)
		}
	}
	return append(b, '}')
}

// appendTaskBody appends a task without its closing brace. leased says whether
// the lease that token stands for is running.
func appendTaskBody(b []byte, t *fsm.Task, token uint64, leased bool, v View) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, t.ID, 10)
	b = append(b, `,"task_type":`...)
	b = jsonout.String(b, t.Type)
	if v.Params {
		b = jsonout.Raw(b, `,"params":`, t.Params)
		b = jsonout.Base64(b, `,"payload":`, t.Payload)
	}
	b = append(b, `,"priority":`...)
	b = strconv.AppendInt(b, int64(t.Priority), 10)
	b = append(b, `,"max_attempts":`...)
	b = strconv.AppendInt(b, int64(t.MaxAttempts), 10)
	b = append(b, `,"attempts":`...)
	b = strconv.AppendInt(b, int64(t.Attempts), 10)
	if t.Key != "" {
		b = append(b, `,"idempotency_key":`...)
		b = jsonout.String(b, t.Key)
	}
	if t.Options != nil && t.Options.UniqueActive {
		b = append(b, `,"unique":"active"`...)
	}
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	b = append(b, '"')
	if t.RunAt != 0 {
		b = append(b, `,"run_at":`...)
		b = jsonout.Time(b, t.RunAt)
	}
	if t.Options != nil && t.Options.ExpiresAt != 0 {
		b = append(b, `,"expires_at":`...)
		b = jsonout.Time(b, t.Options.ExpiresAt)
	}
	if t.LeaseMS > 0 {
		b = append(b, `,"lease_ms":`...)
		b = strconv.AppendInt(b, t.LeaseMS, 10)
	}
	if t.Options != nil {
		b = appendOptions(b, t.Options)
	}
	b = appendHold(b, t, token, leased, v.Now)
	b = append(b, `,"created_at":`...)
	b = jsonout.Time(b, t.CreatedAt)
	b = append(b, `,"updated_at":`...)
	b = jsonout.Time(b, t.UpdatedAt)
	b = append(b, `,"completed_at":`...)
	b = jsonout.Time(b, t.CompletedAt)
	if v.Result {
		b = jsonout.Raw(b, `,"result":`, t.Result)
		b = jsonout.Base64(b, `,"result_payload":`, t.ResultPayload)
	}
	if t.Error != "" {
		b = append(b, `,"error":`...)
		b = jsonout.String(b, t.Error)
	}
	b = jsonout.Raw(b, `,"progress":`, t.Progress)
	if t.CancelRequested {
		b = append(b, `,"cancel_requested":true`...)
	} else {
		b = append(b, `,"cancel_requested":false`...)
	}
	if v.InForce != nil {
		b = appendInForce(b, t, v.InForce)
	}
	if v.Log {
		b = appendLog(b, t.Log)
	}
	if t.Options != nil && (t.Options.Parent != nil || t.Options.Step != nil) {
		b = appendFamily(b, t, v.Steps)
	}
	return b
}

// appendOptions appends those of the rarer fields that stand together.
func appendOptions(b []byte, o *fsm.Options) []byte {
	if o.Backoff != nil {
		b = append(b, `,"backoff":`...)
		b = Backoff(b, o.Backoff)
	}
	if o.RetentionMS != 0 {
		b = append(b, `,"retention_ms":`...)
		b = Retention(b, o.RetentionMS)
	}
	if len(o.Labels) > 0 {
		b = append(b, `,"labels":`...)
		b = appendLabels(b, o.Labels)
	}
	if o.Group != "" {
		b = append(b, `,"group":`...)
		b = jsonout.String(b, o.Group)
	}
	if o.Traceparent != "" {
		b = append(append(b, `,"traceparent":"`...), o.Traceparent...)
		b = append(b, '"')
	}
	return b
}

// Backoff appends a backoff, with its defaults filled in.
func Backoff(b []byte, o *fsm.Backoff) []byte {
	b = append(b, `{"initial_ms":`...)
	b = strconv.AppendInt(b, o.InitialMS, 10)
	b = append(b, `,"max_ms":`...)
	b = strconv.AppendInt(b, o.MaxMS, 10)
	b = append(b, `,"factor":`...)
	b = jsonout.Decimal(b, o.Factor)
	b = append(b, `,"jitter":`...)
	b = jsonout.Decimal(b, o.Jitter)
	return append(b, '}')
}

// appendInForce appends of what counts for the task what the task is not shown to have
// itself: a parent is never claimed, and a step goes with its parent.
func appendInForce(b []byte, t *fsm.Task, f *fsm.InForce) []byte {
	b = append(b, `,"in_force":{`...)
	start := len(b)
	if t.Parent() == nil {
		b = append(b, `"lease_ms":`...)
		b = strconv.AppendInt(b, f.LeaseMS, 10)
		b = append(b, `,"backoff":`...)
		b = BackoffOrNull(b, f.Backoff)
	}
	if t.Step() == nil {
		b = jsonout.Comma(b, start)
		b = append(b, `"retention_ms":`...)
		if t.Status == fsm.StatusFailed {
			b = Retention(b, f.FailedRetentionMS)
		} else {
			b = Retention(b, f.RetentionMS)
		}
	}
	return append(b, '}')
}

// BackoffOrNull is Backoff, null if there is none.
func BackoffOrNull(b []byte, o *fsm.Backoff) []byte {
	if o == nil {
		return append(b, "null"...)
	}
	return Backoff(b, o)
}

// Retention appends a retention_ms as the contract has it.
func Retention(b []byte, ms int64) []byte {
	switch ms {
	case fsm.KeepForever:
		ms = -1
	case fsm.KeepNone:
		ms = 0
	}
	return strconv.AppendInt(b, ms, 10)
}

func appendLabels(b []byte, labels []fsm.Label) []byte {
	b = append(b, '{')
	for i, l := range labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonout.String(b, l.Name), ':')
		b = jsonout.String(b, l.Value)
	}
	return append(b, '}')
}

// Gone appends what is left of a task that was removed since it ended.
func Gone(b []byte, t *fsm.Task) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, t.ID, 10)
	if t.Key != "" {
		b = append(b, `,"idempotency_key":`...)
		b = jsonout.String(b, t.Key)
	}
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	b = append(b, `","worker_id":`...)
	b = jsonout.StringOrNull(b, t.WorkerID)
	b = append(b, `,"claim_token":`...)
	return append(jsonout.UintOrNull(b, t.Token), '}')
}

// appendHold appends who holds a task, and until when.
func appendHold(b []byte, t *fsm.Task, token uint64, leased bool, now fsm.Stamp) []byte {
	b = append(b, `,"worker_id":`...)
	b = jsonout.StringOrNull(b, t.WorkerID)
	b = append(b, `,"claim_token":`...)
	b = jsonout.UintOrNull(b, token)
	b = append(b, `,"claimed_at":`...)
	b = jsonout.Time(b, t.ClaimedAt)
	if !leased {
		return append(b, `,"lease_expires_at":null,"lease_remaining_ms":null`...)
	}
	left := LeaseLeft(t, now)
	b = append(b, `,"lease_expires_at":`...)
	b = jsonout.Time(b, now.T+t.LeaseEndU-now.U)
	b = append(b, `,"lease_remaining_ms":`...)
	return strconv.AppendInt(b, left, 10)
}

// LeaseLeft is what the lease of a claimed task has left, in milliseconds.
func LeaseLeft(t *fsm.Task, now fsm.Stamp) int64 { return max(0, t.LeaseEndU-now.U) }

func appendLog(b []byte, log []fsm.Attempt) []byte {
	b = append(b, `,"attempts_log":[`...)
	for i := range log {
		a := &log[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"worker_id":`...)
		b = jsonout.String(b, a.WorkerID)
		b = append(b, `,"claim_token":`...)
		b = strconv.AppendUint(b, a.Token, 10)
		b = append(b, `,"claimed_at":`...)
		b = jsonout.Time(b, a.ClaimedAt)
		b = append(b, `,"ended_at":`...)
		b = jsonout.Time(b, a.EndedAt)
		b = append(b, `,"outcome":`...)
		if a.Outcome == fsm.OutcomeNone {
			b = append(b, "null"...)
		} else {
			b = jsonout.String(b, a.Outcome.String())
		}
		if a.Error != "" {
			b = append(b, `,"error":`...)
			b = jsonout.String(b, a.Error)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

package codec

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// View says which parts of a task are shown.
type View struct {
	Now    fsm.Stamp
	Params bool // show params, payload and attributes
	Result bool // show result and result_payload
	Log    bool // show attempts_log
	// InForce are the settings that apply to the task; nil: not shown.
	InForce *fsm.InForce
	// Steps describe the steps of a parent; nil: not shown.
	Steps []fsm.StepView
}

// AppendTask appends a task with the contract's fields, in its order.
func AppendTask(b []byte, t *fsm.Task, v View) []byte {
	token := t.Token
	if t.Status == fsm.StatusRunning {
		token = 0 // it belongs to an end that a retry undid
	}
	b = appendTaskBody(b, t, token, t.Status == fsm.StatusClaimed, v)
	return append(b, '}')
}

// appendClaimed appends a task in the answer to a claim: with the token of this claim and, in a repeated answer, whether
// the claim is still live.
func appendClaimed(b []byte, c *fsm.Claim, repeated bool, now fsm.Stamp, on map[uint64]*Dependencies) []byte {
	live := c.Live && c.Task.Status == fsm.StatusClaimed
	if c.Task.Status == 0 {
		// It was deleted since. Unknown fields are left out.
		b = jsonout.UintField(b, `{"id":`, c.Task.ID)
		b = jsonout.UintField(b, `,"claim_token":`, c.Token)
		return append(b, `,"claim_state":"ended"}`...)
	}
	b = appendTaskBody(b, c.Task, c.Token, live, View{Now: now, Params: true, Result: true})
	if repeated {
		b = jsonout.Choice(b, `,"claim_state":`, c.Live, "ended", "live")
	}
	if results := on[c.Task.ID]; results != nil {
		b = appendDependencies(b, results)
	}
	return append(b, '}')
}

// appendTaskBody appends a task without its closing brace. leased says whether the lease for token is running.
func appendTaskBody(b []byte, t *fsm.Task, token uint64, leased bool, v View) []byte {
	b = jsonout.UintField(b, `{"id":`, t.ID)
	b = jsonout.StringField(b, `,"task_type":`, t.Type)
	if v.Params {
		b = jsonout.Raw(b, `,"params":`, t.Params)
		b = jsonout.Base64(b, `,"payload":`, t.Payload)
		b = jsonout.Raw(b, `,"attributes":`, t.Opts().Attributes)
		b = jsonout.Raw(b, `,"signal":`, t.Opts().Signal)
	}
	b = jsonout.IntField(b, `,"priority":`, int64(t.Priority))
	b = jsonout.IntField(b, `,"max_attempts":`, int64(t.MaxAttempts))
	b = jsonout.IntField(b, `,"attempts":`, int64(t.Attempts))
	if t.Key != "" {
		b = jsonout.StringField(b, `,"idempotency_key":`, t.Key)
	}
	if t.Options != nil && t.Options.UniqueActive {
		b = append(b, `,"unique":"active"`...)
	}
	if t.Options != nil && t.Options.UniqueMS != 0 {
		b = jsonout.IntField(append(b, `,"unique":"window"`...), `,"unique_ms":`, t.Options.UniqueMS)
	}
	b = jsonout.WordField(b, `,"status":`, t.Status.String())
	if t.RunAt != 0 {
		b = jsonout.TimeField(b, `,"run_at":`, t.RunAt)
	}
	if t.Options != nil && t.Options.ExpiresAt != 0 {
		b = jsonout.TimeField(b, `,"expires_at":`, t.Options.ExpiresAt)
		if t.Options.ExpiresAgain {
			b = append(b, `,"expires_again":true`...)
		}
	}
	if t.LeaseMS > 0 {
		b = jsonout.IntField(b, `,"lease_ms":`, t.LeaseMS)
	}
	if t.Options != nil {
		b = appendOptions(b, t.Options)
		if of := t.Options.Origin; of != nil {
			b = jsonout.StringField(b, `,"origin":{"task_type":`, of.Type)
			b = append(jsonout.UintField(b, `,"id":`, of.ID), '}')
		}
	}
	b = appendHold(b, t, token, leased, v.Now)
	b = jsonout.TimeField(b, `,"created_at":`, t.CreatedAt)
	b = jsonout.TimeField(b, `,"updated_at":`, t.UpdatedAt)
	b = jsonout.TimeField(b, `,"completed_at":`, t.CompletedAt)
	if v.Result {
		b = jsonout.Raw(b, `,"result":`, t.Result)
		b = jsonout.Base64(b, `,"result_payload":`, t.ResultPayload)
	}
	if t.Error != "" {
		b = jsonout.StringField(b, `,"error":`, t.Error)
	}
	if (t.Status == fsm.StatusFailed || t.Status == fsm.StatusCancelled) && t.Then != nil {
		b = jsonout.UintField(b, `,"moved_to_id":`, t.Then.Submitted[0].ID)
	}
	b = jsonout.Raw(b, `,"progress":`, t.Opts().Progress)
	b = jsonout.BoolField(b, `,"cancel_requested":`, t.CancelRequested)
	if v.InForce != nil {
		b = appendInForce(b, t, v.InForce)
	}
	if v.Log {
		b = appendLog(b, t.Claims())
	}
	if t.Options != nil && (t.Options.Parent != nil || t.Options.Step != nil) {
		b = appendFamily(b, t, v.Steps)
	}
	return b
}

// appendBackoff appends a backoff with its defaults filled in, or null.
func appendBackoff(b []byte, name string, o *fsm.Backoff) []byte {
	if o == nil {
		return jsonout.Null(b, name)
	}
	b = jsonout.IntField(append(b, name...), `{"initial_ms":`, o.InitialMS)
	b = jsonout.IntField(b, `,"max_ms":`, o.MaxMS)
	b = jsonout.DecimalField(b, `,"factor":`, o.Factor)
	b = jsonout.DecimalField(b, `,"jitter":`, o.Jitter)
	return append(b, '}')
}

// appendInForce appends the settings that apply to the task, except those that cannot: a parent is never claimed, and
// a step is kept as long as its parent.
func appendInForce(b []byte, t *fsm.Task, f *fsm.InForce) []byte {
	b = append(b, `,"in_force":{`...)
	start := len(b)
	if t.Parent() == nil {
		b = jsonout.IntField(b, `"lease_ms":`, f.LeaseMS)
		b = appendBackoff(b, `,"backoff":`, f.Backoff)
	}
	if t.Step() == nil {
		ms := f.RetentionMS
		if t.Status == fsm.StatusFailed {
			ms = f.FailedRetentionMS
		}
		b = appendRetention(jsonout.Comma(b, start), `"retention_ms":`, ms)
	}
	return append(b, '}')
}

// appendRetention appends a retention_ms as the contract represents it.
func appendRetention(b []byte, name string, ms int64) []byte {
	switch ms {
	case fsm.KeepForever:
		ms = -1
	case fsm.KeepNone:
		ms = 0
	}
	return jsonout.IntField(b, name, ms)
}

func appendLabels(b []byte, name string, labels []fsm.Label) []byte {
	b = append(append(b, name...), '{')
	start := len(b)
	for _, l := range labels {
		b = jsonout.String(jsonout.Comma(b, start), l.Name)
		b = jsonout.StringField(b, ":", l.Value)
	}
	return append(b, '}')
}

// AppendGone appends what is remembered of a task that was removed after its end.
func AppendGone(b []byte, t *fsm.Task) []byte {
	b = jsonout.UintField(b, `{"id":`, t.ID)
	if t.Key != "" {
		b = jsonout.StringField(b, `,"idempotency_key":`, t.Key)
	}
	b = jsonout.WordField(b, `,"status":`, t.Status.String())
	b = jsonout.StringOrNull(b, `,"worker_id":`, t.WorkerID)
	return append(jsonout.UintOrNull(b, `,"claim_token":`, t.Token), '}')
}

// appendHold appends the worker that holds a task, and until when.
func appendHold(b []byte, t *fsm.Task, token uint64, leased bool, now fsm.Stamp) []byte {
	b = jsonout.StringOrNull(b, `,"worker_id":`, t.WorkerID)
	b = jsonout.UintOrNull(b, `,"claim_token":`, token)
	b = jsonout.TimeField(b, `,"claimed_at":`, t.ClaimedAt)
	if !leased {
		return append(b, `,"lease_expires_at":null,"lease_remaining_ms":null`...)
	}
	b = jsonout.TimeField(b, `,"lease_expires_at":`, now.T+t.LeaseEndU-now.U)
	return jsonout.IntField(b, `,"lease_remaining_ms":`, leaseLeft(t, now))
}

// leaseLeft returns the remaining lease of a claimed task, in milliseconds.
func leaseLeft(t *fsm.Task, now fsm.Stamp) int64 { return max(0, t.LeaseEndU-now.U) }

func appendLog(b []byte, log []fsm.Attempt) []byte {
	return jsonout.List(b, `,"attempts_log":`, len(log), func(b []byte, i int) []byte {
		a := &log[i]
		b = jsonout.StringField(b, `{"worker_id":`, a.WorkerID)
		b = jsonout.UintField(b, `,"claim_token":`, a.Token)
		b = jsonout.TimeField(b, `,"claimed_at":`, a.ClaimedAt)
		b = jsonout.TimeField(b, `,"ended_at":`, a.EndedAt)
		outcome := ""
		if a.Outcome != fsm.OutcomeNone {
			outcome = a.Outcome.String()
		}
		b = jsonout.StringOrNull(b, `,"outcome":`, outcome)
		if a.Error != "" {
			b = jsonout.StringField(b, `,"error":`, a.Error)
		}
		return append(b, '}')
	})
}

package wire

import (
	"encoding/json"
	"time"
)

// Task is a task as the server answers it. Absent and null fields are zero.
type Task struct {
	ID               uint64          `json:"id"`
	TaskType         string          `json:"task_type"`
	Params           json.RawMessage `json:"params,omitempty"`  // the bytes as submitted
	Payload          []byte          `json:"payload,omitempty"` // base64 in JSON
	Priority         int32           `json:"priority"`
	MaxAttempts      int32           `json:"max_attempts"` // 0 = no limit
	Attempts         int32           `json:"attempts"`
	IdempotencyKey   string          `json:"idempotency_key,omitempty"`
	Unique           string          `json:"unique,omitempty"` // "active" or "window", else absent or "exists"
	UniqueMS         int64           `json:"unique_ms,omitempty"`
	LeaseMS          int64           `json:"lease_ms,omitempty"` // as submitted
	Attributes       json.RawMessage `json:"attributes,omitempty"`
	RunAt            *time.Time      `json:"run_at,omitempty"` // when a scheduled task becomes pending
	ExpiresAt        *time.Time      `json:"expires_at,omitempty"`
	ExpiresAgain     bool            `json:"expires_again,omitempty"` // also while it waits after a claim
	Backoff          *Backoff        `json:"backoff,omitempty"`       // its own; InForce has the one that applies
	RetentionMS      *int64          `json:"retention_ms,omitempty"`  // its own; InForce has the one that applies
	InForce          *InForce        `json:"in_force,omitempty"`      // only on GET of one task
	Labels           Labels          `json:"labels,omitempty"`
	Group            string          `json:"group,omitempty"`
	SignalMS         int64           `json:"wait_for_signal_ms,omitempty"`
	SignalUntil      *time.Time      `json:"signal_until,omitempty"` // when it fails without its signal
	Signalled        bool            `json:"signalled,omitempty"`    // its signal has come
	Signal           json.RawMessage `json:"signal,omitempty"`       // what it was handed
	ShareKey         string          `json:"share_key,omitempty"`
	Status           string          `json:"status"`
	WorkerID         *string         `json:"worker_id"`
	ClaimToken       *uint64         `json:"claim_token"`
	ClaimedAt        *time.Time      `json:"claimed_at"`
	LeaseExpiresAt   *time.Time      `json:"lease_expires_at"`   // an estimate by the server's clock
	LeaseRemainingMS *int64          `json:"lease_remaining_ms"` // at the time of the answer
	CreatedAt        time.Time       `json:"created_at"`
	UpdatedAt        time.Time       `json:"updated_at"`
	CompletedAt      *time.Time      `json:"completed_at"` // time of its end
	Result           json.RawMessage `json:"result,omitempty"`
	ResultPayload    []byte          `json:"result_payload,omitempty"`
	Error            string          `json:"error,omitempty"`
	Origin           *Origin         `json:"origin,omitempty"`      // of a dead letter
	MovedToID        uint64          `json:"moved_to_id,omitempty"` // the copy that continues the task
	Progress         json.RawMessage `json:"progress,omitempty"`    // the last one reported
	CancelRequested  bool            `json:"cancel_requested"`
	AttemptsLog      []Attempt       `json:"attempts_log,omitempty"`    // only on GET of one task
	Traceparent      string          `json:"traceparent,omitempty"`     // of its submit
	Steps            []Step          `json:"steps,omitempty"`           // of a parent; not in lists and claims
	Finalize         string          `json:"finalize,omitempty"`        // of a parent: "auto" or "claim"
	OnStepFailure    string          `json:"on_step_failure,omitempty"` // of a parent: "fail" or "continue"
	ParentID         uint64          `json:"parent_id,omitempty"`       // of a step
	Step             string          `json:"step,omitempty"`            // of a step: its name
	DependsOn        []string        `json:"depends_on,omitempty"`      // of a step: names of its dependencies
	ClaimState       string          `json:"claim_state,omitempty"`     // "live" or "ended", in a repeated claim's answer

	// Of a claimed step, if its claim included them: the results of the steps that it depends on, and the names of those
	// that were left out.
	Dependencies        map[string]StepResult `json:"dependencies,omitempty"`
	DependenciesLeftOut []string              `json:"dependencies_left_out,omitempty"`
}

// Origin is the task that a dead letter is a copy of.
type Origin struct {
	TaskType string `json:"task_type"`
	ID       uint64 `json:"id"`
}

// InForce holds the settings that apply to a task: its own, else its type's, else the server's. A parent has only
// RetentionMS, a step everything but that.
type InForce struct {
	LeaseMS     int64    `json:"lease_ms,omitempty"`
	Backoff     *Backoff `json:"backoff,omitempty"` // null: none
	RetentionMS *int64   `json:"retention_ms,omitempty"`
}

// Labels are a task's labels, by name.
type Labels map[string]string

// Backoff says how long a task waits after an attempt that failed or expired. In a submit and in a type's settings, the
// zero value of a field other than InitialMS means the default: at most 1 h, a factor of 2, a jitter of 0.2. Answers
// have all fields.
type Backoff struct {
	InitialMS int64    `json:"initial_ms"`
	MaxMS     int64    `json:"max_ms,omitempty"`
	Factor    float64  `json:"factor,omitempty"` // six decimals
	Jitter    *float64 `json:"jitter,omitempty"` // 0 to 1, six decimals
}

// Attempt is one claim in a task's attempts log.
type Attempt struct {
	WorkerID   string     `json:"worker_id"`
	ClaimToken uint64     `json:"claim_token"`
	ClaimedAt  time.Time  `json:"claimed_at"`
	EndedAt    *time.Time `json:"ended_at"`
	Outcome    *string    `json:"outcome"` // null while it lasts
	Error      string     `json:"error,omitempty"`
}

// NewTask is a task as submitted. Exactly one of Params and Payload is set, and
// at most one of RunAt and DelayMS.
type NewTask struct {
	TaskType       string          `json:"task_type,omitempty"`
	Params         json.RawMessage `json:"params,omitempty"`
	Payload        []byte          `json:"payload,omitempty"`
	Attributes     json.RawMessage `json:"attributes,omitempty"` // an object
	Priority       int32           `json:"priority,omitempty"`
	MaxAttempts    *int32          `json:"max_attempts,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	Unique         string          `json:"unique,omitempty"` // "exists", "active", "replace" or "window"
	UniqueMS       int64           `json:"unique_ms,omitempty"`
	RunAt          *time.Time      `json:"run_at,omitempty"`   // not together with DelayMS
	DelayMS        *int64          `json:"delay_ms,omitempty"` // 0: none, whatever the type's is
	ExpiresAt      *time.Time      `json:"expires_at,omitempty"`
	ExpiresAgain   bool            `json:"expires_again,omitempty"` // also while it waits after a claim
	SignalMS       int64           `json:"wait_for_signal_ms,omitempty"`
	LeaseMS        int64           `json:"lease_ms,omitempty"`
	Backoff        *Backoff        `json:"backoff,omitempty"`
	RetentionMS    *int64          `json:"retention_ms,omitempty"` // 0: removed at its end; -1: kept until deleted
	Labels         Labels          `json:"labels,omitempty"`
	Group          string          `json:"group,omitempty"`
	ShareKey       string          `json:"share_key,omitempty"`
	Traceparent    string          `json:"traceparent,omitempty"`     // default: the request's
	Steps          []NewStep       `json:"steps,omitempty"`           // makes it a parent; up to 1,000
	Finalize       string          `json:"finalize,omitempty"`        // "auto" or "claim"
	OnStepFailure  string          `json:"on_step_failure,omitempty"` // "fail" or "continue"
}

// SubmitMany is the body of a submit of many tasks.
type SubmitMany struct {
	Tasks []NewTask `json:"tasks"`
}

// Claim is the body of claim-next and, without the fields that select tasks, of a claim by id. Without WaitMS it is
// part of a Settle.
type Claim struct {
	WorkerID             string   `json:"worker_id,omitempty"`              // "" in a complete: the complete's
	TaskTypes            []string `json:"task_types,omitempty"`             // empty: any
	MaxAttemptsRemaining int      `json:"max_attempts_remaining,omitempty"` // tasks must have more attempts left; 0: any
	SortBy               string   `json:"sort_by,omitempty"`                // "priority" (default), "created_at" or "random"
	SortOrder            string   `json:"sort_order,omitempty"`             // "asc" or "desc"; default: desc for priority, asc for created_at
	Limit                int      `json:"limit,omitempty"`                  // 0: one task, in Answer.Task; otherwise Answer.Tasks
	LeaseMS              int64    `json:"lease_ms,omitempty"`               // 0: the task's, else its type's, else the server's
	WaitMS               int64    `json:"wait_ms,omitempty"`                // how long to wait for a task
	ClaimRequestID       string   `json:"claim_request_id,omitempty"`       // by which a repeat gets the same tasks
	ClaimRequestPlace    int      `json:"claim_request_place,omitempty"`    // among the claims that share the id
	Include              []string `json:"include,omitempty"`                // IncludeDependencies
}

// IncludeDependencies in Claim.Include asks for the results of the steps that a claimed step depends on.
const IncludeDependencies = "dependencies"

// StepResult is the result of a step: one of the two, or neither.
type StepResult struct {
	Result        json.RawMessage `json:"result,omitempty"`
	ResultPayload []byte          `json:"result_payload,omitempty"`
}

// Settle is the body of complete, fail, extend and release; each call uses the fields that the contract gives it.
type Settle struct {
	WorkerID      string          `json:"worker_id"`
	ClaimToken    uint64          `json:"claim_token,omitempty"`
	Result        json.RawMessage `json:"result,omitempty"`         // complete: not together with ResultPayload
	ResultPayload []byte          `json:"result_payload,omitempty"` // complete
	Submit        []NewTask       `json:"submit,omitempty"`         // complete: the follow-ups
	Claim         *Claim          `json:"claim,omitempty"`          // complete: the next claim
	Error         string          `json:"error,omitempty"`          // fail
	RetryInMS     *int64          `json:"retry_in_ms,omitempty"`    // fail: in place of the backoff
	Permanent     bool            `json:"permanent,omitempty"`      // fail: even if attempts are left
	LeaseMS       int64           `json:"lease_ms,omitempty"`       // extend: from now; 0: the claim's own length
	Late          bool            `json:"late,omitempty"`           // complete: also if the claim is over and the task waits for the next one
	Exact         bool            `json:"exact,omitempty"`          // extend: the lease may end earlier than before
	Progress      json.RawMessage `json:"progress,omitempty"`       // extend
	DelayMS       int64           `json:"delay_ms,omitempty"`       // release: until the task can be claimed again
}

// Retry is the body of a retry.
type Retry struct {
	ClaimToken  uint64 `json:"claim_token,omitempty"`
	AddAttempts int32  `json:"add_attempts,omitempty"`
}

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
	LeaseMS          int64           `json:"lease_ms,omitempty"` // as submitted
	Status           string          `json:"status"`
	WorkerID         *string         `json:"worker_id"`
	ClaimToken       *uint64         `json:"claim_token"`
	ClaimedAt        *time.Time      `json:"claimed_at"`
	LeaseExpiresAt   *time.Time      `json:"lease_expires_at"`   // an estimate by the server's clock
	LeaseRemainingMS *int64          `json:"lease_remaining_ms"` // when the answer was made
	CreatedAt        time.Time       `json:"created_at"`
	UpdatedAt        time.Time       `json:"updated_at"`
	CompletedAt      *time.Time      `json:"completed_at"` // when it ended
	Result           json.RawMessage `json:"result,omitempty"`
	ResultPayload    []byte          `json:"result_payload,omitempty"`
	Error            string          `json:"error,omitempty"`
	CancelRequested  bool            `json:"cancel_requested"`
	AttemptsLog      []Attempt       `json:"attempts_log,omitempty"` // on GET of one task
	ClaimState       string          `json:"claim_state,omitempty"`  // "live" or "ended", in a repeated claim's answer
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

// NewTask is a task as submitted. Exactly one of Params and Payload is set.
type NewTask struct {
	TaskType       string          `json:"task_type,omitempty"`
	Params         json.RawMessage `json:"params,omitempty"`
	Payload        []byte          `json:"payload,omitempty"`
	Priority       int32           `json:"priority,omitempty"`
	MaxAttempts    *int32          `json:"max_attempts,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	LeaseMS        int64           `json:"lease_ms,omitempty"`
}

// SubmitMany is the body of a submit of many tasks.
type SubmitMany struct {
	Tasks []NewTask `json:"tasks"`
}

// Claim is the body of claim-next and, without the fields that choose, of a
// claim by id.
type Claim struct {
	WorkerID       string   `json:"worker_id"`
	TaskTypes      []string `json:"task_types,omitempty"`
	SortBy         string   `json:"sort_by,omitempty"`
	SortOrder      string   `json:"sort_order,omitempty"`
	Limit          int      `json:"limit,omitempty"`
	LeaseMS        int64    `json:"lease_ms,omitempty"`
	ClaimRequestID string   `json:"claim_request_id,omitempty"`
}

// Settle is the body of complete, fail, extend and release; each call takes
// the fields that the contract gives it.
type Settle struct {
	WorkerID      string          `json:"worker_id"`
	ClaimToken    uint64          `json:"claim_token,omitempty"`
	Result        json.RawMessage `json:"result,omitempty"`
	ResultPayload []byte          `json:"result_payload,omitempty"`
	Error         string          `json:"error,omitempty"`
	LeaseMS       int64           `json:"lease_ms,omitempty"`
}

// Retry is the body of a retry.
type Retry struct {
	ClaimToken  uint64 `json:"claim_token,omitempty"`
	AddAttempts int32  `json:"add_attempts,omitempty"`
}

package wire

import (
	"encoding/json"
	"time"
)

// NewStep is one step of a task as submitted: its name, its dependencies, and the fields of a task except those that
// a step cannot have.
type NewStep struct {
	Step      string   `json:"step"`
	DependsOn []string `json:"depends_on,omitempty"`
	NewTask
}

// Step is one step in the answer about its parent.
type Step struct {
	Step      string   `json:"step"`
	ID        uint64   `json:"id"`
	TaskType  string   `json:"task_type"`
	Status    string   `json:"status"`
	DependsOn []string `json:"depends_on"`
	Error     string   `json:"error,omitempty"` // of its last failure
}

// StepsAdded answers POST /api/tasks/{id}/steps.
type StepsAdded struct {
	Success  bool   `json:"success"`
	ParentID uint64 `json:"parent_id"`
	Added    int    `json:"added"` // how many of Steps are new
	Steps    []Step `json:"steps"` // those that were asked for, in that order
	Repeated bool   `json:"repeated,omitempty"`
}

// FinalizationClaim is the body of POST .../finalization/claim, extend and release; release takes no timeout.
type FinalizationClaim struct {
	ProcessorID    string `json:"processor_id"`
	TimeoutSeconds int64  `json:"timeout_seconds,omitempty"` // 1 to 3,600; default 30, or for extend the claim's own
}

// Finalize is the body of POST /api/tasks/{id}/finalize.
type Finalize struct {
	ProcessorID string          `json:"processor_id"`
	ClaimToken  uint64          `json:"claim_token,omitempty"`
	Outcome     string          `json:"outcome"` // completed or failed
	Result      json.RawMessage `json:"result,omitempty"`
	Error       string          `json:"error,omitempty"`
}

// FinalizationClaimed answers POST .../finalization/claim.
type FinalizationClaimed struct {
	Success          bool    `json:"success"`
	Claimed          bool    `json:"claimed"`
	AlreadyClaimedBy *string `json:"already_claimed_by"`
	TaskState        string  `json:"task_state"`
	Message          string  `json:"message"`
	ClaimToken       *uint64 `json:"claim_token"` // null unless claimed
}

// FinalizationExtended answers POST .../finalization/extend.
type FinalizationExtended struct {
	Success  bool `json:"success"`
	Extended bool `json:"extended"`
}

// FinalizationReleased answers POST .../finalization/release.
type FinalizationReleased struct {
	Success  bool `json:"success"`
	Released bool `json:"released"`
}

// Finalized answers POST /api/tasks/{id}/finalize.
type Finalized struct {
	Success          bool   `json:"success"`
	Action           string `json:"action"` // the outcome: completed, failed or cancelled
	AlreadyFinalized bool   `json:"already_finalized"`
	Task             Task   `json:"task"`
}

// Finalization answers GET /api/tasks/{id}/finalization.
type Finalization struct {
	Success        bool                  `json:"success"`
	Attempts       []FinalizationAttempt `json:"attempts"` // the last 100, oldest first
	ClaimedBy      *string               `json:"claimed_by"`
	ClaimExpiresAt *time.Time            `json:"claim_expires_at"` // an estimate by the server's clock
}

// FinalizationAttempt is one attempt to claim a finalization.
type FinalizationAttempt struct {
	ProcessorID      string    `json:"processor_id"`
	Claimed          bool      `json:"claimed"`
	AlreadyClaimedBy *string   `json:"already_claimed_by"`
	Reason           *string   `json:"reason"` // null if claimed
	TaskState        string    `json:"task_state"`
	Message          string    `json:"message"`
	AttemptedAt      time.Time `json:"attempted_at"`
}

// Values of the fields of steps.
const (
	FinalizeAuto  = "auto"
	FinalizeClaim = "claim"
	OnFailureFail = "fail"
	OnFailureGoOn = "continue"
)

package client

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// FinalizationState is how far a task is, seen by who would finalize it. Of a
// task without steps it is the task's status.
type FinalizationState string

// The states of a parent.
const (
	FinalizationNotFound          FinalizationState = "not_found"
	FinalizationWaitingForSteps   FinalizationState = "waiting_for_steps"
	FinalizationEvaluatingResults FinalizationState = "evaluating_results" // all steps have ended
	FinalizationComplete          FinalizationState = "complete"
	FinalizationFailed            FinalizationState = "failed"
	FinalizationCancelled         FinalizationState = "cancelled"
)

// Finalization is who has tried to finalize a task, and who may.
type Finalization struct {
	Attempts       []FinalizationAttempt // the last 100 claims, oldest first
	ClaimedBy      string                // the processor that has the claim; "": nobody
	ClaimExpiresAt time.Time             // an estimate by the server's clock; zero: nobody has it
}

// FinalizationAttempt is one claim that was tried.
type FinalizationAttempt struct {
	ProcessorID      string
	Claimed          bool
	AlreadyClaimedBy string // who had the claim then; "": nobody
	// Reason is why it was not claimed: already_claimed, already_complete, not_ready
	// or other; "" if it was.
	Reason      string
	State       FinalizationState
	Message     string
	AttemptedAt time.Time
}

// Finalization returns the claims of the task's finalization that were tried. A
// task without steps has none. Errors: ErrTaskNotFound, ...
func (c *Client) Finalization(ctx context.Context, taskID string) (*Finalization, error) {
	id, err := parseID(taskID)
	if err != nil {
		return nil, fmt.Errorf("get finalization: %w", err)
	}
	var w wire.Finalization
	if err := c.get(ctx, taskPath(id, "finalization"), &w); err != nil {
		return nil, fmt.Errorf("get finalization of task %d: %w", id, err)
	}
	f := &Finalization{ClaimExpiresAt: timeOf(w.ClaimExpiresAt), Attempts: make([]FinalizationAttempt, len(w.Attempts))}
	if w.ClaimedBy != nil {
		f.ClaimedBy = *w.ClaimedBy
	}
	for i := range w.Attempts {
		f.Attempts[i] = finalizationAttemptFromWire(&w.Attempts[i])
	}
	return f, nil
}

func finalizationAttemptFromWire(w *wire.FinalizationAttempt) FinalizationAttempt {
	a := FinalizationAttempt{
		ProcessorID: w.ProcessorID, Claimed: w.Claimed, State: FinalizationState(w.TaskState), Message: w.Message, AttemptedAt: w.AttemptedAt,
	}
	if w.AlreadyClaimedBy != nil {
		a.AlreadyClaimedBy = *w.AlreadyClaimedBy
	}
	if w.Reason != nil {
		a.Reason = *w.Reason
	}
	return a
}

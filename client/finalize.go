package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/internal/repeat"
)

// FinalizeRequest says how a task ends.
type FinalizeRequest struct {
	Outcome TaskStatus // StatusCompleted or StatusFailed
	Result  []byte     // JSON, up to 1 MiB; of a completed task. Empty: none
	Error   string     // up to 16 KiB; of a failed task
	// Token is that of a claim of the finalization: the call is refused if that is
	// over. 0: that of the claim which this claimer made last, if it has not released
	// it; else none is sent, and only another processor's claim stands against the
	// call.
	Token int64
}

// Finalized is what became of a task's finalization.
type Finalized struct {
	// Action is what was done: StatusCompleted, StatusFailed or StatusCancelled.
	Action TaskStatus
	// AlreadyFinalized is true if it had been done before: then the request's outcome
	// did not count. If an answer was lost, an earlier try of this very call may have
	// done it; Task.ClaimedBy is the processor that did.
	AlreadyFinalized bool
	// Task is the task as it is now; of one that has ended and been removed since,
	// ID and Status alone.
	Task *Task
}

// Finalize ends the task. If it has ended, the answer says how, and that is no
// error: of several processors all succeed, and one does it. Errors:
// ErrStepsUnfinished if not all of its steps have ended; ErrTaskAlreadyClaimed if
// another processor has the claim; ErrStaleClaim if the token's claim is over;
// ErrTaskNotClaimable if the task has no steps; ErrTaskNotFound, ...
func (f *FinalizationClaimer) Finalize(ctx context.Context, taskID string, r FinalizeRequest) (*Finalized, error) {
	id, err := parseID(taskID)
	if err != nil {
		return nil, fmt.Errorf("finalize task: %w", err)
	}
	if r.Token == 0 {
		if claim, ok := f.claims.recall(id); ok {
			r.Token = int64(claim.token)
		}
	}
	body, err := r.encode(f.processorID)
	if err != nil {
		return nil, fmt.Errorf("finalize task %d: %w", id, err)
	}
	var w wire.Finalized
	if _, err := f.c.postTo(ctx, taskPath(id, "finalize"), repeat.OpFinalize, body, &w); err != nil {
		return nil, fmt.Errorf("finalize task %d: %w", id, err)
	}
	return &Finalized{Action: TaskStatus(w.Action), AlreadyFinalized: w.AlreadyFinalized, Task: fromWire(&w.Task)}, nil
}

func (r *FinalizeRequest) encode(processorID string) ([]byte, error) {
	switch {
	case r.Token < 0:
		return nil, fmt.Errorf("token is %d, it must not be negative", r.Token)
	case len(r.Result) > 0 && !hotjson.Travels(r.Result):
		return nil, errors.New("the result is not JSON")
	}
	w := wire.Finalize{
		ProcessorID: processorID, ClaimToken: uint64(r.Token), Outcome: string(r.Outcome), Error: failureText(r.Error),
	}
	if len(r.Result) == 0 {
		return json.Marshal(w)
	}
	return withRaw("result", r.Result, w)
}

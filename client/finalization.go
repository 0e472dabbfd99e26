package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/client/internal/remember"
	"github.com/claimq/claimq/internal/repeat"
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

// Finalized is the outcome of a task's finalization.
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
		if claim, ok := f.claims.Get(id); ok {
			r.Token = int64(claim.Token)
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

// FinalizationClaimer finalizes tasks with steps on behalf of one processor: a
// process that looks at the steps' results and decides how their parent ends.
// It is for parents with FinalizeClaim; others end by themselves.
//
// A claim keeps other processors from doing the same work; that the parent ends
// once is the server's doing, with or without one. Of any number of processors
// that finalize a parent one does it and all succeed. A processor that dies frees
// its claim at the claim's timeout.
//
// Every call is repeated when its answer was lost. The server knows the claim by
// its processor: claiming again is an extend, and finalizing again tells what was
// done. A lost try may also be done late, after the repeat: at worst it takes,
// lengthens or lets go of a claim of this processor once more, until the claim's
// timeout at most, or finalizes what the repeat was still refused. Neither changes
// anything that another processor holds: Finalize sends the claim's token.
//
// It is safe for concurrent use.
type FinalizationClaimer struct {
	c           *Client
	processorID string
	claims      remember.Claims
}

// NewFinalizationClaimer returns a claimer for the processor: 1 to 128 of A-Z a-z
// 0-9 _ . : -. No two processors may have the same id: they would take each
// other's claims for their own. One that has the same id when it is started again
// finds its claim, and the metrics have a place for it.
func NewFinalizationClaimer(c *Client, processorID string) *FinalizationClaimer {
	return &FinalizationClaimer{c: c, processorID: processorID}
}

// FinalizationClaim is the answer to a claim of a finalization.
type FinalizationClaim struct {
	Claimed bool
	HeldBy  string // the processor that has the claim now; "": nobody
	State   FinalizationState
	Message string // the server's words for what it came to
	// Token is the claim's, 0 unless Claimed. It grows with every claim; give it to
	// whatever the processor writes to.
	Token int64
	// Deadline is until when the claim lasts unless it is extended, as
	// Claim.Deadline counts; zero unless Claimed.
	Deadline time.Time
}

// ClaimTask claims the finalization of the task, for timeout: 1 s to an hour, in
// whole seconds, rounded up; 0 is the server's default, 30 s. It is granted once
// a step has completed or failed, if no other processor has it. The same
// processor's claim is extended by it, never shortened. What stands against it is
// no error but in the answer. The claimer remembers the claim for Finalize.
func (f *FinalizationClaimer) ClaimTask(ctx context.Context, taskID string, timeout time.Duration) (*FinalizationClaim, error) {
	var w wire.FinalizationClaimed
	id, a, err := f.post(ctx, taskID, "finalization/claim", repeat.OpFinalizationClaim, timeout, &w)
	if err != nil {
		return nil, fmt.Errorf("claim finalization of task %s: %w", taskID, err)
	}
	claim := &FinalizationClaim{Claimed: w.Claimed, State: FinalizationState(w.TaskState), Message: w.Message}
	if w.AlreadyClaimedBy != nil {
		claim.HeldBy = *w.AlreadyClaimedBy
	}
	if !w.Claimed {
		return claim, nil
	}
	if timeout == 0 {
		timeout = finalizationTimeout
	}
	claim.Deadline = repeat.LeaseEnd(a.sentAt, wholeSeconds(timeout))
	if w.ClaimToken != nil {
		claim.Token = int64(*w.ClaimToken)
		f.claims.Add(remember.Claim{TaskID: id, WorkerID: f.processorID, Token: *w.ClaimToken})
	}
	return claim, nil
}

// finalizationTimeout is the server's default.
const finalizationTimeout = 30 * time.Second

// ExtendClaim moves the end of the processor's claim to timeout from now, never to
// an earlier time; 0 is the timeout it was claimed with. extended is false if the
// processor does not have the claim, or not any more. ClaimTask does the same and
// says until when the claim lasts.
func (f *FinalizationClaimer) ExtendClaim(ctx context.Context, taskID string, timeout time.Duration) (extended bool, err error) {
	var w wire.FinalizationExtended
	if _, _, err := f.post(ctx, taskID, "finalization/extend", repeat.OpFinalizationExtend, timeout, &w); err != nil {
		return false, fmt.Errorf("extend claim of finalization of task %s: %w", taskID, err)
	}
	return w.Extended, nil
}

// ReleaseClaim gives the processor's claim up. released is false if the processor
// does not have it, unless it is the one that has finalized the task. When an
// answer was lost the claim may have been released by the earlier try: then the
// repeat finds none, and released is false too. In any case the processor has no
// claim afterwards.
func (f *FinalizationClaimer) ReleaseClaim(ctx context.Context, taskID string) (released bool, err error) {
	var w wire.FinalizationReleased
	id, _, err := f.post(ctx, taskID, "finalization/release", repeat.OpFinalizationRelease, 0, &w)
	if err != nil {
		return false, fmt.Errorf("release claim of finalization of task %s: %w", taskID, err)
	}
	f.claims.Forget(id)
	return w.Released, nil
}

// post makes a call about the processor's claim of the task's finalization.
func (f *FinalizationClaimer) post(ctx context.Context, taskID, verb string, op repeat.Op, timeout time.Duration, into any) (uint64, answer, error) {
	id, err := parseID(taskID)
	if err != nil {
		return 0, answer{}, err
	}
	if timeout < 0 {
		return 0, answer{}, fmt.Errorf("timeout is %v, it must not be negative", timeout)
	}
	body, err := json.Marshal(wire.FinalizationClaim{ProcessorID: f.processorID, TimeoutSeconds: int64(wholeSeconds(timeout) / time.Second)})
	if err != nil {
		return 0, answer{}, err
	}
	a, err := f.c.postTo(ctx, taskPath(id, verb), op, body, into)
	return id, a, err
}

// postTo makes a call and decodes its answer.
func (c *Client) postTo(ctx context.Context, path string, op repeat.Op, body []byte, into any) (answer, error) {
	a, err := c.call(ctx, Request{Method: http.MethodPost, Path: path, Body: body, Repeatable: op.Safe(true)})
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return a, fmt.Errorf("decode answer: %w", err)
	}
	return a, nil
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) time.Duration {
	whole := d.Truncate(time.Second)
	if whole < d {
		whole += time.Second
	}
	return whole
}

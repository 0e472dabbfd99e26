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

// FinalizationState is the state of a task as the processors that finalize it see it. For a task without steps it is
// the task's status.
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

// Finalization says which processors tried to finalize a task, and which one has the claim.
type Finalization struct {
	Attempts       []FinalizationAttempt // the last 100 claims, oldest first
	ClaimedBy      string                // the processor that has the claim; "": none
	ClaimExpiresAt time.Time             // an estimate by the server's clock; zero: there is no claim
}

// FinalizationAttempt is one attempt to claim.
type FinalizationAttempt struct {
	ProcessorID      string
	Claimed          bool
	AlreadyClaimedBy string // the processor that had the claim; "": none
	// Reason says why it was not claimed: already_claimed, already_complete, not_ready or another; "" if it was
	// claimed.
	Reason      string
	State       FinalizationState
	Message     string
	AttemptedAt time.Time
}

// Finalization returns the attempts to claim the task's finalization. A task without steps has none. Errors:
// ErrTaskNotFound, ...
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

// FinalizeRequest says how to end a task.
type FinalizeRequest struct {
	Outcome TaskStatus // StatusCompleted or StatusFailed
	Result  []byte     // JSON, up to 1 MiB; for a completed task. Empty: none
	Error   string     // up to 16 KiB; for a failed task
	// Token names a claim of the finalization; the call is refused if that claim is over. 0: the claim that this
	// claimer made last, unless it was released; without such a claim no token is sent and the call is refused only
	// if another processor has the claim.
	Token int64
}

// Finalized is the outcome of a task's finalization.
type Finalized struct {
	// Action is the outcome: StatusCompleted, StatusFailed or StatusCancelled.
	Action TaskStatus
	// AlreadyFinalized is true if the task had ended before, so that the request had no effect. After a lost answer,
	// an earlier try of this call may have ended it; Task.ClaimedBy is the processor that did.
	AlreadyFinalized bool
	// Task is the current task. If it has ended and been removed since, only ID and Status are set.
	Task *Task
}

// Finalize ends the task. If the task has ended already, that is not an error, and the answer says how: of several
// processors all succeed, and one does it. Errors: ErrStepsUnfinished if not all steps have ended;
// ErrTaskAlreadyClaimed if another processor has the claim; ErrStaleClaim if the token's claim is over;
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
	case len(r.Result) > 0 && !hotjson.RoundTrips(r.Result):
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

// FinalizationClaimer finalizes tasks with steps on behalf of one processor: a process that looks at the results of
// the steps and decides how their parent ends. It is for parents with FinalizeClaim; others end automatically.
//
// A claim keeps other processors from doing the same work. The server makes sure, with or without a claim, that the
// parent ends only once: of several processors that finalize it, one does it and all succeed. If a processor dies,
// its claim is free after the claim's timeout.
//
// Every call is repeated if its answer is lost. The server recognizes the processor: claiming again extends the
// claim, and finalizing again reports what was done. A try whose answer was lost may also take effect after its
// repeat. At worst it takes, extends or releases a claim of this processor once more, until the claim's timeout at
// most, or it finalizes a task although the repeat was refused. It never affects another processor's claim, because
// Finalize sends the claim's token.
//
// It is safe for concurrent use.
type FinalizationClaimer struct {
	c           *Client
	processorID string
	claims      remember.Claims
}

// NewFinalizationClaimer returns a claimer for the processor with this id: 1 to 128 of A-Z a-z 0-9 _ . : -. Each
// processor must have its own id, because processors with the same id would share their claims. A processor should
// keep its id when it restarts, so that it finds its claim again.
func NewFinalizationClaimer(c *Client, processorID string) *FinalizationClaimer {
	return &FinalizationClaimer{c: c, processorID: processorID}
}

// FinalizationClaim is the outcome of claiming a finalization.
type FinalizationClaim struct {
	Claimed bool
	HeldBy  string // the processor that has the claim now; "": none
	State   FinalizationState
	Message string // the server's description of the outcome
	// Token is the claim's token, 0 unless Claimed. It grows with every claim; pass it to the systems that the
	// processor writes to.
	Token int64
	// Deadline is the end of the claim unless it is extended, counted as Claim.Deadline; zero unless Claimed.
	Deadline time.Time
}

// ClaimTask claims the finalization of the task for timeout: 1 s to an hour, rounded up to whole seconds; 0: the
// server's default, 30 s. The claim is granted once a step has completed or failed, if no other processor has it. If
// this processor already has it, it is extended, never shortened. If it is not granted, that is not an error; the
// result says why. The claimer remembers the claim for Finalize.
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

// ExtendClaim moves the end of the processor's claim to timeout from now, never to an earlier time; 0 uses the
// timeout of the claim. extended is false if the processor does not have the claim. ClaimTask does the same and also
// returns the new deadline.
func (f *FinalizationClaimer) ExtendClaim(ctx context.Context, taskID string, timeout time.Duration) (extended bool, err error) {
	var w wire.FinalizationExtended
	if _, _, err := f.post(ctx, taskID, "finalization/extend", repeat.OpFinalizationExtend, timeout, &w); err != nil {
		return false, fmt.Errorf("extend claim of finalization of task %s: %w", taskID, err)
	}
	return w.Extended, nil
}

// ReleaseClaim releases the processor's claim. released is false if the processor does not have it, unless it has
// finalized the task. After a lost answer the repeat may find the claim already released; then released is false,
// too. In any case the processor has no claim afterwards.
func (f *FinalizationClaimer) ReleaseClaim(ctx context.Context, taskID string) (released bool, err error) {
	var w wire.FinalizationReleased
	id, _, err := f.post(ctx, taskID, "finalization/release", repeat.OpFinalizationRelease, 0, &w)
	if err != nil {
		return false, fmt.Errorf("release claim of finalization of task %s: %w", taskID, err)
	}
	f.claims.Forget(id)
	return w.Released, nil
}

// post makes a call of the processor about the task's finalization.
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

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

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
	claims      claimMemory
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
		f.claims.remember(remembered{taskID: id, workerID: f.processorID, token: *w.ClaimToken})
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
	f.claims.forget(id)
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

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/internal/repeat"
)

func taskPath(taskID uint64, verb string) string {
	return "/api/tasks/" + strconv.FormatUint(taskID, 10) + "/" + verb
}

// hold names the claim in the body of a call of its holder.
func (cl *Claim) hold() wire.Settle {
	return wire.Settle{WorkerID: cl.workerID, ClaimToken: uint64(cl.Token)}
}

// Complete completes the task with the result: JSON is sent as JSON, other bytes as a payload; an empty result is
// not sent. The tasks in then are submitted atomically with it; one without an idempotency key gets a random one.
// Completing twice with the same claim returns nil, and the first result stands. Errors: ErrStaleClaim if the claim
// is over, ErrTaskCompleted if another claim completed the task, ErrInvalidTask if one of then is malformed, ...;
// then nothing was done.
func (cl *Claim) Complete(ctx context.Context, result []byte, then ...Task) error {
	_, _, err := cl.settle(ctx, settling{kind: repeat.OpComplete, submits: len(then) > 0}, func() ([]byte, error) {
		return completion(cl.hold(), result, then)
	})
	return err
}

// CompleteLate is Complete without follow-ups, but also completes the task if the claim is over by its lease or a Fail
// and the task has not been claimed since: the work is done, and need not be done again.
func (cl *Claim) CompleteLate(ctx context.Context, result []byte) error {
	_, _, err := cl.settle(ctx, settling{kind: repeat.OpComplete}, func() ([]byte, error) {
		s := cl.hold()
		s.Late = true
		return completion(s, result, nil)
	})
	return err
}

// CompleteAndClaim is Complete, and claims the next task atomically in the same request. next.Wait is ignored: the
// server answers at once with one task or none. An empty next.WorkerID is replaced by this claim's.
//
// If there was nothing to claim, the error is ErrNoTasks although the task was completed; continue with ClaimNext,
// which can wait. Any other error means that the task was not completed or, with ErrOutcomeUnknown, that this is
// unknown; repeat the call, or call Complete, to find out.
func (cl *Claim) CompleteAndClaim(ctx context.Context, result []byte, next ClaimRequest) (*Claim, error) {
	next.Wait = 0
	if next.WorkerID == "" {
		next.WorkerID = cl.workerID
	}
	decoded, a, err := cl.settle(ctx, settling{kind: repeat.OpComplete, claims: next.RequestID == ""}, func() ([]byte, error) {
		if err := next.check(); err != nil {
			return nil, fmt.Errorf("claim the next: %w", err)
		}
		w := next.wire()
		s := cl.hold()
		if w.WorkerID == s.WorkerID {
			w.WorkerID = "" // the same
		}
		s.Claim = &w
		return completion(s, result, nil)
	})
	if err != nil {
		return nil, err
	}
	if decoded.Claimed != nil {
		if claim := cl.c.claimOf(&next, decoded.Claimed.Task, decoded.Repeated, &a); claim != nil {
			return claim, nil
		}
	}
	return nil, cl.wrap("claim the next after", ErrNoTasks)
}

// Fail ends the attempt with the cause's text. If attempts are left, the task becomes pending again, after its
// backoff if it has one; otherwise it has failed. A cause that is or wraps Permanent makes it fail at once;
// RetryAfter says how long it waits. Failing twice with the same claim returns nil. Errors: as Complete.
func (cl *Claim) Fail(ctx context.Context, cause error) error {
	_, _, err := cl.settle(ctx, settling{kind: repeat.OpFail}, func() ([]byte, error) { return failure(cl.hold(), cause) })
	return err
}

// Release gives the task back without counting the attempt. The task can be claimed again after delay, 365 days at
// most. Releasing twice with the same claim returns nil. Errors: as Complete.
func (cl *Claim) Release(ctx context.Context, delay time.Duration) error {
	_, _, err := cl.settle(ctx, settling{kind: repeat.OpRelease}, func() ([]byte, error) { return releasing(cl.hold(), delay) })
	return err
}

type settling struct {
	kind repeat.Op
	body []byte
	// submits says that the call submits tasks. It does not share a request then, because the tasks keep their
	// request's trace context.
	submits bool
	claims  bool          // the call has a claim without a claim_request_id
	room    *hotjson.Room // memory for a task that it claims; nil: new memory
	until   time.Time     // the deadline, if no earlier one applies; zero: as for any call
}

// settle makes the call. body makes its body if s has none.
func (cl *Claim) settle(ctx context.Context, s settling, body func() ([]byte, error)) (decoded wire.Answer, a answer, err error) {
	cl.beginSettling()
	defer cl.endSettling()
	if s.body == nil {
		s.body, err = body()
	}
	if err == nil {
		// The answer shows this task and, with a claim, possibly another like it.
		o := opCall{kind: s.kind, id: cl.taskID, body: s.body, weight: 2 * len(cl.Task.Payload), room: s.room, unshared: s.submits, until: s.until}
		if s.claims {
			o.claimAt = hotjson.ClaimAt(s.body)
		}
		decoded, a, err = cl.c.op(ctx, cl.c.lanes.settles, o)
	}
	if err != nil {
		return decoded, a, cl.wrap(string(s.kind), err)
	}
	cl.settledHere()
	return decoded, a, nil
}

// settledHere notes that the claim was settled.
func (cl *Claim) settledHere() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.ended && cl.over != nil {
		close(cl.over)
	}
	cl.ended = true
}

// isOver reports whether settledHere was called.
func (cl *Claim) isOver() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.ended
}

// end returns a channel that is closed when the claim has been settled by this client.
func (cl *Claim) end() <-chan struct{} {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.over == nil {
		cl.over = make(chan struct{})
		if cl.ended {
			close(cl.over)
		}
	}
	return cl.over
}

func (cl *Claim) beginSettling() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.settling++
}

func (cl *Claim) endSettling() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.settling--; cl.settling == 0 && cl.settled != nil {
		close(cl.settled)
		cl.settled = nil
	}
}

// waitSettled waits until no settling call is under way, or ctx ends.
func (cl *Claim) waitSettled(ctx context.Context) {
	cl.mu.Lock()
	if cl.settling > 0 && cl.settled == nil {
		cl.settled = make(chan struct{})
	}
	settled := cl.settled
	cl.mu.Unlock()
	if settled == nil {
		return
	}
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// ExtendExact is Extend without progress, but the lease ends d from now even if that is earlier than before. d must be
// above 0. A worker that cannot do the task now has it come back soon, with the attempt counted.
func (cl *Claim) ExtendExact(ctx context.Context, d time.Duration) (cancelRequested bool, err error) {
	if d <= 0 {
		err = fmt.Errorf("lease is %v, it must be above 0", d)
	} else {
		cancelRequested, err = cl.extend(ctx, wire.Settle{LeaseMS: milliseconds(d), Exact: true}, nil)
	}
	if err != nil {
		return false, cl.wrap(string(repeat.OpExtend), err)
	}
	return cancelRequested, nil
}

// Extend moves the end of the lease to d from now, never to an earlier time; 0 uses the claim's own length. If
// progress is not nil, it is stored as JSON with the task, replacing the last one; if it is larger than 4 KiB, only
// its beginning is stored, as a string. Extend returns whether a cancel of the task was requested. Then the work
// should stop; Complete still counts, while Fail and Release end the task as cancelled. Errors: as Complete.
func (cl *Claim) Extend(ctx context.Context, d time.Duration, progress any) (cancelRequested bool, err error) {
	var raw json.RawMessage
	if d < 0 {
		err = fmt.Errorf("lease is %v, it must not be negative", d)
	} else if progress != nil {
		raw, err = marshal(progress)
	}
	if err == nil {
		cancelRequested, err = cl.extend(ctx, wire.Settle{LeaseMS: milliseconds(d)}, raw)
	}
	if err != nil {
		return false, cl.wrap(string(repeat.OpExtend), err)
	}
	return cancelRequested, nil
}

// extend is Extend with the lease of to, and encoded progress; nil: none.
func (cl *Claim) extend(ctx context.Context, to wire.Settle, progress json.RawMessage) (cancelRequested bool, err error) {
	s := cl.hold()
	s.LeaseMS, s.Exact = to.LeaseMS, to.Exact
	body, err := extension(s, progress)
	if err != nil {
		return false, err
	}
	o := opCall{kind: repeat.OpExtend, id: cl.taskID, body: body, weight: len(cl.Task.Payload)}
	decoded, a, err := cl.c.op(ctx, cl.c.lanes.extends, o)
	if err != nil {
		return false, err
	}
	cl.extended(&decoded, &a, s.Exact)
	return decoded.CancelRequested, nil
}

// extended notes the new lease from the answer to an extend, which may be shorter than before if it is exact.
func (cl *Claim) extended(decoded *wire.Answer, a *answer, exact bool) {
	left := time.Duration(decoded.LeaseRemainingMS) * time.Millisecond
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if end := repeat.LeaseEnd(a.sentAt, left); exact || end.After(cl.endsAt) {
		cl.endsAt, cl.lease = end, left
	}
}

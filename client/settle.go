package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotwire"
	"github.com/claimq/claimq/internal/repeat"
)

func taskPath(taskID uint64, verb string) string {
	return "/api/tasks/" + strconv.FormatUint(taskID, 10) + "/" + verb
}

// hold names the claim in the body of a call of its holder.
func (cl *Claim) hold() wire.Settle {
	return wire.Settle{WorkerID: cl.workerID, ClaimToken: uint64(cl.Token)}
}

// Complete completes the task with the result: JSON is sent as JSON, other bytes as they are, an empty result not at
// all. The tasks in then are submitted atomically with it; one without an idempotency key gets a random one.
// Completing twice with the same claim returns nil, and the first result stands. Errors: ErrStaleClaim if the claim
// is over, ErrTaskCompleted if another claim completed the task, ErrInvalidTask if one of then is malformed, ...;
// then nothing was done.
func (cl *Claim) Complete(ctx context.Context, result []byte, then ...Task) error {
	_, _, err := cl.settle(ctx, settling{kind: repeat.OpComplete, submits: len(then) > 0}, func() ([]byte, error) {
		return completion(cl.hold(), result, then)
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
	decoded, a, err := cl.settle(ctx, settling{kind: repeat.OpComplete}, func() ([]byte, error) {
		if err := next.check(); err != nil {
			return nil, fmt.Errorf("claim the next: %w", err)
		}
		w := next.wire()
		if w.ClaimRequestID == "" {
			w.ClaimRequestID = rand.Text()
		}
		s := cl.hold()
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
	room    *hotwire.Room // memory for a task that it claims; nil: new memory
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
		o := opCall{kind: s.kind, id: cl.taskID, body: s.body, weight: 2 * len(cl.Task.Payload), room: s.room, lonely: s.submits, until: s.until}
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
		cancelRequested, err = cl.extend(ctx, d, raw)
	}
	if err != nil {
		return false, cl.wrap(string(repeat.OpExtend), err)
	}
	return cancelRequested, nil
}

// extend is Extend with encoded progress; nil: none.
func (cl *Claim) extend(ctx context.Context, d time.Duration, progress json.RawMessage) (cancelRequested bool, err error) {
	s := cl.hold()
	s.LeaseMS = milliseconds(d)
	body, err := extension(s, progress)
	if err != nil {
		return false, err
	}
	o := opCall{kind: repeat.OpExtend, id: cl.taskID, body: body, weight: len(cl.Task.Payload)}
	decoded, a, err := cl.c.op(ctx, cl.c.lanes.extends, o)
	if err != nil {
		return false, err
	}
	cl.extended(&decoded, &a)
	return decoded.CancelRequested, nil
}

// extended notes the new lease from the answer to an extend.
func (cl *Claim) extended(decoded *wire.Answer, a *answer) {
	left := time.Duration(decoded.LeaseRemainingMS) * time.Millisecond
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if end := repeat.LeaseEnd(a.sentAt, left); end.After(cl.endsAt) {
		cl.endsAt, cl.lease = end, left
	}
}

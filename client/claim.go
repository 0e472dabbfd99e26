package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

// ClaimRequest says what to claim.
type ClaimRequest struct {
	WorkerID string   // required; 1 to 128 of A-Z a-z 0-9 _ -
	Types    []string // empty: any
	// SortBy is "priority", the default, or "created_at". SortOrder is "asc" or
	// "desc"; the default is desc for priority (higher first, equal ones oldest
	// first) and asc for created_at (oldest first).
	SortBy, SortOrder string
	// Limit is how many ClaimMany takes at most, 1 to 1,000. 0 = 1. ClaimNext
	// takes one.
	Limit int
	// Lease is how long the claim lasts. 0: the task's own, else the server's
	// default.
	Lease time.Duration
	// RequestID lets the server recognize a repeat: a request with the id of an
	// earlier one gets that one's tasks again, and takes none. 1 to 128 bytes.
	// "": made per call, kept over its repeats.
	RequestID string
}

// Claim is one hold of one task: it carries the token, so a late one cannot
// touch a later claim. Its methods are safe for concurrent use.
type Claim struct {
	Task  *Task
	Token int64 // grows with every claim; give it to whatever the work writes to
	// Deadline is when the lease ends if it is not extended, by this process's
	// monotonic clock: counted from before the request was sent, less 0.1 % for
	// clocks that run unlike. It does not move when the claim is extended;
	// LeaseEndsAt does.
	Deadline time.Time
	// Repeated is true if the server had answered the request before: the
	// answer was lost on its way, or RequestID was used again.
	Repeated bool

	c        *Client
	taskID   uint64
	workerID string

	mu       sync.Mutex    // guards what follows
	endsAt   time.Time     // when the lease ends, as of the last answer
	lease    time.Duration // its length, as of the last answer
	settling int           // settling calls under way
	settled  chan struct{} // closed when settling is 0 again; nil before the first

	over     chan struct{} // closed when the claim has been settled here
	overOnce sync.Once
}

// ClaimNext claims the next task. Errors: ErrNoTasks, ErrInvalidWorkerID, ...;
// ErrStaleClaim if req.RequestID has been used and its claim is over.
func (c *Client) ClaimNext(ctx context.Context, req ClaimRequest) (*Claim, error) {
	req.Limit = 0
	claims, err := c.claimTasks(ctx, "/api/tasks/claim", req)
	if err != nil {
		return nil, fmt.Errorf("claim next task: %w", err)
	}
	if len(claims) == 0 {
		return nil, fmt.Errorf("claim next task: %w", ErrNoTasks)
	}
	return claims[0], nil
}

// ClaimMany claims up to req.Limit tasks in one step; if there are none, it
// returns none and no error. It may return fewer than there are: an answer
// stops at 8 MiB. Errors: as of ClaimNext, without ErrNoTasks.
func (c *Client) ClaimMany(ctx context.Context, req ClaimRequest) ([]*Claim, error) {
	req.Limit = max(req.Limit, 1)
	claims, err := c.claimTasks(ctx, "/api/tasks/claim", req)
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	return claims, nil
}

// claimTasks makes a claim call. With a request id of its own making it asks
// anew if what an earlier try claimed is over by the time of the answer.
func (c *Client) claimTasks(ctx context.Context, path string, req ClaimRequest) ([]*Claim, error) {
	if req.WorkerID == "" {
		return nil, fmt.Errorf("%w: it is empty", ErrInvalidWorkerID)
	}
	if req.Lease < 0 {
		return nil, fmt.Errorf("lease is %v, it must not be negative", req.Lease)
	}
	ctx, end := c.bound(ctx)
	defer end()
	for {
		w := wire.Claim{
			WorkerID: req.WorkerID, TaskTypes: req.Types, SortBy: req.SortBy, SortOrder: req.SortOrder,
			Limit: req.Limit, LeaseMS: milliseconds(req.Lease), ClaimRequestID: req.RequestID,
		}
		if w.ClaimRequestID == "" {
			w.ClaimRequestID = rand.Text()
		}
		body, err := json.Marshal(w)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		decoded, a, err := c.post(ctx, path, body)
		if err != nil {
			return nil, err
		}
		if decoded.Task != nil {
			decoded.Tasks = append(decoded.Tasks, *decoded.Task)
		}
		live := c.claimsOf(req, decoded, a)
		switch {
		case len(live) > 0 || len(decoded.Tasks) == 0:
			return live, nil
		case req.RequestID != "":
			return nil, fmt.Errorf("%w: what request %q claimed", ErrStaleClaim, req.RequestID)
		}
	}
}

// claimsOf returns the claims of the answer that are live, and remembers them.
func (c *Client) claimsOf(req ClaimRequest, decoded wire.Answer, a answer) []*Claim {
	claims := make([]*Claim, 0, len(decoded.Tasks))
	for i := range decoded.Tasks {
		t := &decoded.Tasks[i]
		if t.ClaimState == "ended" || t.ClaimToken == nil {
			continue
		}
		cl := &Claim{
			Task: fromWire(t), Token: int64(*t.ClaimToken), Repeated: decoded.Repeated,
			c: c, taskID: t.ID, workerID: req.WorkerID, over: make(chan struct{}),
		}
		if t.LeaseRemainingMS != nil {
			cl.lease = time.Duration(*t.LeaseRemainingMS) * time.Millisecond
		}
		cl.Deadline = repeat.ClaimEnd(a.firstSentAt, a.sentAt, cl.lease, req.Lease, decoded.Repeated)
		cl.endsAt = cl.Deadline
		c.claims.remember(remembered{taskID: t.ID, workerID: req.WorkerID, token: *t.ClaimToken})
		claims = append(claims, cl)
	}
	return claims
}

// LeaseEndsAt returns when the lease ends by the last answer of the server, as
// Deadline counts.
func (cl *Claim) LeaseEndsAt() time.Time {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.endsAt
}

// Complete ends the task as completed, with the result: JSON travels as JSON,
// other bytes as they are, none if it is empty. Completing twice with the same
// claim is nil, and the first result stands. Errors: ErrStaleClaim if the claim
// is over, ErrTaskCompleted if another claim completed the task, ...
func (cl *Claim) Complete(ctx context.Context, result []byte) error {
	return cl.settle(ctx, "complete", func() ([]byte, error) { return completion(cl.workerID, cl.Token, result) })
}

// Fail ends the attempt with the cause's text: the task is pending again if it
// has attempts left, else failed. Failing twice with the same claim is nil.
// Errors: as of Complete.
func (cl *Claim) Fail(ctx context.Context, cause error) error {
	return cl.settle(ctx, "fail", func() ([]byte, error) { return failure(cl.workerID, cl.Token, cause) })
}

// Release gives the task back; the attempt is not counted. delay must be 0:
// the server knows no other yet, and anything else is errors.ErrUnsupported.
// Releasing twice with the same claim is nil. Errors: as of Complete.
func (cl *Claim) Release(ctx context.Context, delay time.Duration) error {
	return cl.settle(ctx, "release", func() ([]byte, error) {
		if delay != 0 {
			return nil, fmt.Errorf("delay of a release: %w", errors.ErrUnsupported)
		}
		return json.Marshal(wire.Settle{WorkerID: cl.workerID, ClaimToken: uint64(cl.Token)})
	})
}

// settle makes a call that ends the claim.
func (cl *Claim) settle(ctx context.Context, verb string, body func() ([]byte, error)) error {
	cl.beginSettling()
	defer cl.endSettling()
	b, err := body()
	if err == nil {
		_, _, err = cl.c.post(ctx, settlePath(cl.taskID, verb), b)
	}
	if err != nil {
		return fmt.Errorf("%s task %d: %w", verb, cl.taskID, err)
	}
	cl.overOnce.Do(func() { close(cl.over) })
	return nil
}

func (cl *Claim) beginSettling() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.settling == 0 {
		cl.settled = make(chan struct{})
	}
	cl.settling++
}

func (cl *Claim) endSettling() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.settling--; cl.settling == 0 {
		close(cl.settled)
	}
}

// waitSettled waits for the settling calls that are under way, or for ctx.
func (cl *Claim) waitSettled(ctx context.Context) {
	cl.mu.Lock()
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

// Extend moves the end of the lease to d from now, never to an earlier time;
// 0 is the claim's own length. It returns whether somebody asked for the task
// to be cancelled. progress must be nil: the server keeps none yet, and
// anything else is errors.ErrUnsupported. Errors: as of Complete.
func (cl *Claim) Extend(ctx context.Context, d time.Duration, progress any) (cancelRequested bool, err error) {
	switch {
	case progress != nil:
		err = fmt.Errorf("progress: %w", errors.ErrUnsupported)
	case d < 0:
		err = fmt.Errorf("lease is %v, it must not be negative", d)
	default:
		cancelRequested, err = cl.extend(ctx, d)
	}
	if err != nil {
		return false, fmt.Errorf("extend claim of task %d: %w", cl.taskID, err)
	}
	return cancelRequested, nil
}

func (cl *Claim) extend(ctx context.Context, d time.Duration) (cancelRequested bool, err error) {
	body, err := json.Marshal(wire.Settle{
		WorkerID: cl.workerID, ClaimToken: uint64(cl.Token), LeaseMS: milliseconds(d),
	})
	if err != nil {
		return false, err
	}
	decoded, a, err := cl.c.post(ctx, settlePath(cl.taskID, "extend"), body)
	if err != nil {
		return false, err
	}
	left := time.Duration(decoded.LeaseRemainingMS) * time.Millisecond
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if end := repeat.LeaseEnd(a.sentAt, left); end.After(cl.endsAt) {
		cl.endsAt, cl.lease = end, left
	}
	return decoded.CancelRequested, nil
}

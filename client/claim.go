package client

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/remember"
	"github.com/claimq/claimq/client/internal/slots"
	"github.com/claimq/claimq/internal/repeat"
)

// ClaimRequest says what to claim.
type ClaimRequest struct {
	WorkerID string   // required; 1 to 128 of A-Z a-z 0-9 _ -
	Types    []string // empty: any
	// MaxAttemptsRemaining takes only tasks that have more attempts left than
	// this, 0 to 1,000; tasks without a limit always have. 0: any.
	MaxAttemptsRemaining int
	// SortBy is "priority", the default, "created_at" or "random". SortOrder is "asc"
	// or "desc"; the default is desc for priority (higher first, equal ones oldest
	// first) and asc for created_at (oldest first).
	SortBy, SortOrder string
	// Lease is how long the claim lasts. 0: the task's own, else its type's, else
	// the server's default.
	Lease time.Duration
	// Wait is for how long to wait for a task when there is none, or until ctx's
	// deadline if that is earlier. It comes on top of Config.Timeout. 0: do not
	// wait.
	Wait time.Duration
	// RequestID lets the server recognize a repeat: a request with the id of an
	// earlier one gets that one's tasks again, and takes none. 1 to 128 bytes.
	// "": made per call, kept over its repeats.
	RequestID string
}

// wire is the request's body. A worker id, a request id and the wait are the
// caller's to set.
func (r *ClaimRequest) wire() wire.Claim {
	return wire.Claim{
		WorkerID: r.WorkerID, TaskTypes: r.Types, MaxAttemptsRemaining: r.MaxAttemptsRemaining,
		SortBy: r.SortBy, SortOrder: r.SortOrder, LeaseMS: milliseconds(r.Lease), ClaimRequestID: r.RequestID,
	}
}

// check refuses what the server would not see as it was meant.
func (r *ClaimRequest) check() error {
	switch {
	case r.WorkerID == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidWorkerID)
	case r.Lease < 0:
		return fmt.Errorf("lease is %v, it must not be negative", r.Lease)
	case r.Wait < 0:
		return fmt.Errorf("wait is %v, it must not be negative", r.Wait)
	}
	return nil
}

// checkLimit refuses what is no number of tasks to claim.
func checkLimit(limit int) error {
	if limit < 1 || limit > slots.ClaimMax {
		return fmt.Errorf("limit is %d, it must be 1 to %d", limit, slots.ClaimMax)
	}
	return nil
}

// Claim is one hold of one task: it carries the token, so a late one cannot
// touch a later claim. Its methods are safe for concurrent use.
type Claim struct {
	Task  *Task
	Token int64 // grows with every claim; give it to whatever the work writes to
	// Deadline is when the lease ends if it is not extended, by this process's
	// monotonic clock: counted from before the request was sent, less 0.1 % for
	// clocks that run unlike. Of a claim that was waited for, that is the request
	// which got the task, one of several. It does not move when the claim is
	// extended; LeaseEndsAt does.
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
	settled  chan struct{} // closed when settling is 0 again; nil: nobody waits for that
	ended    bool          // the claim has been settled here
	over     chan struct{} // closed when it has; nil: nobody waits for that
	lapsed   bool          // who does the work was told that the claim is lost
}

// ClaimNext claims the next task; if there is none it waits for one as long as
// req.Wait says. Errors: ErrNoTasks, ErrInvalidWorkerID, ...; ErrStaleClaim if
// req.RequestID has been used and its claim is over.
//
// When ctx ends while it waits, it has the server end the wait, releases what that has
// claimed, and returns why ctx ended: in milliseconds, or if the server does not answer
// after 2 s at most with ErrOutcomeUnknown, as any claim that was cut off. What that claimed
// is claimable again when the lease has ended.
func (c *Client) ClaimNext(ctx context.Context, req ClaimRequest) (*Claim, error) {
	claims, err := c.claimNext(ctx, req, 0)
	if err != nil {
		return nil, fmt.Errorf("claim next task: %w", err)
	}
	if len(claims) == 0 {
		return nil, fmt.Errorf("claim next task: %w", ErrNoTasks)
	}
	return claims[0], nil
}

// ClaimMany claims up to limit tasks, 1 to 1,000, in one step; if there are none, it
// returns none and no error, after waiting as long as req.Wait says. It may
// return fewer than there are: an answer stops at 8 MiB. Errors: as of
// ClaimNext, without ErrNoTasks.
func (c *Client) ClaimMany(ctx context.Context, req ClaimRequest, limit int) ([]*Claim, error) {
	err := checkLimit(limit)
	var claims []*Claim
	if err == nil {
		claims, err = c.claimNext(ctx, req, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	return claims, nil
}

// claimsOf returns the claims of an answer's tasks that are live, and remembers
// them. a is the call that got them.
func (c *Client) claimsOf(req *ClaimRequest, tasks []wire.Task, repeated bool, a *answer) []*Claim {
	claims := make([]*Claim, 0, len(tasks))
	for i := range tasks {
		if cl := c.claimOf(req, &tasks[i], repeated, a); cl != nil {
			claims = append(claims, cl)
		}
	}
	return claims
}

// claimOf is claimsOf of one task; nil: t is nil, or the claim is not live.
func (c *Client) claimOf(req *ClaimRequest, t *wire.Task, repeated bool, a *answer) *Claim {
	if t == nil || t.ClaimState == "ended" || t.ClaimToken == nil {
		return nil
	}
	repeated = repeated || t.ClaimState != "" // by a complete that is no repeat itself
	cl := &Claim{
		Task: fromWire(t), Token: int64(*t.ClaimToken), Repeated: repeated,
		c: c, taskID: t.ID, workerID: req.WorkerID,
	}
	if t.LeaseRemainingMS != nil {
		cl.lease = time.Duration(*t.LeaseRemainingMS) * time.Millisecond
	}
	asked := req.Lease
	if req.Wait > 0 {
		asked = 0 // the lease began when there was a task, not at the first try
	}
	cl.Deadline = repeat.ClaimEnd(a.firstSentAt, a.sentAt, cl.lease, asked, repeated)
	cl.endsAt = cl.Deadline
	c.claims.Add(remember.Claim{TaskID: t.ID, WorkerID: req.WorkerID, Token: *t.ClaimToken})
	return cl
}

// LogValue is the claim in a log, with the keys by which a Worker logs: task_id, task_type,
// attempt and claim_token.
func (cl *Claim) LogValue() slog.Value {
	return slog.GroupValue(append(cl.Task.LogValue().Group(), slog.Int64("claim_token", cl.Token))...)
}

// logArgs is LogValue as slog.Logger.With takes it.
func (cl *Claim) logArgs() []any {
	group := cl.LogValue().Group()
	args := make([]any, len(group))
	for i, attr := range group {
		args[i] = attr
	}
	return args
}

// LeaseEndsAt returns when the lease ends by the last answer of the server, as
// Deadline counts.
func (cl *Claim) LeaseEndsAt() time.Time {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.endsAt
}

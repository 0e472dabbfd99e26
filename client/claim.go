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
	WorkerID string   // required; 1 to 128 of A-Z a-z 0-9 _ . : @ -
	Types    []string // empty: any
	// MaxAttemptsRemaining, 0 to 1,000, restricts the claim to tasks that have more attempts left than this, or no
	// limit. 0: any task.
	MaxAttemptsRemaining int
	// SortBy is "priority" (the default), "created_at" or "random". SortOrder is "asc" or "desc"; it defaults to desc
	// for priority (highest first, the oldest first among equals) and to asc for created_at (oldest first).
	SortBy, SortOrder string
	// Lease sets how long the claim lasts. 0: the task's own lease, else its type's, else the server's default.
	Lease time.Duration
	// Wait says how long to wait for a task if none can be claimed, or until ctx's deadline if that is earlier. It
	// comes on top of Config.Timeout. 0: do not wait.
	Wait time.Duration
	// RequestID lets the server recognize a repeat: a request with the id of an earlier one gets the same tasks
	// again, and claims no others. 1 to 128 bytes. "": each call makes its own and keeps it over its repeats.
	RequestID string
	// IncludeDependencies gets the results of the steps that a claimed step depends on with the claim: they are in its
	// task's Dependencies, and DependencyResults need not read them. At most 4 MiB of all claims of an answer.
	IncludeDependencies bool
}

// wire returns the request's body. The caller sets the wait and makes sure that there are ids.
func (r *ClaimRequest) wire() wire.Claim {
	w := wire.Claim{
		WorkerID: r.WorkerID, TaskTypes: r.Types, MaxAttemptsRemaining: r.MaxAttemptsRemaining,
		SortBy: r.SortBy, SortOrder: r.SortOrder, LeaseMS: milliseconds(r.Lease), ClaimRequestID: r.RequestID,
	}
	if r.IncludeDependencies {
		w.Include = []string{wire.IncludeDependencies}
	}
	return w
}

// check refuses values that the encoding would change.
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

// checkLimit refuses an invalid number of tasks to claim.
func checkLimit(limit int) error {
	if limit < 1 || limit > slots.ClaimMax {
		return fmt.Errorf("limit is %d, it must be 1 to %d", limit, slots.ClaimMax)
	}
	return nil
}

// Claim is a worker's hold of a task. Its token makes sure that a late call for an old claim cannot affect a newer
// one. Its methods are safe for concurrent use.
type Claim struct {
	Task  *Task
	Token int64 // grows with every claim of the task; pass it to the systems that the work writes to
	// Deadline is the end of the lease unless it is extended, by this process's monotonic clock. It is counted from
	// before the request was sent, less 0.1 % because clocks differ. If the claim waited, that is the request that
	// got the task, one of several. It does not move when the claim is extended; LeaseEndsAt does.
	Deadline time.Time
	// Repeated is true if the server had answered the request before, because that answer was lost or RequestID was
	// used again.
	Repeated bool

	c        *Client
	taskID   uint64
	workerID string

	mu       sync.Mutex    // guards the fields below
	endsAt   time.Time     // as of the last answer
	lease    time.Duration // as of the last answer
	settling int           // settling calls under way
	settled  chan struct{} // closed when settling is 0 again; nil: no goroutine waits for that
	ended    bool          // the claim was settled by this client
	over     chan struct{} // closed when ended becomes true; nil: no goroutine waits for that
	lapsed   bool          // the code that does the work was told that the claim is lost
}

// ClaimNext claims the next task. If no task can be claimed, it waits for one for up to req.Wait. Errors: ErrNoTasks,
// ErrInvalidWorkerID, ...; ErrStaleClaim if req.RequestID has been used before and its claim is over.
//
// If ctx ends during the wait, ClaimNext makes the server end the wait, releases what was claimed, and returns ctx's
// error. That takes milliseconds. If the server does not answer, it takes up to 2 s, and the error is
// ErrOutcomeUnknown as for any claim that was cut off; a task that it claimed can be claimed again when its lease has
// ended.
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

// ClaimMany claims up to limit tasks, 1 to 1,000, at once. If no task is ready, it waits for up to req.Wait, and then
// returns no tasks and no error. It may return fewer tasks than there are, because an answer stops at 8 MiB. Errors:
// as ClaimNext, without ErrNoTasks.
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

// claimsOf returns the live claims among an answer's tasks and remembers them. a is the call that got them.
func (c *Client) claimsOf(req *ClaimRequest, tasks []wire.Task, repeated bool, a *answer) []*Claim {
	claims := make([]*Claim, 0, len(tasks))
	for i := range tasks {
		if cl := c.claimOf(req, &tasks[i], repeated, a); cl != nil {
			claims = append(claims, cl)
		}
	}
	return claims
}

// claimOf is claimsOf for one task. It returns nil if t is nil or the claim is not live.
func (c *Client) claimOf(req *ClaimRequest, t *wire.Task, repeated bool, a *answer) *Claim {
	if t == nil || t.ClaimState == "ended" || t.ClaimToken == nil {
		return nil
	}
	repeated = repeated || t.ClaimState != "" // by a complete that is not a repeat itself
	var both struct {                         // in one piece of memory
		Claim
		task Task
	}
	cl := &both.Claim
	setFromWire(&both.task, t)
	cl.Task, cl.Token, cl.Repeated = &both.task, int64(*t.ClaimToken), repeated
	cl.c, cl.taskID, cl.workerID = c, t.ID, req.WorkerID
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

// LogValue implements slog.LogValuer, with the keys that a Worker logs: task_id, task_type, attempt and claim_token.
func (cl *Claim) LogValue() slog.Value {
	return slog.GroupValue(append(cl.Task.LogValue().Group(), slog.Int64("claim_token", cl.Token))...)
}

// logArgs returns LogValue as arguments for slog.Logger.With.
func (cl *Claim) logArgs() []any {
	group := cl.LogValue().Group()
	args := make([]any, len(group))
	for i, attr := range group {
		args[i] = attr
	}
	return args
}

// LeaseEndsAt returns when the lease ends according to the server's last answer, counted as Deadline is.
func (cl *Claim) LeaseEndsAt() time.Time {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.endsAt
}

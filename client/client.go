package client

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/client/internal/nodes"
	"github.com/claimq/claimq/client/internal/remember"
	"github.com/claimq/claimq/internal/keyfile"
)

// waitMax bounds what a call waits: 10 years, so that sums of durations do not overflow.
const waitMax = 10 * 365 * 24 * time.Hour

// TaskManager is the minimal interface for programs that address tasks by id, the decimal digits of a task's number.
// *Client implements it.
type TaskManager interface {
	// Submit adds a task and returns its id. If the task's IdempotencyKey is taken, it returns the id of the task
	// that has it.
	Submit(ctx context.Context, task Task) (string, error)
	// Claim claims the task for the worker, or extends the claim that the worker has on it. The manager remembers the
	// claim for Complete and Fail. It is not extended automatically.
	Claim(ctx context.Context, taskID, workerID string) error
	// Complete completes the task, using the claim made here. Repeating it is safe and returns nil.
	Complete(ctx context.Context, taskID string, result []byte) error
	// Fail ends the attempt, using the claim made here. The task becomes pending again if it has attempts left;
	// otherwise it has failed.
	Fail(ctx context.Context, taskID string, err error) error
	// Retry makes a failed, cancelled or claimed task pending.
	Retry(ctx context.Context, taskID string) error
	// Get returns the task.
	Get(ctx context.Context, taskID string) (*Task, error)
	// GetByIdempotencyKey returns the task that has the key.
	GetByIdempotencyKey(ctx context.Context, key string) (*Task, error)
	// List returns all tasks with the status, oldest first; "" selects all.
	List(ctx context.Context, status TaskStatus) ([]*Task, error)
	// Delete removes a task that has ended, and frees its key.
	Delete(ctx context.Context, taskID string) error
	// Close ends the calls under way. Every later call returns ErrClosed.
	Close() error
}

var _ TaskManager = (*Client)(nil)

// Client makes calls to a cluster. It is safe for concurrent use.
type Client struct {
	apiKey  string
	keyFile *keyfile.File // replaces apiKey; nil: none
	timeout time.Duration // for calls whose context has no deadline
	logger  *slog.Logger
	http    *http.Client
	waiting *http.Client // for requests that the server may hold
	nodes   *nodes.Nodes
	claims  remember.Claims
	lanes   lanes

	counts clientCounts

	// life ends with Close, with ErrClosed as its cause.
	life    context.Context
	endLife context.CancelCauseFunc

	mu     sync.Mutex // guards closed and orders running.Add before Close's Wait
	closed bool
	// running counts calls under way, the goroutines that send shared requests, and those of KeepAlive.
	running sync.WaitGroup
}

func newClosable(cfg Config, transport, waiting http.RoundTripper, endpoints []string) *Client {
	// Redirects name the leader; call decides whether to follow.
	asIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{
		apiKey:  cfg.APIKey,
		timeout: cfg.Timeout,
		logger:  cfg.Logger,
		http:    &http.Client{Transport: transport, CheckRedirect: asIs},
		waiting: &http.Client{Transport: waiting, CheckRedirect: asIs},
		nodes:   nodes.New(endpoints),
	}
	c.life, c.endLife = context.WithCancelCause(context.Background())
	c.lanes = c.newLanes()
	return c
}

// Close ends the calls under way, waits for them and for the goroutines of KeepAlive, and closes the connections. It
// may be called twice. The error is always nil.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.lanes.close() // first, because an ended request would let the next one begin
	c.endLife(ErrClosed)
	c.running.Wait()
	c.http.CloseIdleConnections()
	c.waiting.CloseIdleConnections()
	return nil
}

// begin counts something that Close waits for; the caller must call c.running.Done. It returns ErrClosed after Close.
func (c *Client) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.running.Add(1)
	return nil
}

// bound returns a context that ends with ctx, with Close and, if ctx has no deadline, after the configured timeout
// plus wait.
func (c *Client) bound(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(ErrClosed) })
	end := func() { stop(); cancel(nil) }
	if _, ok := ctx.Deadline(); ok {
		return ctx, end
	}
	timed, stopTimer := context.WithTimeout(ctx, min(c.timeout, waitMax)+min(max(wait, 0), waitMax))
	return timed, func() { stopTimer(); end() }
}

// Stats are a client's counters since New, for metrics. They have JSON names so that package expvar can publish them.
type Stats struct {
	// Requests counts HTTP requests, including waiting claims and repeats.
	Requests int64 `json:"requests"`
	// Repeats counts the requests that were sent again, because the node could not do it then or the outcome was
	// unknown.
	Repeats int64 `json:"repeats"`
	// Acts counts logical operations: each call, and each op of a batch. Repeats do not count, but a call that could
	// not be done in a shared request counts again. Acts/Requests is the mean batch size.
	Acts int64 `json:"acts"`
	// Unknown counts operations that ended with ErrOutcomeUnknown. Those whose context was cancelled do not count,
	// because a worker cancels claims when it stops or more types have room.
	Unknown int64 `json:"unknown"`
}

// Stats returns the client's counters. They are not read at one instant.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{Requests: n.requests.Load(), Repeats: n.repeats.Load(), Acts: n.acts.Load(), Unknown: n.unknown.Load()}
}

// clientCounts holds the counters of Stats.
type clientCounts struct {
	requests, repeats, acts, unknown atomic.Int64
}

// ended counts the outcome of acts. ctx is the caller's.
func (n *clientCounts) ended(ctx context.Context, acts int, err error) {
	if errors.Is(err, ErrOutcomeUnknown) && !errors.Is(ctx.Err(), context.Canceled) {
		n.unknown.Add(int64(acts))
	}
}

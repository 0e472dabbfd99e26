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

// waitMax bounds what a call waits: beyond it nobody can tell the difference.
const waitMax = 10 * 365 * 24 * time.Hour

// TaskManager is the whole of what a program needs that knows its tasks by id.
// *Client is one. An id is the decimal digits of the task's number.
type TaskManager interface {
	// Submit adds a task and returns its id. If the task's IdempotencyKey is
	// taken, it returns the id of the task that has it.
	Submit(ctx context.Context, task Task) (string, error)
	// Claim takes the pending task for the worker, or extends the claim that
	// the worker has on it. The manager remembers the claim for Complete and
	// Fail. Nothing extends it by itself.
	Claim(ctx context.Context, taskID, workerID string) error
	// Complete ends the task as completed, with the claim made here. Doing it
	// twice is nil, so that a repeat is safe.
	Complete(ctx context.Context, taskID string, result []byte) error
	// Fail ends the attempt, with the claim made here: the task is pending
	// again if it has attempts left, else failed.
	Fail(ctx context.Context, taskID string, err error) error
	// Retry makes a failed, cancelled or claimed task pending.
	Retry(ctx context.Context, taskID string) error
	// Get returns the task.
	Get(ctx context.Context, taskID string) (*Task, error)
	// GetByIdempotencyKey returns the task that has the key.
	GetByIdempotencyKey(ctx context.Context, key string) (*Task, error)
	// List returns all tasks with the status, "" = all, oldest first.
	List(ctx context.Context, status TaskStatus) ([]*Task, error)
	// Delete removes a task that has ended, and frees its key.
	Delete(ctx context.Context, taskID string) error
	// Close ends what is under way. Every later call is ErrClosed.
	Close() error
}

var _ TaskManager = (*Client)(nil)

// Client makes calls to a cluster. It is safe for concurrent use.
type Client struct {
	apiKey  string
	keyFile *keyfile.File // in place of apiKey; nil: none
	timeout time.Duration // of a call whose context has no deadline
	logger  *slog.Logger
	http    *http.Client
	waiting *http.Client // for requests that the server may hold
	nodes   *nodes.Nodes
	claims  remember.Claims
	lanes   lanes
	// wholeAnswers is true once a server refused to answer a batch with less.
	wholeAnswers atomic.Bool

	counts clientCounts

	// life ends with Close, with ErrClosed as its cause.
	life    context.Context
	endLife context.CancelCauseFunc

	mu     sync.Mutex // guards closed and orders running.Add before Close's Wait
	closed bool
	// running counts calls under way, the goroutines that make shared requests, and
	// KeepAlive's.
	running sync.WaitGroup
}

func newClosable(cfg Config, transport, waiting http.RoundTripper, endpoints []string) *Client {
	// A redirect names the leader; call decides what to make of it.
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

// Close ends the calls that are under way, waits for them and for what
// KeepAlive started, and closes the connections. It may be called twice. The
// error is nil.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.lanes.close() // first: what ends a request would let the next begin
	c.endLife(ErrClosed)
	c.running.Wait()
	c.http.CloseIdleConnections()
	c.waiting.CloseIdleConnections()
	return nil
}

// begin counts something that Close has to wait for; the caller calls
// c.running.Done. It fails with ErrClosed.
func (c *Client) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.running.Add(1)
	return nil
}

// bound returns a context that ends with ctx, with Close, and, if ctx has no
// deadline of its own, after the configured timeout and what the call is to wait
// beside.
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

// Stats are a client's counts since New, for metrics. Their JSON has a name for each, for
// package expvar.
type Stats struct {
	// Requests are those that were sent, of HTTP, claims that waited and repeats too.
	Requests int64 `json:"requests"`
	// Repeats are those of Requests that were sent again, for the node could not do it then
	// or nobody knows whether it was done.
	Repeats int64 `json:"repeats"`
	// Acts are what the requests were for: of one that many calls share, or that is a batch,
	// each. Repeats do not count; what had to be made by itself after all counts again. So Acts
	// by Requests is how many go together.
	Acts int64 `json:"acts"`
	// Unknown are the acts that ended with ErrOutcomeUnknown, but for those whose context was
	// cancelled: a worker that stops, or has room for more types, does so to its claims.
	Unknown int64 `json:"unknown"`
}

// Stats returns the client's counts. They are read one after the other.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{Requests: n.requests.Load(), Repeats: n.repeats.Load(), Acts: n.acts.Load(), Unknown: n.unknown.Load()}
}

// clientCounts are those of Stats.
type clientCounts struct {
	requests, repeats, acts, unknown atomic.Int64
}

// ended counts what acts came to. ctx is the caller's.
func (n *clientCounts) ended(ctx context.Context, acts int, err error) {
	if errors.Is(err, ErrOutcomeUnknown) && !errors.Is(ctx.Err(), context.Canceled) {
		n.unknown.Add(int64(acts))
	}
}

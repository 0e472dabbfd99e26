package client

import (
	"context"
	"errors"
	"sync/atomic"
)

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

// WorkerStats are a worker's counts since its Run has begun, for metrics. Their JSON has a name
// for each, for package expvar. What one attempt does is seen by Middleware.
type WorkerStats struct {
	Slots   int64 `json:"slots"`   // WorkerConfig.Concurrency
	Running int64 `json:"running"` // handlers that run now
	Claimed int64 `json:"claimed"` // claims that the worker got
	// Completed, Failed and Released are how claims were settled.
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Released  int64 `json:"released"`
	// Retries are those of Failed that left their tasks another attempt.
	Retries int64 `json:"retries"`
	// Lost are claims that were over before they could be settled, or of which it
	// is not known whether they were settled.
	Lost   int64 `json:"lost"`
	Panics int64 `json:"panics"` // of handlers; their attempts are counted as failed too
}

// Stats returns the worker's counts. They are read one after the other.
func (w *Worker) Stats() WorkerStats {
	n := &w.counts
	return WorkerStats{
		Slots: int64(w.cfg.Concurrency), Running: n.running.Load(), Claimed: n.claimed.Load(), Completed: n.completed.Load(), Failed: n.failed.Load(),
		Released: n.released.Load(), Retries: n.retries.Load(), Lost: n.lost.Load(), Panics: n.panics.Load(),
	}
}

// workerCounts are those of WorkerStats.
type workerCounts struct {
	running, claimed, completed, failed, released, retries, lost, panics atomic.Int64
}

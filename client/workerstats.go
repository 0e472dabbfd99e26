package client

import "sync/atomic"

// WorkerStats are a worker's counts since its Run has begun, for metrics. What
// one attempt does is seen by Middleware.
type WorkerStats struct {
	Running int64 // handlers that run now
	Claimed int64 // claims that the worker got
	// Completed, Failed and Released are how claims were settled.
	Completed, Failed, Released int64
	// Lost are claims that were over before they could be settled, or of which it
	// is not known whether they were settled.
	Lost   int64
	Panics int64 // of handlers; their attempts are counted as failed too
}

// Stats returns the worker's counts. They are read one after the other.
func (w *Worker) Stats() WorkerStats {
	c := &w.counts
	return WorkerStats{
		Running: c.running.Load(), Claimed: c.claimed.Load(), Completed: c.completed.Load(), Failed: c.failed.Load(),
		Released: c.released.Load(), Lost: c.lost.Load(), Panics: c.panics.Load(),
	}
}

// counts are those of WorkerStats.
type counts struct {
	running, claimed, completed, failed, released, lost, panics atomic.Int64
}

package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// unhealthyAfter limits how long a worker may go without a successful answer before it is unhealthy. A claim waits up to 6
// s for a task, and a call is repeated for 30 s.
const unhealthyAfter = 60 * time.Second

var errNotRunning = errors.New("the worker is not running")

// Health returns nil while Run is running and the cluster answers. It returns an error before and after Run, and if
// the worker has been claiming or settling for more than 60 s without a successful answer; the error then includes
// the last failure. A worker whose slots are all busy, or that waits for tasks, is healthy.
func (w *Worker) Health() error { return w.health.check() }

// health is the state behind Health. It is safe for concurrent use.
type health struct {
	claims, settles callHealth

	mu      sync.Mutex
	running bool
}

func (h *health) begun() { h.set(true) }
func (h *health) ended() { h.set(false) }

func (h *health) set(running bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = running
}

func (h *health) check() error {
	h.mu.Lock()
	running := h.running
	h.mu.Unlock()
	if !running {
		return errNotRunning
	}
	return errors.Join(h.claims.check("claiming"), h.settles.check("settling"))
}

// callHealth tracks how long calls of one kind have had no successful answer.
type callHealth struct {
	mu    sync.Mutex
	calls int       // under way, including repeats and pauses
	since time.Time // the last answer, or the beginning of the first call after a while without calls
	last  error     // the last error since then
	ended time.Time // when the last call ended; only kept while there is an error
}

// asking notes that a call begins; stopped notes that it has ended.
func (e *callHealth) asking() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls++; e.calls > 1 {
		return
	}
	if now := time.Now(); e.last == nil || now.Sub(e.ended) > unhealthyAfter {
		e.since, e.last = now, nil
	}
}

func (e *callHealth) stopped() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls--; e.last != nil {
		e.ended = time.Now()
	}
}

func (e *callHealth) answered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since, e.last = time.Now(), nil
}

func (e *callHealth) failed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = err
}

func (e *callHealth) check(what string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	silence := time.Since(e.since)
	if e.calls == 0 || silence <= unhealthyAfter {
		return nil
	}
	if e.last == nil {
		return fmt.Errorf("%s for %v without an answer", what, silence.Round(time.Second))
	}
	return fmt.Errorf("%s for %v without success: %w", what, silence.Round(time.Second), e.last)
}

// WorkerStats are a worker's counters since its Run began, for metrics. They have JSON names so that package expvar
// can publish them. To observe single attempts, use Middleware.
type WorkerStats struct {
	Slots   int64 `json:"slots"`   // WorkerConfig.Concurrency
	Running int64 `json:"running"` // running handlers
	Claimed int64 `json:"claimed"` // claims that the worker got
	// Completed, Failed and Released count settled claims by outcome.
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Released  int64 `json:"released"`
	// Retries counts those of Failed whose tasks had attempts left.
	Retries int64 `json:"retries"`
	// Lost counts claims that were over before they were settled, or whose settling has an unknown outcome.
	Lost   int64 `json:"lost"`
	Panics int64 `json:"panics"` // of handlers; their attempts also count as Failed
}

// Stats returns the worker's counters. They are not read at one instant.
func (w *Worker) Stats() WorkerStats {
	n := &w.counts
	return WorkerStats{
		Slots: int64(w.cfg.Concurrency), Running: n.running.Load(), Claimed: n.claimed.Load(), Completed: n.completed.Load(), Failed: n.failed.Load(),
		Released: n.released.Load(), Retries: n.retries.Load(), Lost: n.lost.Load(), Panics: n.panics.Load(),
	}
}

// workerCounts holds the counters of WorkerStats.
type workerCounts struct {
	running, claimed, completed, failed, released, retries, lost, panics atomic.Int64
}

// Errors reported about a task that are not errors of a call.
var (
	errAbandoned    = errors.New("the handler ignores that its context has ended; its claim expires")
	errNotRequested = errors.New("the worker did not ask for it")
)

// tell reports a problem to Logger, with args, and to OnError, with err. task may be nil.
func (r *workerRun) tell(ctx context.Context, level slog.Level, what string, task *Task, err error, args ...any) {
	cfg := &r.w.cfg
	cfg.Logger.Log(ctx, level, "claimq: "+what, append([]any{"worker_id", cfg.ID}, args...)...)
	if cfg.OnError == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			cfg.Logger.ErrorContext(ctx, "claimq: WorkerConfig.OnError panicked", "worker_id", cfg.ID, "panic", fmt.Sprint(v))
		}
	}()
	cfg.OnError(ctx, task, err)
}

// tellOf is tell for a claim. Without args, err is logged.
func (r *workerRun) tellOf(cl *Claim, level slog.Level, what string, err error, args ...any) {
	if len(args) == 0 {
		args = []any{"err", err}
	}
	r.tell(withTraceOf(r.life, cl), level, what, cl.Task, cl.wrap("", err), append(cl.logArgs(), args...)...)
}

// warnings is a slog.Handler that drops levels below Warn.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

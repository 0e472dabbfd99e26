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

// deafAfter is how long a worker may have had no successful answer before it is
// not healthy: a claim waits up to 6 s for a task, and a call is repeated for
// 30 s.
const deafAfter = 60 * time.Second

var errNotRunning = errors.New("the worker is not running")

// Health returns nil while Run runs and the cluster answers. It is an error
// before and after, and if the worker has been claiming, or settling what it
// holds, for more than 60 s without one successful answer: then it says what
// failed last. A worker that is busy in all its slots, or that waits for tasks
// that do not come, is healthy.
func (w *Worker) Health() error { return w.health.check() }

// health is what Health goes by. It is safe for concurrent use.
type health struct {
	claims, settles ear

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

// ear notes how long calls of one kind have got no successful answer.
type ear struct {
	mu    sync.Mutex
	calls int       // under way, their repeats and pauses included
	since time.Time // the last answer, or the begin of the first call after a while without any
	last  error     // of a call, since then
	ended time.Time // of the last call
}

// asking notes that a call begins; stopped that it is over.
func (e *ear) asking() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	if now := time.Now(); e.calls == 1 && (e.last == nil || now.Sub(e.ended) > deafAfter) {
		e.since, e.last = now, nil
	}
}

func (e *ear) stopped() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls--
	e.ended = time.Now()
}

func (e *ear) answered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since, e.last = time.Now(), nil
}

func (e *ear) failed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = err
}

func (e *ear) check(what string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	silence := time.Since(e.since)
	if e.calls == 0 || silence <= deafAfter {
		return nil
	}
	if e.last == nil {
		return fmt.Errorf("%s for %v without an answer", what, silence.Round(time.Second))
	}
	return fmt.Errorf("%s for %v without success: %w", what, silence.Round(time.Second), e.last)
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

// What else is told of a task than its errors.
var (
	errLeftBehind = errors.New("the handler ignores that its context has ended; its claim expires")
	errUnasked    = errors.New("the worker did not ask for it")
)

// tell tells what went wrong, the Logger, with args, and OnError, with err. task is nil if
// it is about none.
func (r *shift) tell(ctx context.Context, level slog.Level, what string, task *Task, err error, args ...any) {
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

// tellOf is tell of a claim. Without args the log has err.
func (r *shift) tellOf(cl *Claim, level slog.Level, what string, err error, args ...any) {
	if len(args) == 0 {
		args = []any{"err", err}
	}
	r.tell(withTraceOf(r.life, cl), level, what, cl.Task, cl.wrap("", err), append(cl.logArgs(), args...)...)
}

// warnings is a handler that passes on what is at level Warn and above.
type warnings struct{ slog.Handler }

// Enabled is that of slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs is that of slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup is that of slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

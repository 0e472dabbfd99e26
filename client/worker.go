package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/client/internal/lines"
	"github.com/claimq/claimq/client/internal/slots"
)

// stopGrace is how long after their contexts have ended with ErrShutdown the
// handlers have to return and be settled, before Run leaves them behind.
const stopGrace = 10 * time.Second

// A Worker claims tasks of the types that it has handlers for, runs the handlers,
// extends the claims meanwhile, and settles them by what the handlers return:
//
//	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 20})
//	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
//		return send(ctx, job.Params, job.Token)
//	})
//	err = w.Run(ctx) // until ctx ends
//
// A handler may run twice for one task, at worst at the same time: a claim whose
// lease could not be extended is given to somebody else. Its context ends before
// that with ErrLeaseLost, and whatever the work writes to can refuse the older
// Token. docs/workers.md tells what a handler must do.
type Worker struct {
	c   *Client
	cfg WorkerConfig // with its defaults filled in
	// jobLogger is WorkerConfig.Logger as it was given: Job.Log passes on what is below Warn, too.
	jobLogger *slog.Logger

	mu         sync.Mutex // guards what follows, until Run has begun: then it does not change
	begun      bool
	handlers   map[string]*handler
	middleware []Middleware
	mistakes   []error // of Handle, for Run to return
	atOnce     int     // how many handlers may run now; it changes later, too

	now    context.Context // ends with StopNow
	endNow context.CancelFunc

	slots    *slots.Slots // set by Run
	health   health
	backoffs typeBackoffs
	counts   workerCounts
}

// NewWorker checks the configuration and returns a worker without handlers. It
// makes no call. The client may be used for other things too, and is the
// caller's to close, after Run has returned.
func NewWorker(c *Client, cfg WorkerConfig) (*Worker, error) {
	if c == nil {
		return nil, errors.New("new worker: there is no client")
	}
	noRetry, logger := cfg.Retry == nil, cfg.Logger
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("new worker: %w", err)
	}
	w := &Worker{c: c, cfg: cfg, jobLogger: logger, handlers: map[string]*handler{}, backoffs: typeBackoffs{c: c, server: noRetry, known: map[string]*typeBackoff{}}}
	w.atOnce = cfg.Concurrency
	w.now, w.endNow = context.WithCancel(context.Background())
	return w, nil
}

// SetConcurrency changes how many handlers run at a time, from 0 to WorkerConfig.Concurrency, which
// it was until then. A worker that runs more of them claims nothing until enough have
// returned; with 0 it claims nothing until it is called again. It may be called at any time.
func (w *Worker) SetConcurrency(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(max(n, 0), w.cfg.Concurrency)
	if w.begun {
		w.slots.Resize(n - w.atOnce)
	}
	w.atOnce = n
}

// ID returns the worker's id: WorkerConfig.ID or the one that was made up.
func (w *Worker) ID() string { return w.cfg.ID }

// StopNow ends Run without WorkerConfig.StopWait: it claims nothing more, and the
// contexts of the handlers end. It is for who has ended Run's context and does not want
// to wait any more, at a second signal to stop, say. It does not wait for Run, may be
// called at any time and again, and before Run it has Run return at once.
func (w *Worker) StopNow() { w.endNow() }

// Run claims and handles tasks until ctx ends. Then it claims nothing more and
// gives the running handlers WorkerConfig.StopWait to finish, or until StopNow. After that their
// contexts end with ErrShutdown: what they return then counts, but an error that is
// neither Permanent nor RetryAfter gives the task back, without a counted attempt.
// A handler that has not returned 10 s later is left behind, and its claim
// expires.
//
// No goroutine of the worker is left when Run returns, but those of handlers that
// were left behind. A Worker runs once. The error is nil after ctx's end, or
// names the tasks whose handlers were left behind and those that could not be
// settled. Before that Run ends as at ctx's end when the client was closed, with
// ErrClosed, and when claims are refused for the API key, with ErrUnauthorized after
// 10 s of nothing else or ErrForbidden: asking on would not help. It also says what is wrong with the handlers.
// That the cluster does not answer, or has enough, ends nothing: see Health.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return fmt.Errorf("run worker: %w", err)
	}
	defer w.health.ended()
	r := newShift(ctx, w)
	defer r.end()
	w.cfg.Logger.InfoContext(ctx, "claimq: worker has begun", "worker_id", w.cfg.ID, "task_types", w.slots.Names(), "concurrency", w.cfg.Concurrency)
	err := r.claimTasks()
	if err = errors.Join(err, r.stop()); err != nil {
		return fmt.Errorf("run worker %s: %w", w.cfg.ID, err)
	}
	return nil
}

// begin makes the handlers final.
func (w *Worker) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.begun:
		return errors.New("it has been run before")
	case len(w.mistakes) > 0:
		return errors.Join(w.mistakes...)
	case len(w.handlers) == 0:
		return errors.New("it has no handlers")
	case len(w.handlers) > handlersMax:
		return fmt.Errorf("it has %d handlers, at most %d", len(w.handlers), handlersMax)
	}
	w.begun = true
	atOnce := make(map[string]int, len(w.handlers))
	for name, h := range w.handlers {
		atOnce[name] = h.concurrency
	}
	w.slots = slots.New(w.cfg.Concurrency, atOnce)
	w.slots.Resize(w.atOnce - w.cfg.Concurrency)
	w.health.begun()
	return nil
}

// shift is one Run of a worker.
type shift struct {
	w *Worker
	// claiming ends when nothing more is to be claimed.
	claiming    context.Context
	endClaiming context.CancelFunc
	// life is that of the extends and the settling calls; it ends when Run has to
	// return.
	life    context.Context
	endLife context.CancelFunc
	// handling is what the handlers' contexts are of: it ends with life, and with the
	// client, with ErrClosed as its cause.
	handling    context.Context
	endHandling context.CancelCauseFunc
	// unhook ends that StopNow ends claiming, and the client's end handling.
	unhook func()

	lines lines.Lines[*attempt]

	// The claim loop's own.
	failures     int       // of claims, since the last that was answered
	unknownSince time.Time // when the first of them was refused as of a key that is not known

	mu        sync.Mutex // guards what follows
	left      []string   // tasks whose handlers did not return
	unsettled []string   // tasks that could not be settled while stopping
}

func newShift(ctx context.Context, w *Worker) *shift {
	r := &shift{w: w}
	r.claiming, r.endClaiming = context.WithCancel(ctx)
	r.life, r.endLife = context.WithCancel(context.WithoutCancel(ctx))
	r.handling, r.endHandling = context.WithCancelCause(r.life)
	now := context.AfterFunc(w.now, r.endClaiming)
	closed := context.AfterFunc(w.c.life, func() { r.endHandling(ErrClosed) })
	r.unhook = func() { now(); closed() }
	if w.now.Err() != nil {
		r.endClaiming()
	}
	return r
}

func (r *shift) end() {
	r.unhook()
	r.endClaiming()
	r.endLife()
	r.endHandling(nil)
}

// stop waits for the handlers that run, as Run says, and returns the outcome of
// those that it did not end well for.
func (r *shift) stop() error {
	r.endClaiming()
	idle := make(chan struct{})
	go func() {
		r.lines.Wait()
		close(idle)
	}()
	if !waitIdle(r.w.now, idle, r.w.cfg.StopWait) {
		r.lines.Hurry()
		waitIdle(r.life, idle, stopGrace)
	}
	r.endLife()
	r.leaveBehind()
	<-idle
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	if len(r.left) > 0 {
		errs = append(errs, fmt.Errorf("%s still running, left behind; claims end with their leases: %s", count(len(r.left), "handler"), sample(r.left)))
	}
	if len(r.unsettled) > 0 {
		errs = append(errs, fmt.Errorf("%s not settled in time: %s", count(len(r.unsettled), "task"), sample(r.unsettled)))
	}
	return errors.Join(errs...)
}

// waitIdle waits for idle to be closed, for d at most and until ctx ends, and reports
// whether it is.
func waitIdle(ctx context.Context, idle <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// count is a number of things, as 1 task or 2 tasks.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// samplesMax bounds how many tasks an error names.
const samplesMax = 10

func sample(names []string) string {
	s := names
	if len(s) > samplesMax {
		s = s[:samplesMax]
	}
	text := fmt.Sprint("task ", s[0])
	for _, name := range s[1:] {
		text += ", " + name
	}
	if len(names) > samplesMax {
		text += ", ..."
	}
	return text
}

const (
	workerConcurrency    = 10 // default of WorkerConfig.Concurrency
	workerConcurrencyMax = 10_000
	stopWaitDefault      = 30 * time.Second
	// The bounds of a lease, as the server has them.
	leaseMin = 100 * time.Millisecond
	leaseMax = 24 * time.Hour
	// nameBytesMax bounds a worker's id and a task type.
	nameBytesMax = 128
)

// NoStopWait in WorkerConfig.StopWait is no wait.
const NoStopWait = time.Duration(-1)

// WorkerConfig says how a Worker works. The zero value is good.
type WorkerConfig struct {
	// ID is the worker's name: 1 to 128 of A-Z a-z 0-9 _ -. No two workers that
	// run at the same time should have the same. "": the host's name, the process's
	// number and something random.
	ID string
	// Concurrency is how many handlers run at a time, up to 10,000; the worker
	// never holds more tasks than that. 0 = 10.
	Concurrency int
	// Lease is how long the claims last unless they are extended, 100 ms to 24 h:
	// so long nobody else gets the task of a worker that died. The worker extends
	// at a third of it. 0: the task's own, else its type's, else the server's
	// default, 30 s.
	Lease time.Duration
	// Timeout is how long a handler may take: then its context ends with
	// context.DeadlineExceeded, and the attempt fails unless it returns nil. A
	// handler that goes on for StopWait after that keeps its slot, but its claim is
	// not extended any more. 0: no limit. WithTimeout is for one type.
	Timeout time.Duration
	// StopWait is for how long Run waits, when its context has ended, before it
	// ends the contexts of the handlers. 0 = 30 s; NoStopWait: it ends them at once.
	StopWait time.Duration
	// Retry is how long a task waits after an attempt, the Task.Attempts-th, has failed
	// with err, where neither the task nor its type has a backoff, and err is not
	// RetryAfter; below 0 is 0. Whether the type has one is asked of the server at most
	// once a minute. It must be safe for concurrent use. nil: the server's default says it,
	// or if it has none 1 s, doubled for each attempt up to 10 min, give or take 20 %.
	Retry func(task *Task, err error) time.Duration
	// OnError is called with what goes wrong, and neither a handler nor the error of Run
	// tells: all that Logger hears at Warn and Error. Of a task, those are a *PanicError
	// and what is ErrLeaseLost or an error of its settling call: the claim was lost, and
	// what the handler did may not count; without a task, nil, it is a claim that failed.
	// ctx has the values of Run's, and the task's trace context. It is called in the
	// goroutine that is to go on, so it should not take long; it must be safe for
	// concurrent use. nil: nobody is called.
	OnError func(ctx context.Context, task *Task, err error)
	// Logger hears at level Info when the worker begins, ends, and is answered
	// again; at Warn what goes wrong; at Error of panics. nil: what is at Warn and above
	// goes to slog.Default; slog.New(slog.DiscardHandler) hears nothing.
	Logger *slog.Logger
}

// withDefaults checks the configuration and fills in its defaults.
func (cfg WorkerConfig) withDefaults() (WorkerConfig, error) {
	if cfg.ID == "" {
		host, _ := os.Hostname()
		cfg.ID = madeUpID(host, os.Getpid())
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = workerConcurrency
	}
	switch cfg.StopWait {
	case 0:
		cfg.StopWait = stopWaitDefault
	case NoStopWait:
		cfg.StopWait = 0
	}
	if cfg.Retry == nil {
		cfg.Retry = defaultRetry
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(warnings{slog.Default().Handler()})
	}
	switch {
	case !isName(cfg.ID, "_-"):
		return cfg, fmt.Errorf("%w: %q is not 1 to %d of A-Z a-z 0-9 _ -", ErrInvalidWorkerID, cfg.ID, nameBytesMax)
	case cfg.Concurrency < 0 || cfg.Concurrency > workerConcurrencyMax:
		return cfg, fmt.Errorf("concurrency is %d, it must be 1 to %d", cfg.Concurrency, workerConcurrencyMax)
	case cfg.Lease != 0 && (cfg.Lease < leaseMin || cfg.Lease > leaseMax):
		return cfg, fmt.Errorf("lease is %v, it must be %v to %v", cfg.Lease, leaseMin, leaseMax)
	case cfg.Timeout < 0:
		return cfg, fmt.Errorf("timeout is %v, it must not be negative", cfg.Timeout)
	case cfg.StopWait < 0:
		return cfg, fmt.Errorf("stop wait is %v, it must not be negative, but for NoStopWait", cfg.StopWait)
	}
	return cfg, nil
}

// isName reports whether s is 1 to 128 ASCII letters, digits and characters of
// others.
func isName(s, others string) bool {
	if len(s) == 0 || len(s) > nameBytesMax {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i], others) {
			return false
		}
	}
	return true
}

func isNameByte(b byte, others string) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte(others, b) >= 0
}

// madeUpID is host-pid-random, made to fit what the server takes.
func madeUpID(host string, pid int) string {
	const randomLen = 10
	rest := "-" + strconv.Itoa(pid) + "-" + strings.ToLower(rand.Text()[:randomLen])
	clean := []byte(host)
	for i, b := range clean {
		if !isNameByte(b, "_-") {
			clean[i] = '-'
		}
	}
	if len(clean) == 0 {
		clean = []byte("worker")
	}
	return string(clean[:min(len(clean), nameBytesMax-len(rest))]) + rest
}

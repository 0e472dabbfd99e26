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

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/slots"
)

// stopGrace is the time that the handlers have to return and be settled after their contexts have ended with
// ErrShutdown, before Run leaves them behind.
const stopGrace = 10 * time.Second

// A Worker claims tasks of the types that it has handlers for, runs the handlers, extends the claims meanwhile, and
// settles them according to what the handlers return:
//
//	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 20})
//	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
//		return send(ctx, job.Params, job.Token)
//	})
//	err = w.Run(ctx) // until ctx ends
//
// A task may be handled twice, at worst at the same time: if the lease cannot be extended, another worker gets the
// task. The handler's context ends before that with ErrLeaseLost, and the systems that the work writes to can refuse
// the older Token. docs/workers.md says what a handler must do.
type Worker struct {
	c   *Client
	cfg WorkerConfig // with defaults filled in
	// jobLogger is WorkerConfig.Logger as given, because Job.Log also passes on levels below Warn.
	jobLogger *slog.Logger

	mu          sync.Mutex // guards the fields below until Run has begun; then they do not change
	begun       bool
	handlers    map[string]*handler
	middleware  []Middleware
	handleErrs  []error // of Handle, for Run to return
	concurrency int     // how many handlers may run now; it may change during Run

	now    context.Context // ends with StopNow
	endNow context.CancelFunc

	slots    *slots.Slots // set by Run
	health   health
	backoffs typeBackoffs
	counts   workerCounts
}

// NewWorker checks the configuration and returns a worker without handlers. It makes no call. The client may be used
// for other purposes too; the caller closes it after Run has returned.
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
	w.concurrency = cfg.Concurrency
	w.now, w.endNow = context.WithCancel(context.Background())
	return w, nil
}

// SetConcurrency changes how many handlers run at a time, from 0 to WorkerConfig.Concurrency, the initial value. If
// more are running, the worker claims nothing until enough have returned; with 0 it claims nothing. It may be called
// at any time.
func (w *Worker) SetConcurrency(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(max(n, 0), w.cfg.Concurrency)
	if w.begun {
		w.slots.Resize(n - w.concurrency)
	}
	w.concurrency = n
}

// ID returns the worker's id: WorkerConfig.ID or the generated one.
func (w *Worker) ID() string { return w.cfg.ID }

// StopNow makes Run stop without WorkerConfig.StopWait: it claims nothing more, and the handlers' contexts end. Use
// it after Run's context has ended, at a second stop signal for example. It does not wait for Run and may be called
// at any time, repeatedly; before Run it makes Run return at once.
func (w *Worker) StopNow() { w.endNow() }

// Run claims and handles tasks until ctx ends. Then it claims nothing more and waits for the running handlers, up to
// WorkerConfig.StopWait or until StopNow. After that their contexts end with ErrShutdown: an error that is neither
// Permanent nor RetryAfter then gives the task back, without a counted attempt; other results count as usual. A
// handler that has not returned 10 s later is left behind, and its claim expires.
//
// When Run returns, no goroutine of the worker is left except those of handlers left behind. A Worker runs once.
// After ctx's end the error is nil, or names the tasks whose handlers were left behind or that could not be settled.
// Run returns early if the handlers are invalid; with ErrClosed if the client was closed; and, because asking on
// would not help, if claims are refused for the API key: with ErrForbidden at once, with ErrUnauthorized after 10 s.
// A cluster that does not answer or is overloaded does not end Run; see Health.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return fmt.Errorf("run worker: %w", err)
	}
	defer w.health.ended()
	r := newWorkerRun(ctx, w)
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
	case len(w.handleErrs) > 0:
		return errors.Join(w.handleErrs...)
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
	w.slots.Resize(w.concurrency - w.cfg.Concurrency)
	w.health.begun()
	return nil
}

// workerRun is one Run of a worker.
type workerRun struct {
	w *Worker
	// claiming ends when nothing more may be claimed.
	claiming    context.Context
	endClaiming context.CancelFunc
	// life is the context of the extends and settling calls; it ends when Run has to return.
	life    context.Context
	endLife context.CancelFunc
	// handling is the parent of the handlers' contexts. It ends with life, and with ErrClosed when the client is
	// closed.
	handling    context.Context
	endHandling context.CancelCauseFunc
	// removeCallbacks removes the callbacks of StopNow, of the client's end, and of life's.
	removeCallbacks func()

	lines slots.Lines[*attempt]

	claimOfAny *wire.Claim // the claim of all types in a completion; it is never changed

	// Only used by the claim loop.
	failures     int       // failed claims since the last answer
	unknownSince time.Time // when the first of them was refused for an unknown key

	mu        sync.Mutex // guards the fields below
	left      []string   // tasks whose handlers did not return
	unsettled []string   // tasks that could not be settled while stopping
}

func newWorkerRun(ctx context.Context, w *Worker) *workerRun {
	r := &workerRun{w: w}
	r.claimOfAny = within(r.request(w.slots.Names()))
	r.claiming, r.endClaiming = context.WithCancel(ctx)
	r.life, r.endLife = context.WithCancel(context.WithoutCancel(ctx))
	r.handling, r.endHandling = context.WithCancelCause(r.life)
	now := context.AfterFunc(w.now, r.endClaiming)
	closed := context.AfterFunc(w.c.life, func() { r.endHandling(ErrClosed) })
	settles := w.c.lanes.settles.Watch(r.life)
	r.removeCallbacks = func() { now(); closed(); settles() }
	if w.now.Err() != nil {
		r.endClaiming()
	}
	return r
}

func (r *workerRun) end() {
	r.removeCallbacks()
	r.endClaiming()
	r.endLife()
	r.endHandling(nil)
}

// stop waits for the running handlers as Run documents, and returns an error that names those that did not end well.
func (r *workerRun) stop() error {
	r.endClaiming()
	idle := make(chan struct{})
	go func() {
		r.lines.Wait()
		close(idle)
	}()
	if !waitIdle(r.w.now, idle, r.w.cfg.StopWait) {
		r.lines.Interrupt()
		waitIdle(r.life, idle, stopGrace)
	}
	r.endLife()
	r.abandon()
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

// waitIdle waits for idle to be closed, at most for d and until ctx ends, and reports whether it is.
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

// count formats a number of things, such as 1 task or 2 tasks.
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
	// Bounds of a lease, as the server has them.
	leaseMin = 100 * time.Millisecond
	leaseMax = 24 * time.Hour
)

// NoStopWait in WorkerConfig.StopWait makes Run cancel handlers immediately.
const NoStopWait = time.Duration(-1)

// WorkerConfig configures a Worker. The zero value is valid.
type WorkerConfig struct {
	// ID is the worker's name: 1 to 128 of A-Z a-z 0-9 _ . : @ -, but not . or .. . It should be unique among running
	// workers. "": the host's name, the process id and a random part.
	ID string
	// Concurrency limits how many handlers run at a time, up to 10,000; the worker never holds more tasks than that.
	// 0: 10.
	Concurrency int
	// Lease sets how long claims last unless they are extended, 100 ms to 24 h. If a worker dies, another gets its
	// tasks after that time. The worker extends at a third of it. 0: the task's own lease, else its type's, else the
	// server's default, 30 s.
	Lease time.Duration
	// IncludeDependencies gets the results of the steps that a step depends on with its claim, as in ClaimRequest.
	IncludeDependencies bool
	// Timeout bounds a handler's run. Then its context ends with context.DeadlineExceeded, and the attempt fails
	// unless the handler returns nil. If it is still running StopWait after that, it keeps its slot, but its claim is
	// no longer extended. 0: no limit. WithTimeout sets it for one type.
	Timeout time.Duration
	// StopWait sets how long Run waits after its context has ended before it ends the handlers' contexts. 0: 30 s;
	// NoStopWait: they end at once.
	StopWait time.Duration
	// Retry returns how long a task waits after attempt number Task.Attempts failed with err, if err is not
	// RetryAfter and neither the task nor its type has a backoff. Negative values count as 0. The worker asks the
	// server for the type's backoff at most once a minute. Retry must be safe for concurrent use. nil: the server's
	// default applies, or without one 1 s, doubled for each attempt up to 10 min, with 20 % jitter.
	Retry func(task *Task, err error) time.Duration
	// OnError is called for problems that neither a handler nor the error of Run reports: everything that Logger gets
	// at Warn and Error. With a task, err is a *PanicError, or it is ErrLeaseLost or an error of the settling call,
	// which means that the claim was lost and the handler's work may not count. Without a task (nil), a claim failed.
	// ctx has the values of Run's context and the task's trace context. OnError must be safe for concurrent use, and
	// should be quick because the worker waits for it.
	OnError func(ctx context.Context, task *Task, err error)
	// Logger receives at level Info when the worker begins, ends, and is answered again; at Warn problems; at Error
	// panics. nil: Warn and above go to slog.Default. Use slog.New(slog.DiscardHandler) to disable logging.
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
	case !wire.ValidWorkerID(cfg.ID):
		return cfg, fmt.Errorf("%w: %q is not %s", ErrInvalidWorkerID, cfg.ID, wire.WorkerIDAllowed)
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

// madeUpID returns host-pid-random, adapted to what the server accepts.
func madeUpID(host string, pid int) string {
	const randomLen = 10
	rest := "-" + strconv.Itoa(pid) + "-" + strings.ToLower(rand.Text()[:randomLen])
	clean := []byte(host)
	for i, b := range clean {
		if !wire.ValidWorkerID([]byte{'x', b}) {
			clean[i] = '-'
		}
	}
	if len(clean) == 0 {
		clean = []byte("worker")
	}
	return string(clean[:min(len(clean), wire.NameMax-len(rest))]) + rest
}

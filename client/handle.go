package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// handlersMax is how many task types one claim can name.
const handlersMax = 1_000

// handler is what a worker has for one task type.
type handler struct {
	taskType    string
	concurrency int           // 0: the worker's
	timeout     time.Duration // 0: none
	run         func(context.Context, *attempt) error
}

// A HandlerOption is a setting of one task type's handler.
type HandlerOption func(*handler) error

// WithConcurrency bounds how many handlers of the task type run at a time in this
// worker, within WorkerConfig.Concurrency. The worker claims no more than it can
// run at once. (The type's max_claimed bounds all workers together.)
func WithConcurrency(n int) HandlerOption {
	return func(h *handler) error {
		if n < 1 {
			return fmt.Errorf("concurrency is %d, it must be at least 1", n)
		}
		h.concurrency = n
		return nil
	}
}

// WithTimeout is WorkerConfig.Timeout for one task type; 0 is no limit.
func WithTimeout(d time.Duration) HandlerOption {
	return func(h *handler) error {
		if d < 0 {
			return fmt.Errorf("timeout is %v, it must not be negative", d)
		}
		h.timeout = d
		return nil
	}
}

// Handle makes fn the worker's handler of a task type; "" is "default". It comes
// before Run, which returns what is wrong with the type, the options, or a second
// handler of the same type; after Run has begun Handle panics.
//
// The task's parameters are decoded as JSON into P; if P is []byte or
// json.RawMessage they are handed over as they are. Parameters that do not decode
// fail the task for good, without a call of fn.
//
// Up to WorkerConfig.Concurrency handlers run at a time, each in a goroutine that the next one
// runs in when it has returned: a thread that it locked (runtime.LockOSThread), or labels that
// it gave the goroutine, it takes back. What fn returns settles the claim:
//
//   - nil completes the task, with Job.SetResult and Job.Then;
//   - Snooze gives it back, and the attempt is not counted;
//   - Permanent fails it for good;
//   - RetryAfter fails the attempt and says how long the task waits;
//   - any other error fails the attempt: the task waits for its backoff, its
//     type's, or WorkerConfig.Retry, if it has attempts left, else it has failed;
//   - a panic does the same, with the stack in the error.
//
// The context of fn ends with one of these as its context.Cause:
//
//   - ErrLeaseLost: the claim is over or about to end, and somebody else may get
//     the task. What fn returns is not sent any more.
//   - ErrCancelRequested: somebody asked for the task to be cancelled. An error
//     that fn returns ends the task as cancelled; nil still completes it.
//   - ErrShutdown: see Run.
//   - ErrClosed: the client was closed.
//   - an error that is context.DeadlineExceeded: see WorkerConfig.Timeout.
//
// It ends once. A handler that goes on after another of these, to finish or to clean
// up, is not told by it that the claim is lost then: Job.Progress tells.
//
// It carries the task's trace context for calls of this client (WithTraceparent),
// and the values of Run's context.
func Handle[P any](w *Worker, taskType string, fn func(context.Context, *Job[P]) error, opts ...HandlerOption) {
	w.handle(taskType, opts, func(ctx context.Context, a *attempt) error {
		job := jobOf[P](a)
		if err := decodeParams(a.cl.Task.Payload, &job.Params); err != nil {
			return Permanent(fmt.Errorf("the task's parameters do not decode into %T: %w", job.Params, err))
		}
		return fn(ctx, job)
	})
}

func (w *Worker) handle(taskType string, opts []HandlerOption, run func(context.Context, *attempt) error) {
	if taskType == "" {
		taskType = "default"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		panic("claimq: Handle of type " + taskType + " after Run")
	}
	mistake := func(err error) { w.mistakes = append(w.mistakes, fmt.Errorf("handler of type %q: %w", taskType, err)) }
	h := &handler{taskType: taskType, timeout: w.cfg.Timeout, run: run}
	for _, opt := range opts {
		if err := opt(h); err != nil {
			mistake(err)
		}
	}
	if !isName(taskType, "_.:-") || taskType == "." || taskType == ".." {
		mistake(fmt.Errorf("a type is 1 to %d of A-Z a-z 0-9 _ . : -, and neither . nor .. alone", nameBytesMax))
	}
	if w.handlers[taskType] != nil {
		mistake(fmt.Errorf("there is one already"))
	}
	w.handlers[taskType] = h
}

// decodeParams decodes a payload into what params points to. An empty one leaves
// it as it is.
func decodeParams(payload []byte, params any) error {
	switch p := params.(type) {
	case *[]byte:
		*p = payload
	case *json.RawMessage:
		*p = payload
	default:
		if len(payload) > 0 {
			return json.Unmarshal(payload, params)
		}
	}
	return nil
}

// Job is one attempt of a task, as its handler sees it. Its methods are safe for
// concurrent use.
type Job[P any] struct {
	Params P // the task's parameters, decoded
	// Task is the task as it was when it was claimed.
	Task *Task
	// Token is the claim's. It grows with every claim: give it to whatever the work
	// writes to, so that it can refuse the late write of an older one.
	Token int64
	// Attempt is the number of this attempt, from 1.
	Attempt int

	a *attempt
}

func jobOf[P any](a *attempt) *Job[P] {
	return &Job[P]{Task: a.cl.Task, Token: a.cl.Token, Attempt: a.cl.Task.Attempts, a: a}
}

// Log returns a logger whose lines say which worker, task, attempt and claim they are of. It is
// WorkerConfig.Logger with these, or if there is none, slog.Default.
func (j *Job[P]) Log() *slog.Logger {
	w := j.a.r.w
	logger := w.jobLogger
	if logger == nil {
		logger = slog.Default()
	}
	return logger.With("worker_id", w.cfg.ID).With(j.a.cl.logArgs()...)
}

// SetResult sets what the task is completed with, if the handler returns nil, in
// place of an earlier call: a []byte or a json.RawMessage as it is, which must not
// change any more, anything else as JSON; nil is no result. Up to 1 MiB. A value
// that JSON cannot hold, or that the server refuses, fails the task for good.
func (j *Job[P]) SetResult(result any) {
	var b []byte
	var err error
	switch v := result.(type) {
	case nil:
	case []byte:
		b = v
	case json.RawMessage:
		b = v
	default:
		b, err = marshal(v)
		if string(b) == "null" {
			b = nil
		}
	}
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.result, j.a.resultErr = b, err
}

// OnSettled has fn called once, in place of an earlier one, when the attempt is settled by
// what the handler returned: with nil, or with why what it did may not count, as its
// claim was lost or nobody answered. So what is told of a task is told after it is so.
func (j *Job[P]) OnSettled(fn func(err error)) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.onSettled = fn
}

// Then adds tasks that are submitted in the very step that completes this one:
// either both is done or none. They are submitted only if the handler returns nil.
// One without an idempotency key gets a random one. Up to 1,000. If one is
// malformed the task fails for good.
func (j *Job[P]) Then(tasks ...Task) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.then = append(j.a.then, tasks...)
}

// ThenJSON is Then of an array of tasks as POST /api/tasks takes them, in place of all that Then was
// given: for handlers that pass on what another program submits. The server reads it.
func (j *Job[P]) ThenJSON(tasks json.RawMessage) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.then, j.a.submit = nil, tasks
}

// Progress keeps progress with the task, as JSON, in place of the last one (of what is over
// 4 KiB the beginning, as a string), for those who look at the task; it extends the claim too. If somebody
// asked for the task to be cancelled, the handler's context ends with
// ErrCancelRequested. Errors: as of Claim.Extend; ErrLeaseLost if the attempt is over,
// its claim was lost, or the worker has let go of it.
func (j *Job[P]) Progress(ctx context.Context, progress any) error {
	// After ErrLeaseLost nothing of this attempt counts any more, though the server may
	// still take an extend: it would only keep the task from others.
	if j.a.letGo.Load() || j.a.leaseLost.Load() || j.a.cl.hasLapsed() {
		return fmt.Errorf("report progress: %w", j.a.cl.wrap("", ErrLeaseLost))
	}
	if progress == nil {
		progress = json.RawMessage("{}") // the server takes null for none
	}
	cancelRequested, err := j.a.cl.Extend(ctx, 0, progress)
	if err != nil {
		return fmt.Errorf("report progress: %w", err)
	}
	if cancelRequested {
		j.a.cancel(ErrCancelRequested)
	}
	return nil
}

// A Middleware is called in place of a handler, and calls it with next: to log,
// measure, trace, or refuse. The job's Params are the task's payload as it is;
// what it says with the job's methods counts as the handler's. What it returns
// settles the claim; what next returns is the handler's error, a *PanicError if
// it or a middleware in between panicked, or why the parameters did not decode. next takes the context that
// the handler gets; to start a span where the task was submitted, there is
// job.Task.Traceparent.
type Middleware func(ctx context.Context, job *Job[[]byte], next func(context.Context) error) error

// Use adds middleware for all handlers, around those that come later: the first
// is called first. It comes before Run; after Run has begun it panics.
func (w *Worker) Use(middleware ...Middleware) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		panic("claimq: Use after Run")
	}
	w.middleware = append(w.middleware, middleware...)
}

// invoke calls the middleware and the handler, in the calling goroutine.
func (a *attempt) invoke(ctx context.Context) error {
	next := func(ctx context.Context) error {
		return guard(func() error { return a.handler.run(ctx, a) })
	}
	middleware := a.r.w.middleware
	if len(middleware) == 0 {
		return next(ctx)
	}
	job := jobOf[[]byte](a)
	job.Params = a.cl.Task.Payload
	for i := len(middleware) - 1; i >= 0; i-- {
		m, inner := middleware[i], next
		next = func(ctx context.Context) error {
			var of error // the handler's, which a middleware that panics does not make undone
			err := guard(func() error {
				return m(ctx, job, func(ctx context.Context) error {
					of = inner(ctx)
					return of
				})
			})
			if panicked, ok := err.(*PanicError); ok && of != nil && !errors.Is(of, panicked) { //nolint:errorlint // of this middleware
				return errors.Join(of, panicked)
			}
			return err
		}
	}
	return next(ctx)
}

// stackBytesMax is where the stack of a panic is cut: with its message it fits
// what the server keeps of an error.
const stackBytesMax = 12 << 10

// PanicError is the error that a handler's panic becomes.
type PanicError struct {
	Value any    // as given to panic
	Stack []byte // of the goroutine that panicked, up to 12 KiB of it
}

// Error returns the value and the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errNoReturn is the outcome of a handler that ended its goroutine.
var errNoReturn = errors.New("the handler did not return: it ended its goroutine (runtime.Goexit)")

// guard calls fn and makes a panic an error. The error is sound.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			err = sound(&PanicError{Value: v, Stack: stack[:min(len(stack), stackBytesMax)]})
		}
	}()
	return sound(fn())
}

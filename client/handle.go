package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// handlersMax bounds the task types that one claim can name.
const handlersMax = 1_000

// handler is the handler of one task type.
type handler struct {
	taskType    string
	concurrency int           // 0: the worker's
	timeout     time.Duration // 0: none
	run         func(context.Context, *attempt) error
}

// A HandlerOption configures the handler of one task type.
type HandlerOption func(*handler) error

// WithConcurrency bounds how many handlers of the task type run at a time in this worker, within
// WorkerConfig.Concurrency. The worker claims no more tasks than it can run at once. To bound all workers together,
// set the type's max_claimed.
func WithConcurrency(n int) HandlerOption {
	return func(h *handler) error {
		if n < 1 {
			return fmt.Errorf("concurrency is %d, it must be at least 1", n)
		}
		h.concurrency = n
		return nil
	}
}

// WithTimeout overrides WorkerConfig.Timeout for one task type; 0 is no limit.
func WithTimeout(d time.Duration) HandlerOption {
	return func(h *handler) error {
		if d < 0 {
			return fmt.Errorf("timeout is %v, it must not be negative", d)
		}
		h.timeout = d
		return nil
	}
}

// Handle registers fn as the worker's handler of a task type; "" is "default". Call it before Run, which returns an
// error for an invalid type or option, or a second handler of the same type. After Run has begun, Handle panics.
//
// The task's parameters are decoded as JSON into P, or passed unchanged if P is []byte or json.RawMessage. If they do
// not decode, the task fails for good without a call of fn.
//
// Up to WorkerConfig.Concurrency handlers run at a time. Goroutines are reused, so a handler must undo what it did to
// its goroutine: unlock a locked thread (runtime.LockOSThread), reset profiler labels. What fn returns settles the
// claim:
//
//   - nil completes the task, with Job.SetResult and Job.Then;
//   - Snooze gives it back, and the attempt is not counted;
//   - Permanent fails it for good;
//   - RetryAfter fails the attempt and says how long the task waits;
//   - any other error fails the attempt. If attempts are left, the task waits for its backoff, its type's, or
//     WorkerConfig.Retry; otherwise it has failed;
//   - a panic does the same, with the stack in the error.
//
// The context of fn ends with one of these as its context.Cause:
//
//   - ErrLeaseLost: the claim is over or about to end, and another worker may get the task. The result of fn
//     is not sent.
//   - ErrCancelRequested: a cancel of the task was requested. If fn returns an error, the task is cancelled; nil
//     still completes it.
//   - ErrShutdown: see Run.
//   - ErrClosed: the client was closed.
//   - an error that is context.DeadlineExceeded: see WorkerConfig.Timeout.
//
// It ends only once. If a handler continues after one of the others, to finish or clean up, the context cannot tell
// it that the claim is lost; Job.Progress can.
//
// The context carries the task's trace context for calls of this client (WithTraceparent) and the values of Run's
// context.
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
	mistake := func(err error) {
		w.handleErrs = append(w.handleErrs, fmt.Errorf("handler of type %q: %w", taskType, err))
	}
	h := &handler{taskType: taskType, timeout: w.cfg.Timeout, run: run}
	for _, opt := range opts {
		if err := opt(h); err != nil {
			mistake(err)
		}
	}
	if !wire.ValidTaskType(taskType) {
		mistake(fmt.Errorf("a type is %s", wire.TaskTypeAllowed))
	}
	if w.handlers[taskType] != nil {
		mistake(fmt.Errorf("there is one already"))
	}
	w.handlers[taskType] = h
}

// decodeParams decodes a payload into the value that params points to. An empty payload leaves it unchanged.
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

// Job is one attempt of a task, passed to its handler. Its methods are safe for concurrent use.
type Job[P any] struct {
	Params P // the task's parameters, decoded
	// Task is the task at the time of the claim.
	Task *Task
	// Token is the claim's token. It grows with every claim; pass it to the systems that the work writes to, so that
	// they can refuse a late write of an older claim.
	Token   int64
	Attempt int

	a *attempt
}

func jobOf[P any](a *attempt) *Job[P] {
	return &Job[P]{Task: a.cl.Task, Token: a.cl.Token, Attempt: a.cl.Task.Attempts, a: a}
}

// Log returns WorkerConfig.Logger, by default slog.Default, with attributes for worker, task, attempt and claim.
func (j *Job[P]) Log() *slog.Logger {
	w := j.a.r.w
	logger := w.jobLogger
	if logger == nil {
		logger = slog.Default()
	}
	return logger.With("worker_id", w.cfg.ID).With(j.a.cl.logArgs()...)
}

// LeaseEndsAt returns when the lease ends unless it is extended again, at the latest, by this process's monotonic
// clock: whatever works on the task must have stopped by then. The context ends with ErrLeaseLost a twentieth of the
// lease before that, at most a second.
func (j *Job[P]) LeaseEndsAt() time.Time { return j.a.cl.LeaseEndsAt() }

// SetResult sets the result that the task is completed with if the handler returns nil. It replaces an earlier
// result. A []byte or json.RawMessage is sent unchanged and must not be modified afterwards; anything else is encoded
// as JSON; nil is no result. Bytes that are JSON are readable as JSON in the API; Binary keeps them bytes. Up to
// 1 MiB. If it cannot be encoded, or the server refuses it, the task fails for good.
func (j *Job[P]) SetResult(result any) {
	var b []byte
	var err error
	binary := false
	switch v := result.(type) {
	case nil:
	case []byte:
		b = v
	case json.RawMessage:
		b = v
	case Binary:
		b, binary = v, true
	default:
		b, err = marshal(v)
		if string(b) == "null" {
			b = nil
		}
	}
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.result, j.a.resultErr, j.a.binary = b, err, binary
}

// Binary is a result for Job.SetResult that is sent as bytes even if it happens to be JSON.
type Binary []byte

// OnSettled registers fn to be called once, when the attempt has been settled: with nil, or with an error if the
// outcome may not count because the claim was lost or no node answered. Use it to report a result only once it holds.
// It replaces an earlier function.
func (j *Job[P]) OnSettled(fn func(err error)) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.onSettled = fn
}

// Then adds follow-up tasks, up to 1,000. They are submitted when the handler returns nil, atomically with the
// completion: both are done or neither. A task without an idempotency key gets a random one. If one is malformed, the
// task fails for good.
func (j *Job[P]) Then(tasks ...Task) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.then = append(j.a.then, tasks...)
}

// ThenJSON is like Then, but takes a JSON array of tasks in the form of POST /api/tasks, and replaces all that was
// given to Then. It is for handlers that pass on another program's tasks. The server checks them.
func (j *Job[P]) ThenJSON(tasks json.RawMessage) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.then, j.a.submit = nil, tasks
}

// AddSteps adds steps to the task that this step belongs to, as Claim.AddSteps does.
func (j *Job[P]) AddSteps(ctx context.Context, steps ...Step) (ids map[string]string, err error) {
	return j.a.cl.AddSteps(ctx, steps...)
}

// AddStepsJSON is like AddSteps, but takes a JSON array of steps in the form of POST /api/tasks.
func (j *Job[P]) AddStepsJSON(ctx context.Context, steps json.RawMessage) (ids map[string]string, err error) {
	return j.a.cl.addSteps(ctx, steps)
}

// Progress stores progress as JSON with the task, replacing the last one, and extends the claim. If it is larger than
// 4 KiB, only its beginning is stored, as a string. If a cancel of the task was requested, the handler's context ends
// with ErrCancelRequested. Errors: as Claim.Extend; ErrLeaseLost if the attempt is over, its claim was lost, or the
// worker no longer extends it.
func (j *Job[P]) Progress(ctx context.Context, progress any) error {
	// After ErrLeaseLost this attempt does not count, though the server may still accept an extend; that would only
	// keep the task from other workers.
	if j.a.letGo.Load() || j.a.leaseLost.Load() || j.a.cl.hasLapsed() {
		return fmt.Errorf("report progress: %w", j.a.cl.wrap("", ErrLeaseLost))
	}
	if progress == nil {
		progress = json.RawMessage("{}") // the server takes null as no progress
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

// A Middleware is called in place of a handler and calls the handler with next: to log, measure, trace, or refuse.
// The job's Params are the task's raw payload; calls of the job's methods count as the handler's. What the middleware
// returns settles the claim. next returns the handler's error: a *PanicError if the handler or an inner middleware
// panicked, or a decoding error of the parameters. The context given to next becomes the handler's.
// job.Task.Traceparent has the trace context of the submit, to start a span in.
type Middleware func(ctx context.Context, job *Job[[]byte], next func(context.Context) error) error

// Use adds middleware for all handlers. The first one added is the outermost. Call it before Run; after Run has begun
// it panics.
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
			var of error // the handler's error, which a panic of a middleware must not hide
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

// stackBytesMax bounds the stack of a panic, so that with the message it fits into the error that the server keeps.
const stackBytesMax = 12 << 10

// PanicError is the error of a handler that panicked.
type PanicError struct {
	Value any    // as given to panic
	Stack []byte // of the goroutine that panicked, up to 12 KiB
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errNoReturn is the error of a handler that ended its goroutine.
var errNoReturn = errors.New("the handler did not return: it ended its goroutine (runtime.Goexit)")

// guard calls fn and turns a panic into an error. The methods of the error do not panic.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			err = safeError(&PanicError{Value: v, Stack: stack[:min(len(stack), stackBytesMax)]})
		}
	}()
	return safeError(fn())
}

package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

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

// PanicError is what a handler's panic is made to.
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

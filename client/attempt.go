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

// attempt is the handling of one claim.
type attempt struct {
	r       *shift
	handler *handler
	cl      *Claim
	cancel  context.CancelCauseFunc // of the handler's context

	extends   extends
	leaseLost atomic.Bool // an extend found that the claim is over, or none got through
	letGo     atomic.Bool // nothing is to extend the claim any more

	mu        sync.Mutex // guards what the handler says, which may go on when it was left behind
	result    []byte
	resultErr error // of making it
	then      []Task
}

// work handles a claim and those that came of completing it, and frees the slot.
func (r *shift) work(cl *Claim) {
	taskType := cl.Task.TaskType
	for cl != nil {
		taskType = cl.Task.TaskType
		cl = r.handle(cl)
	}
	r.w.slots.Done(taskType)
}

// handle runs the handler of the claim's task and settles the claim. It returns
// the next claim, for which it has given up the slot of this one, or nil.
func (r *shift) handle(cl *Claim) (next *Claim) {
	if r.claiming.Err() != nil {
		r.giveBack(cl)
		return nil
	}
	if giveUpAt, _ := cl.nextExtend(); !time.Now().Before(giveUpAt) {
		r.lost(cl, errors.New("its lease was about to end before its handler could begin"))
		return nil
	}
	a := &attempt{r: r, handler: r.w.handlers[cl.Task.TaskType], cl: cl}
	work, cancel := context.WithCancelCause(withTraceOf(r.handling, cl))
	a.cancel = cancel
	defer a.cancel(context.Canceled)
	a.keepAlive()
	defer func() {
		a.letGo.Store(true)
		a.extends.stop()
		a.extends.wait()
	}()
	err, returned := a.run(work)
	if !returned {
		r.mu.Lock()
		r.left = append(r.left, nameOf(cl))
		r.mu.Unlock()
		r.tellOf(cl, slog.LevelWarn, "handler left behind", errLeftBehind)
		return nil
	}
	return a.settle(work, err)
}

// withTraceOf is ctx with the trace context of the claim's task.
func withTraceOf(ctx context.Context, cl *Claim) context.Context {
	if trace := cl.Task.Traceparent; trace != "" {
		return WithTraceparent(ctx, trace)
	}
	return ctx
}

// nameOf is how Run's error names a claim's task.
func nameOf(cl *Claim) string {
	return fmt.Sprintf("%s (%s, attempt %d)", cl.Task.ID, cl.Task.TaskType, cl.Task.Attempts)
}

// run runs the handler in a goroutine and waits for it. returned is false if it
// has to be left behind.
func (a *attempt) run(ctx context.Context) (err error, returned bool) {
	var over <-chan time.Time    // its time is over
	var tooLong <-chan time.Time // it goes on all the same
	if timeout := a.handler.timeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, timeoutError(timeout))
		defer cancel()
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	ctx = &holding{ctx, a.cl, a.cancel}
	done := make(chan error, 1)
	go func() {
		err := errNoReturn
		defer func() { done <- err }()
		err = a.invoke(ctx)
	}()
	a.r.w.counts.running.Add(1)
	defer a.r.w.counts.running.Add(-1)
	stopping := a.r.stopping
	for {
		select {
		case err := <-done:
			return timedOut(ctx, err), true
		case <-stopping:
			a.cancel(ErrShutdown)
			stopping = nil
		case <-over:
			timer := time.NewTimer(a.r.w.cfg.StopWait)
			defer timer.Stop()
			tooLong = timer.C
		case <-tooLong:
			a.letGo.Store(true)
			a.extends.stop()
			a.r.tellOf(a.cl, slog.LevelWarn, "handler goes on, its claim is let go", timeoutError(a.handler.timeout))
		case <-a.r.life.Done():
			select {
			case err := <-done:
				return err, true
			default:
				return nil, false
			}
		}
	}
}

// timeoutError is the cause of a context whose handler's time is over.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("the attempt took more than %v", time.Duration(e))
}
func (e timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// timedOut adds to the handler's error that its time was over.
func timedOut(ctx context.Context, err error) error {
	var late timeoutError
	if err != nil && errors.As(context.Cause(ctx), &late) {
		return fmt.Errorf("%w: %w", late, err)
	}
	return err
}

// giveBack releases a claim that no handler has begun with.
func (r *shift) giveBack(cl *Claim) {
	a := &attempt{r: r, cl: cl}
	a.report(&r.w.counts.released, a.release(0))
}

// giveBackUnasked releases a claim that the worker has no handler or no slot for.
func (r *shift) giveBackUnasked(cl *Claim) {
	r.tellOf(cl, slog.LevelWarn, "task given back", errUnasked)
	r.giveBack(cl)
}

// lost notes that a claim is over, and what its handler did does not count.
func (r *shift) lost(cl *Claim, why error) {
	r.w.counts.lost.Add(1)
	r.tellOf(cl, slog.LevelWarn, "claim lost", why)
}

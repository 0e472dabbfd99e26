package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/client/internal/slots"
)

// attempt handles one claim.
type attempt struct {
	r       *workerRun
	handler *handler
	cl      *Claim
	work    context.Context // the handler's context, without its timeout and its lease
	cancel  context.CancelCauseFunc

	lease     leaseContext // the handler's context
	state     slots.State
	extends   extends
	leaseLost atomic.Bool // an extend was refused for the claim, or none got through in time
	letGo     atomic.Bool // the claim must no longer be extended

	mu        sync.Mutex // guards the fields below; a handler that was left behind may still set them
	result    []byte
	resultErr error // from encoding result
	binary    bool  // result is sent as bytes, even if it is JSON
	then      []Task
	submit    json.RawMessage // replaces then
	onSettled func(error)
}

// begin starts a goroutine for each claim. A claim of a type that has no free slot is released.
func (r *workerRun) begin(claims []*Claim, free *slots.Room) {
	r.w.counts.claimed.Add(int64(len(claims)))
	for _, cl := range claims {
		if !r.w.slots.Fill(free, cl.Task.TaskType) {
			r.lines.Go(func() { r.giveBackUnasked(cl) })
			continue
		}
		r.lines.Add(1)
		go r.work(cl)
	}
}

// work handles a claim, and then each next claim that comes with the completion of the last one.
func (r *workerRun) work(cl *Claim) {
	last := cl
	for cl != nil {
		last = cl
		a := r.attempt(cl)
		if a == nil {
			break
		}
		err, there := a.run()
		if !there {
			return // abandon has ended the line
		}
		cl = a.finish(err)
	}
	r.endLine(last)
}

// endLine frees the slot that the line's last claim holds.
func (r *workerRun) endLine(last *Claim) {
	r.w.slots.Done(last.Task.TaskType)
	r.lines.Done()
}

// attempt begins the attempt of a claim. It returns nil if the claim was given back or lost.
func (r *workerRun) attempt(cl *Claim) *attempt {
	if r.claiming.Err() != nil {
		r.giveBack(cl)
		return nil
	}
	giveUpAt, wait := cl.nextExtend()
	now := time.Now()
	if !now.Before(giveUpAt) {
		r.lost(cl, errors.New("its lease was about to end before its handler could begin"))
		return nil
	}
	a := &attempt{r: r, handler: r.w.handlers[cl.Task.TaskType], cl: cl}
	a.work, a.cancel = context.WithCancelCause(withTraceOf(r.handling, cl))
	r.w.counts.running.Add(1)
	if !r.lines.Begin(a, now.Add(wait-keepAliveWaitMin)) { // extend waits for the rest
		r.w.counts.running.Add(-1)
		a.cancel(ErrShutdown)
		r.giveBack(cl)
		return nil
	}
	return a
}

// State implements slots.Attempt.
func (a *attempt) State() *slots.State { return &a.state }

// Interrupt cancels the handler's context with ErrShutdown.
func (a *attempt) Interrupt() { a.cancel(ErrShutdown) }

// Extend starts extending the claim, in a goroutine that stop waits for.
func (a *attempt) Extend() { a.r.lines.Go(a.extend) }

// StopExtending stops extending the claim.
func (a *attempt) StopExtending() {
	a.letGo.Store(true)
	a.extends.stop()
}

// finish settles the claim according to the handler's error and ends the attempt. It returns the claim that came with
// the completion, which takes over this one's slot, or nil.
func (a *attempt) finish(err error) (next *Claim) {
	next = a.settle(a.work, err)
	a.end()
	return next
}

// end ends the attempt and waits until nothing extends its claim.
func (a *attempt) end() {
	a.r.lines.End(a)
	a.StopExtending()
	a.extends.wait()
	a.cancel(context.Canceled)
}

// abandon gives up on the handlers that have not returned, and ends their lines.
func (r *workerRun) abandon() {
	for _, a := range r.lines.Abandon() {
		r.w.counts.running.Add(-1)
		r.mu.Lock()
		r.left = append(r.left, nameOf(a.cl))
		r.mu.Unlock()
		r.tellOf(a.cl, slog.LevelWarn, "handler left behind", errAbandoned)
		a.end()
		r.endLine(a.cl)
	}
}

// withTraceOf adds the trace context of the claim's task to ctx.
func withTraceOf(ctx context.Context, cl *Claim) context.Context {
	if trace := cl.Task.Traceparent; trace != "" {
		return WithTraceparent(ctx, trace)
	}
	return ctx
}

// nameOf describes the claim's task in the error of Run.
func nameOf(cl *Claim) string {
	return fmt.Sprintf("%s (%s, attempt %d)", cl.Task.ID, cl.Task.TaskType, cl.Task.Attempts)
}

// run calls the handler in this goroutine. there is false if the attempt was left behind meanwhile; then abandon
// has ended it and its line. If the handler ends the goroutine, the line continues in a new one.
func (a *attempt) run() (err error, there bool) {
	ctx := a.work
	if timeout := a.handler.timeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, timeoutError(timeout))
		defer cancel()
		defer time.AfterFunc(min(timeout, waitMax)+min(a.r.w.cfg.StopWait, waitMax), a.overstays).Stop()
	}
	ended := true // by the handler
	defer func() {
		if ended && a.returned() {
			go a.continueLine(timedOut(ctx, errNoReturn))
		}
	}()
	a.lease = leaseContext{ctx, a.cl, a.cancel}
	err = a.invoke(&a.lease)
	ended = false
	return timedOut(ctx, err), a.returned()
}

// returned reports whether the attempt still belongs to its line, that is, was not left behind.
func (a *attempt) returned() bool {
	if !a.r.lines.Returned(a) {
		return false
	}
	a.r.w.counts.running.Add(-1)
	return true
}

// continueLine continues the line of a handler that has ended its goroutine.
func (a *attempt) continueLine(err error) {
	if next := a.finish(err); next != nil {
		a.r.work(next)
		return
	}
	a.r.endLine(a.cl)
}

// overstays stops extending the claim of a handler that is still running long after its timeout.
func (a *attempt) overstays() {
	if a.r.lines.StopExtending(a) {
		defer a.r.lines.Done()
		a.r.tellOf(a.cl, slog.LevelWarn, "handler goes on, its claim is let go", timeoutError(a.handler.timeout))
	}
}

// timeoutError is the cause of a handler's context that has timed out.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("the attempt took more than %v", time.Duration(e))
}
func (e timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// timedOut adds to the handler's error that its time was over, if it was.
func timedOut(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var late timeoutError
	if errors.As(context.Cause(ctx), &late) {
		return fmt.Errorf("%w: %w", late, err)
	}
	return err
}

// giveBack releases a claim whose handler has not started.
func (r *workerRun) giveBack(cl *Claim) {
	a := &attempt{r: r, cl: cl}
	a.report(&r.w.counts.released, a.release(0))
}

// giveBackUnasked releases a claim that the worker has no handler or no free slot for.
func (r *workerRun) giveBackUnasked(cl *Claim) {
	r.tellOf(cl, slog.LevelWarn, "task given back", errNotRequested)
	r.giveBack(cl)
}

// lost counts and reports a claim that is over; what its handler did does not count.
func (r *workerRun) lost(cl *Claim, why error) {
	r.w.counts.lost.Add(1)
	r.tellOf(cl, slog.LevelWarn, "claim lost", why)
}

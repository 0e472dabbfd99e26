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

	"github.com/claimq/claimq/client/internal/lines"
	"github.com/claimq/claimq/client/internal/slots"
)

// attempt is the handling of one claim.
type attempt struct {
	r       *shift
	handler *handler
	cl      *Claim
	work    context.Context // the handler's, but for its timeout
	cancel  context.CancelCauseFunc

	state     lines.State
	extends   extends
	leaseLost atomic.Bool // an extend found that the claim is over, or none got through
	letGo     atomic.Bool // nothing is to extend the claim any more

	mu        sync.Mutex // guards what the handler says, which may go on when it was left behind
	result    []byte
	resultErr error // of making it
	then      []Task
	submit    json.RawMessage // in place of then
	onSettled func(error)
}

// begin starts the line of each claim.
func (r *shift) begin(claims []*Claim, free *slots.Room) {
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

// work is a line: it handles a claim and those that came of completing it.
func (r *shift) work(cl *Claim) {
	last := cl
	for cl != nil {
		last = cl
		a := r.attempt(cl)
		if a == nil {
			break
		}
		err, there := a.run()
		if !there {
			return // the line was ended
		}
		cl = a.finish(err)
	}
	r.endLine(last)
}

// endLine frees the slot of the last claim of a line.
func (r *shift) endLine(last *Claim) {
	r.w.slots.Done(last.Task.TaskType)
	r.lines.Done()
}

// attempt begins the attempt of a claim; nil: the claim was given back, or lost.
func (r *shift) attempt(cl *Claim) *attempt {
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

// State is that of lines.Attempt, as Hurry, Extend and LetGo are.
func (a *attempt) State() *lines.State { return &a.state }

// Hurry ends the handler's context.
func (a *attempt) Hurry() { a.cancel(ErrShutdown) }

// Extend begins to extend the claim, in a goroutine that is waited for as a line is.
func (a *attempt) Extend() { a.r.lines.Go(a.extend) }

// LetGo has nothing extend the claim any more.
func (a *attempt) LetGo() {
	a.letGo.Store(true)
	a.extends.stop()
}

// finish settles the claim by what the handler returned, and ends the attempt. It returns the
// next claim, for which it has given up the slot of this one, or nil.
func (a *attempt) finish(err error) (next *Claim) {
	next = a.settle(a.work, err)
	a.end()
	return next
}

// end ends the attempt: nothing extends its claim any more.
func (a *attempt) end() {
	a.r.lines.End(a)
	a.LetGo()
	a.extends.wait()
	a.cancel(context.Canceled)
}

// leaveBehind ends the attempts whose handlers have not returned, and their lines.
func (r *shift) leaveBehind() {
	for _, a := range r.lines.Leave() {
		r.w.counts.running.Add(-1)
		r.mu.Lock()
		r.left = append(r.left, nameOf(a.cl))
		r.mu.Unlock()
		r.tellOf(a.cl, slog.LevelWarn, "handler left behind", errLeftBehind)
		a.end()
		r.endLine(a.cl)
	}
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

// run runs the handler in the calling goroutine. there is false if it was left behind, and
// somebody else has ended the attempt and its line. If the handler ends the goroutine, the line
// goes on in another.
func (a *attempt) run() (err error, there bool) {
	ctx := a.work
	if timeout := a.handler.timeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, timeoutError(timeout))
		defer cancel()
		defer time.AfterFunc(min(timeout, waitMax)+min(a.r.w.cfg.StopWait, waitMax), a.goesOn).Stop()
	}
	ended := true // by the handler
	defer func() {
		if ended && a.returned() {
			go a.goOn(timedOut(ctx, errNoReturn))
		}
	}()
	err = a.invoke(&holding{ctx, a.cl, a.cancel})
	ended = false
	return timedOut(ctx, err), a.returned()
}

// returned is Returned of the attempt's lines.
func (a *attempt) returned() bool {
	if !a.r.lines.Returned(a) {
		return false
	}
	a.r.w.counts.running.Add(-1)
	return true
}

// goOn is the rest of a line whose handler has ended its goroutine.
func (a *attempt) goOn(err error) {
	if next := a.finish(err); next != nil {
		a.r.work(next)
		return
	}
	a.r.endLine(a.cl)
}

// goesOn lets go of the claim of a handler that goes on though its time was over long ago.
func (a *attempt) goesOn() {
	if a.r.lines.LetGo(a) {
		defer a.r.lines.Done()
		a.r.tellOf(a.cl, slog.LevelWarn, "handler goes on, its claim is let go", timeoutError(a.handler.timeout))
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
	if err == nil {
		return nil
	}
	var late timeoutError
	if errors.As(context.Cause(ctx), &late) {
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

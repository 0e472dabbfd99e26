package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// keepAliveMarginMax bounds how long before the lease's end KeepAlive gives up, so that the work has time to stop: a
// twentieth of the lease.
const keepAliveMarginMax = time.Second

// keepAliveWaitMin prevents a tight loop of extends for a claim whose lease is unknown. A third of the shortest lease
// is longer.
const keepAliveWaitMin = 20 * time.Millisecond

// The pause before an extend that was refused for another reason than the claim is sent again, doubled each time.
const (
	extendPauseMin = 100 * time.Millisecond
	extendPauseMax = time.Second
)

// KeepAlive extends the claim whenever a third of its lease has passed, until the claim is settled with one of its
// methods, the returned function is called or ctx ends. The caller must call the function in any case. The returned
// context ends with ctx, with that function, with ErrClosed when the client is closed, and with one of these as its
// context.Cause; the work should stop then:
//
// ErrLeaseLost: the claim is over, or it could not be extended and the lease is about to end. While a settling call
// is under way, the context does not end for this reason; that call says how it went. The context checks the clock
// whenever it is used, so that a process that was paused for longer than the lease learns of it from its first call
// of Err.
//
// ErrCancelRequested: a cancel of the task was requested. The claim still holds and is still extended so that it can
// be settled: Complete still counts, Fail and Release end the task as cancelled.
func (cl *Claim) KeepAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancelWork := context.WithCancelCause(ctx)
	if err := cl.c.begin(); err != nil {
		cancelWork(err)
		return work, func() { cancelWork(context.Canceled) }
	}
	ctx, cancel := context.WithCancel(ctx) // of the extends, which continue after a cancel request
	go func() {
		defer cl.c.running.Done()
		defer cancel()
		if err := cl.keepAlive(ctx, cancelWork); err != nil {
			cancelWork(err)
		}
	}()
	return &leaseContext{work, cl, cancelWork}, func() {
		cancelWork(context.Canceled)
		cancel()
	}
}

// keepAlive extends the claim until it should no longer be extended (then it returns nil), or cannot be (then it
// returns why). It calls cancelWork when a cancel was requested.
func (cl *Claim) keepAlive(ctx context.Context, cancelWork context.CancelCauseFunc) error {
	var refused error // of the last extend, for another reason than the claim
	pause := extendPauseMin
	for {
		if cl.hasLapsed() { // the process was paused
			return lapsed(refused)
		}
		giveUpAt, wait := cl.nextExtend()
		if refused != nil {
			wait = min(pause, time.Until(giveUpAt))
			pause = min(2*pause, extendPauseMax)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-cl.end():
		case <-ctx.Done():
		case <-cl.c.life.Done():
		}
		timer.Stop()
		if cl.isOver() || ctx.Err() != nil {
			return nil
		}
		extendCtx, cancel := context.WithDeadline(ctx, giveUpAt)
		cancelRequested, err := cl.extend(extendCtx, wire.Settle{}, nil)
		cancel()
		switch {
		case cl.c.life.Err() != nil:
			return ErrClosed
		case err == nil:
			if cancelRequested {
				cancelWork(ErrCancelRequested)
			}
			refused, pause = nil, extendPauseMin
			continue
		case ctx.Err() != nil:
			return nil
		case !endsClaim(err) && time.Now().Before(giveUpAt):
			refused = err
			continue
		}
		// A settling call under way may be the reason.
		cl.waitSettled(ctx)
		if cl.isOver() || ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
}

// endsClaim reports whether a call was refused because the claim is over. Other answers, of a node that does not know
// the key yet or of a proxy, say nothing about the claim.
func endsClaim(err error) bool {
	for _, of := range []error{
		ErrStaleClaim, ErrWrongWorker, ErrTaskNotClaimed, ErrTaskNotFound, ErrTaskCompleted, ErrTaskFailed, ErrTaskCancelled,
	} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// nextExtend returns how long to wait before the next extend, and until when that extend makes sense.
func (cl *Claim) nextExtend() (giveUpAt time.Time, wait time.Duration) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.giveUpAtLocked(), max(time.Until(cl.endsAt)-cl.lease*2/3, keepAliveWaitMin)
}

// leaseContext is the context for the work of a claim. Its methods check the clock themselves, so that a process that was
// paused for longer than its lease finds the claim lost at once, although the timer that ends the context has not
// fired yet. Contexts derived with a cancel or timeout learn of it then, or when the timer fires.
type leaseContext struct {
	context.Context // ended by cancel
	cl              *Claim
	cancel          context.CancelCauseFunc
}

// Done returns the channel of the underlying context, closed if the lease is over.
func (h *leaseContext) Done() <-chan struct{} {
	h.check()
	return h.Context.Done()
}

func (h *leaseContext) Err() error {
	h.check()
	return h.Context.Err()
}

// Value returns the value for the key. context.Cause finds the context with the cause this way.
func (h *leaseContext) Value(key any) any {
	h.check()
	return h.Context.Value(key)
}

// check ends the context if the claim no longer holds.
func (h *leaseContext) check() {
	if h.cl.hasLapsed() {
		h.cancel(errLapsed)
	}
}

// errLapsed is the cause of a context whose claim was not extended in time.
var errLapsed = fmt.Errorf("%w: it was not extended in time", ErrLeaseLost)

// lapsed is errLapsed, or why the last extend was refused.
func lapsed(refused error) error {
	if refused == nil {
		return errLapsed
	}
	return fmt.Errorf("%w: %w", ErrLeaseLost, refused)
}

// hasLapsed reports whether the lease has ended, or is about to so that no extend can be in time. Once true it stays
// true. A claim that is being settled, or was, does not lapse; its settling call says how it went.
func (cl *Claim) hasLapsed() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.lapsed && cl.settling == 0 && !cl.ended {
		cl.lapsed = !time.Now().Before(cl.giveUpAtLocked())
	}
	return cl.lapsed
}

// toldLost reports whether hasLapsed has returned true before.
func (cl *Claim) toldLost() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.lapsed
}

// giveUpAtLocked returns when the work has to stop. The caller holds the lock.
func (cl *Claim) giveUpAtLocked() time.Time {
	return cl.endsAt.Add(-min(cl.lease/20, keepAliveMarginMax))
}

// extends extends the claim of an attempt. Its goroutine starts only when the first extend is almost due, because
// most handlers have returned by then. It continues until it is stopped, even after the handler's context has ended,
// because the claim still has to be settled.
type extends struct {
	mu      sync.Mutex // guards what follows
	stopped bool
	cutOff  context.CancelFunc // nil: there is no goroutine
	ended   chan struct{}      // closed when the goroutine ends; nil: it was never started
}

// extend runs in that goroutine.
func (a *attempt) extend() {
	ctx, ended := a.extends.start(a.r.life)
	if ctx == nil {
		return
	}
	defer close(ended)
	err := a.r.w.c.begin()
	if err == nil {
		defer a.r.w.c.running.Done()
		err = a.cl.keepAlive(ctx, a.cancel)
	}
	if err != nil {
		a.leaseLost.Store(errors.Is(err, ErrLeaseLost))
		a.cancel(err)
	}
}

// start returns the context of the goroutine and the channel that it closes at its end; nil if it must not start.
func (e *extends) start(life context.Context) (ctx context.Context, ended chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil, nil
	}
	ctx, e.cutOff = context.WithCancel(life)
	e.ended = make(chan struct{})
	return ctx, e.ended
}

// stop prevents further extends and aborts one that is under way. It may be called again.
func (e *extends) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.cutOff != nil {
		e.cutOff()
	}
}

// wait waits, after stop, until the goroutine has ended.
func (e *extends) wait() {
	e.mu.Lock()
	ended := e.ended
	e.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

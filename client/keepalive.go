package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// keepAliveMarginMax bounds how long before the lease's end KeepAlive gives up:
// a twentieth of the lease, for the work to stop in.
const keepAliveMarginMax = time.Second

// keepAliveWaitMin keeps a claim that says nothing of its lease from being
// extended in a tight loop; a third of the shortest lease is longer.
const keepAliveWaitMin = 20 * time.Millisecond

// The pause before an extend is sent again that was refused for something else than the claim:
// doubled for each.
const (
	extendPauseMin = 100 * time.Millisecond
	extendPauseMax = time.Second
)

// KeepAlive extends the claim whenever a third of its lease has passed, until
// the claim is settled with one of its methods, the returned function is called
// or ctx ends. The returned context ends with ctx, with that function, with
// ErrClosed when the client is closed, and with one of these as its
// context.Cause, upon which whoever does the work stops:
//
// ErrLeaseLost: the claim is over, or no extend got through and the lease is
// about to end. While the claim is being settled the context does not end for
// that; the settling call says how it went. The context looks at the clock when it
// is asked: after the process was stopped for longer than the lease, already the
// first Err that it is asked for tells.
//
// ErrCancelRequested: somebody asked for the task to be cancelled. The claim
// still holds, and is extended on, so that it can be settled: Complete still
// counts, Fail and Release end the task as cancelled.
//
// The caller calls the function in any case.
func (cl *Claim) KeepAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancelWork := context.WithCancelCause(ctx)
	if err := cl.c.begin(); err != nil {
		cancelWork(err)
		return work, func() { cancelWork(context.Canceled) }
	}
	ctx, cancel := context.WithCancel(ctx) // of the extends, which go on after a request to cancel
	go func() {
		defer cl.c.running.Done()
		defer cancel()
		if err := cl.keepAlive(ctx, cancelWork); err != nil {
			cancelWork(err)
		}
	}()
	return &holding{work, cl, cancelWork}, func() {
		cancelWork(context.Canceled)
		cancel()
	}
}

// keepAlive extends until it is not to any more, and then returns nil, or
// cannot, and then returns why. It calls cancelWork when cancelling was asked
// for.
func (cl *Claim) keepAlive(ctx context.Context, cancelWork context.CancelCauseFunc) error {
	var refused error // of the last extend, for something else than the claim
	pause := extendPauseMin
	for {
		if cl.hasLapsed() { // the process was stopped, and the answer waited for it
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
		cancelRequested, err := cl.extend(extendCtx, 0, nil)
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
		// If the claim is being settled at the same time, that may be why.
		cl.waitSettled(ctx)
		if cl.isOver() || ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
}

// endsClaim reports whether a call was refused for its claim, which is over. Any other answer, of a
// node that does not know the key yet or of a proxy, says nothing of the claim.
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

// nextExtend returns how long to wait before the next extend, and until when
// that one makes sense.
func (cl *Claim) nextExtend() (giveUpAt time.Time, wait time.Duration) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.giveUpAtLocked(), max(time.Until(cl.endsAt)-cl.lease*2/3, keepAliveWaitMin)
}

// holding is the context of who does the work of a claim. Its methods look at the
// clock themselves: a process that was stopped for longer than its lease, or did
// not get to run, finds its claim lost the moment it asks, although the timer that
// ends the context has had no time yet to do so. What is derived of it with a
// cancel or a timeout of its own learns of it then, or when the timer does.
type holding struct {
	context.Context // ends by cancel
	cl              *Claim
	cancel          context.CancelCauseFunc
}

// Done returns the channel of the context that is underneath, closed if the lease
// is over.
func (h *holding) Done() <-chan struct{} {
	h.look()
	return h.Context.Done()
}

// Err returns why the context has ended.
func (h *holding) Err() error {
	h.look()
	return h.Context.Err()
}

// Value returns the value for the key. context.Cause asks so for the context that
// has the cause.
func (h *holding) Value(key any) any {
	h.look()
	return h.Context.Value(key)
}

// look ends the context if the claim does not hold any more.
func (h *holding) look() {
	if h.cl.hasLapsed() {
		h.cancel(errLapsed)
	}
}

// errLapsed is why a context ends whose claim was not extended in time.
var errLapsed = fmt.Errorf("%w: it was not extended in time", ErrLeaseLost)

// lapsed is errLapsed with why the last extend was refused, if it was.
func lapsed(refused error) error {
	if refused == nil {
		return errLapsed
	}
	return fmt.Errorf("%w: %w", ErrLeaseLost, refused)
}

// hasLapsed reports whether the lease has ended, or is about to, so that no extend
// comes in time any more. Once it has, it stays so. A claim that is being settled,
// or was, does not lapse: the settling call says how it went.
func (cl *Claim) hasLapsed() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.lapsed && cl.settling == 0 && !cl.ended {
		cl.lapsed = !time.Now().Before(cl.giveUpAtLocked())
	}
	return cl.lapsed
}

// toldLost reports whether hasLapsed has said so to anybody.
func (cl *Claim) toldLost() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.lapsed
}

// giveUpAtLocked is when the work has to stop. The caller holds the lock.
func (cl *Claim) giveUpAtLocked() time.Time {
	return cl.endsAt.Add(-min(cl.lease/20, keepAliveMarginMax))
}

// extends is what extends the claim of an attempt. Its goroutine begins when the first extend
// is almost due: most handlers have returned by then. It goes on until it is
// stopped, also when the handler's context has ended, for the claim has to be settled.
type extends struct {
	mu      sync.Mutex // guards what follows
	stopped bool
	cutOff  context.CancelFunc // nil: there is no goroutine
	ended   chan struct{}      // closed when the goroutine ends; nil: there is none
}

// extend is the goroutine.
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

// start returns the context of the goroutine, and what it closes at its end; nil: it is not
// to begin.
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

// stop lets no extend begin any more, and ends one that is under way. It may be called again.
func (e *extends) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.cutOff != nil {
		e.cutOff()
	}
}

// wait waits, after stop, for the end of an extend that was under way.
func (e *extends) wait() {
	e.mu.Lock()
	ended := e.ended
	e.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

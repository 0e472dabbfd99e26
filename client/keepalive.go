package client

import (
	"context"
	"fmt"
	"time"
)

// keepAliveMarginMax bounds how long before the lease's end KeepAlive gives up:
// a twentieth of the lease, for the work to stop in.
const keepAliveMarginMax = time.Second

// keepAliveWaitMin keeps a claim that says nothing of its lease from being
// extended in a tight loop; a third of the shortest lease is longer.
const keepAliveWaitMin = 20 * time.Millisecond

// KeepAlive extends the claim whenever a third of its lease has passed, until
// the claim is settled with one of its methods, the returned function is called
// or ctx ends. The returned context ends with ctx, with that function, with
// ErrStoreClosed when the client is closed, and with ErrLeaseLost as its
// context.Cause when the claim is over, or when no extend got through and the
// lease is about to end: whoever does the work stops then. While the claim is
// being settled it does not end for that; the settling call says how it went.
// The caller calls the function in any case.
func (cl *Claim) KeepAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() { cancel(context.Canceled) }
	if err := cl.c.begin(); err != nil {
		cancel(err)
		return ctx, stop
	}
	go func() {
		defer cl.c.running.Done()
		if err := cl.keepAlive(ctx); err != nil {
			cancel(err)
		}
	}()
	return ctx, stop
}

// keepAlive extends until it is not to any more, and then returns nil, or
// cannot, and then returns why.
func (cl *Claim) keepAlive(ctx context.Context) error {
	for {
		giveUpAt, wait := cl.nextExtend()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-cl.over:
		case <-ctx.Done():
		case <-cl.c.life.Done():
		}
		timer.Stop()
		if cl.isOver() || ctx.Err() != nil {
			return nil
		}
		extendCtx, cancel := context.WithDeadline(ctx, giveUpAt)
		_, err := cl.extend(extendCtx, 0)
		cancel()
		switch {
		case cl.c.life.Err() != nil:
			return ErrStoreClosed
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil
		}
		// If the claim is being settled at the same time, that may be why.
		cl.waitSettled(ctx)
		if cl.isOver() || ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
}

// nextExtend returns how long to wait before the next extend, and until when
// that one makes sense.
func (cl *Claim) nextExtend() (giveUpAt time.Time, wait time.Duration) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	margin := min(cl.lease/20, keepAliveMarginMax)
	return cl.endsAt.Add(-margin), max(time.Until(cl.endsAt)-cl.lease*2/3, keepAliveWaitMin)
}

func (cl *Claim) isOver() bool {
	select {
	case <-cl.over:
		return true
	default:
		return false
	}
}

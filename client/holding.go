package client

import (
	"context"
	"fmt"
	"time"
)

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

// hasLapsed reports whether the lease has ended, or is about to, so that no extend
// comes in time any more. Once it has, it stays so. A claim that is being settled,
// or was, does not lapse: the settling call says how it went.
func (cl *Claim) hasLapsed() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.lapsed && cl.settling == 0 && !cl.isOver() {
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

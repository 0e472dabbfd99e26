package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/client/internal/slots"
	"github.com/claimq/claimq/internal/repeat"
)

// settle settles the claim according to the handler's error. It returns the claim that came with the completion, or
// nil.
func (a *attempt) settle(ctx context.Context, err error) (next *Claim) {
	a.r.w.health.settles.asking()
	defer a.r.w.health.settles.stopped()
	if err != nil {
		a.tellPanic(err)
	}
	cause := context.Cause(ctx)
	a.cancel(context.Canceled) // the handler has returned
	if a.leaseLost.Load() || a.cl.toldLost() || !time.Now().Before(a.cl.LeaseEndsAt()) {
		a.tellSettled(ErrLeaseLost)
		a.r.lost(a.cl, errors.Join(ErrLeaseLost, err))
		return nil
	}
	if err == nil {
		return a.complete()
	}
	delay, snoozed := Snoozed(err)
	switch {
	case snoozed:
		a.report(&a.r.w.counts.released, a.release(delay))
	case errors.Is(cause, ErrShutdown) && !decidesRetry(err):
		a.report(&a.r.w.counts.released, a.release(0))
	default:
		a.fail(err)
	}
	return nil
}

// tellPanic reports that the handler panicked.
func (a *attempt) tellPanic(err error) {
	if p := (*PanicError)(nil); errors.As(err, &p) {
		a.r.w.counts.panics.Add(1)
		a.r.tellOf(a.cl, slog.LevelError, "handler panicked", p, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
	}
}

// decidesRetry reports whether a handler's error is Permanent or RetryAfter.
func decidesRetry(err error) bool {
	var permanent *permanentError
	var later *retryError
	return errors.As(err, &permanent) || errors.As(err, &later)
}

// rooms reuses memory for decoding claimed tasks, because each is copied into a Claim at once.
var rooms = sync.Pool{New: func() any { return &hotjson.Room{} }}

// complete completes the task, and in the same request claims the next one for the slot. If the server refuses the
// result or the follow-ups, the task fails for good, because another attempt would do the work again and be refused
// again.
func (a *attempt) complete() (next *Claim) {
	w := a.r.w
	a.mu.Lock()
	result, resultErr, then := a.result, a.resultErr, a.then
	submit, binary := a.submit, a.binary
	a.mu.Unlock()
	s := a.cl.hold()
	if binary {
		s.ResultPayload = result
	}
	var free slots.Room
	var req ClaimRequest
	if a.r.claiming.Err() == nil {
		if free = w.slots.Widen(a.cl.Task.TaskType); free.N > 0 {
			req = a.r.request(free.Types)
			if s.Claim = a.r.claimOfAny; len(free.Types) < len(w.slots.Names()) {
				s.Claim = within(req)
			}
		}
	}
	var body []byte
	if resultErr == nil {
		body, resultErr = completion(s, result, then)
	}
	if resultErr == nil && submit != nil {
		body = hotjson.WithField("submit", submit, body)
	}
	if resultErr != nil {
		a.r.w.slots.Narrow(&free, a.cl.Task.TaskType)
		a.tellSettled(resultErr)
		a.fail(Permanent(fmt.Errorf("the handler succeeded, but its result or follow-up tasks are no good: %w", resultErr)))
		return nil
	}
	room := rooms.Get().(*hotjson.Room)
	defer rooms.Put(room)
	decoded, ans, err := a.send(settling{kind: repeat.OpComplete, submits: len(then) > 0 || submit != nil, claims: s.Claim != nil, body: body, room: room})
	if err == nil && decoded.Claimed != nil {
		next = a.withSlot(w.c.claimOf(&req, decoded.Claimed.Task, decoded.Repeated, &ans), &free)
	}
	if next == nil {
		w.slots.Narrow(&free, a.cl.Task.TaskType)
	}
	if isRefusal(err) {
		a.tellSettled(err)
		a.fail(Permanent(fmt.Errorf("the handler succeeded, but completing was refused: %w", err)))
		return nil
	}
	if err != nil && !isFinal(err) && a.r.life.Err() == nil && time.Now().Before(a.cl.LeaseEndsAt()) {
		a.fail(fmt.Errorf("the handler succeeded, but completing got no answer of a node for %v: %w", settleMax, err))
		return nil
	}
	a.report(&w.counts.completed, err)
	return next
}

// withSlot returns the claim that came with a completion, with a slot filled for it. It returns nil if the completion
// claimed nothing, or if no slot is free for it; then the claim is released.
func (a *attempt) withSlot(next *Claim, free *slots.Room) *Claim {
	if next == nil {
		return nil
	}
	a.r.w.counts.claimed.Add(1)
	if !a.r.w.slots.Fill(free, next.Task.TaskType) {
		a.r.giveBackUnasked(next)
		return nil
	}
	return next
}

// isRefusal reports whether the server refused the body of a complete, rather than the claim.
func isRefusal(err error) bool {
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Code == "" || errors.Is(err, ErrOutcomeUnknown) {
		return false
	}
	switch refusal.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return true
	}
	return false
}

// fail fails the attempt, with WorkerConfig.Retry if neither the error, the task nor its type says how long to wait.
func (a *attempt) fail(cause error) {
	t := a.cl.Task
	lastAttempt := t.MaxAttempts > 0 && t.Attempts >= t.MaxAttempts
	if !decidesRetry(cause) && !lastAttempt && t.Backoff == nil && !a.r.w.backoffs.has(a.r.life, t.TaskType) {
		cause = RetryAfter(a.r.retryOf(a.cl, cause), cause)
	}
	body, err := failure(a.cl.hold(), cause)
	if err == nil {
		_, _, err = a.send(settling{kind: repeat.OpFail, body: body})
	}
	a.report(&a.r.w.counts.failed, err)
	if permanent := (*permanentError)(nil); err == nil && !lastAttempt && !errors.As(cause, &permanent) {
		a.r.w.counts.retries.Add(1)
	}
}

func (a *attempt) release(delay time.Duration) error {
	body, err := releasing(a.cl.hold(), delay)
	if err == nil {
		_, _, err = a.send(settling{kind: repeat.OpRelease, body: body})
	}
	return err
}

// settleMax bounds how long the worker tries to settle a claim that can still be extended. Otherwise a proxy that
// passes extends but not this call would hold the slot for ever.
const settleMax = 5 * time.Minute

// send makes a settling call and repeats it with the same body until it is answered, the lease has ended, the worker
// must stop, or settleMax has passed. The claim is extended meanwhile, so the lease may end later than it would have
// at first.
func (a *attempt) send(s settling) (decoded wire.Answer, ans answer, err error) {
	ctx := withTraceOf(a.r.life, a.cl)
	begun := time.Now()
	for pause := extendPauseMin; ; pause = min(2*pause, extendPauseMax) {
		s.until = a.cl.LeaseEndsAt()
		decoded, ans, err = a.cl.settle(ctx, s, nil)
		switch {
		case err == nil:
			a.r.w.health.settles.answered()
			return decoded, ans, nil
		case isFinal(err) || a.r.life.Err() != nil || !time.Now().Before(a.cl.LeaseEndsAt()) || time.Since(begun) > settleMax:
			return decoded, ans, err
		}
		a.r.w.health.settles.failed(err)
		if left := time.Until(a.cl.LeaseEndsAt()); waitFor(ctx, min(pause, left)) != nil {
			return decoded, ans, err
		}
	}
}

// isFinal reports whether a node has decided. An answer of a proxy, or of a node that does not know the key yet, does
// not count.
func isFinal(err error) bool {
	var refusal *Error
	return errors.Is(err, ErrClosed) || errors.As(err, &refusal) && refusal.Code != "" && refusal.Status < http.StatusInternalServerError &&
		refusal.Status != http.StatusTooManyRequests && refusal.Status != http.StatusUnauthorized
}

// tellSettled calls the function given to OnSettled, once.
func (a *attempt) tellSettled(err error) {
	a.mu.Lock()
	tell := a.onSettled
	a.onSettled = nil
	a.mu.Unlock()
	if tell != nil {
		tell(err)
	}
}

// report counts the claim as settled, or else as lost or unsettled.
func (a *attempt) report(settled *atomic.Int64, err error) {
	a.tellSettled(err)
	if err == nil {
		settled.Add(1)
		return
	}
	if a.r.claiming.Err() != nil && !isFinal(err) {
		a.r.mu.Lock()
		a.r.unsettled = append(a.r.unsettled, nameOf(a.cl))
		a.r.mu.Unlock()
	}
	a.r.lost(a.cl, err)
}

package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/internal/repeat"
)

const (
	// waitMargin is the time before ctx's deadline by which a waiting request should be answered, so that it is known
	// to have claimed nothing; a tenth of what is left if that is less.
	waitMargin = 500 * time.Millisecond
	// endWaitPause is the pause before a request to end a wait is sent again, doubled each time. If the wait goes on,
	// the first one reached the leader before the claim did.
	endWaitPause = 20 * time.Millisecond
	// endedClaimMax limits how long a claim may still take after its wait was ended; a working cluster answers in
	// milliseconds. It also bounds releasing what the claim got.
	endedClaimMax = time.Second
	// emptyPause prevents a tight loop of claims with a server that answers a waiting claim too early.
	emptyPause = 100 * time.Millisecond
)

const claimPath = "/api/tasks/claim"

// claimCall is a claim under way. It may take several requests, each of which waits for a part of the time. Each has
// its own request id and keeps it until it is answered.
type claimCall struct {
	c         *Client
	path      string
	req       ClaimRequest
	limit     int       // 0: one task, in an answer without a list
	waitUntil time.Time // until when a request may wait
	// waiting, when it ends, stops requests from waiting, including the one under way.
	waiting context.Context
}

// claimTasks makes the claim and waits as long as it says. If it makes the request ids itself, it asks again if the
// lease of what an earlier try claimed had ended before the answer came.
func (c *Client) claimTasks(ctx context.Context, path string, req ClaimRequest, limit int) ([]*Claim, error) {
	return c.claimWhile(ctx, context.Background(), path, req, limit)
}

// claimNext claims the next tasks. If ctx ends during the wait, it has the leader answer and releases what was
// claimed, so that no task stays claimed without a worker.
func (c *Client) claimNext(ctx context.Context, req ClaimRequest, limit int) ([]*Claim, error) {
	if req.Wait <= 0 || ctx.Err() != nil {
		return c.claimTasks(ctx, claimPath, req, limit)
	}
	calls, end := withLaterDeadline(ctx)
	defer end()
	claims, err := c.claimWhile(calls, ctx, claimPath, req, limit)
	if ctx.Err() == nil || err != nil && !errors.Is(err, ErrNoTasks) {
		return claims, err
	}
	if err := releaseAll(context.WithoutCancel(ctx), claims); err != nil {
		return nil, fmt.Errorf("%w: what was claimed meanwhile could not be released: %w: %w", ErrOutcomeUnknown, ended(ctx), err)
	}
	return nil, ended(ctx)
}

// withLaterDeadline returns a copy of ctx that a cancel does not end and whose deadline is later, so that claimWhile can end
// it.
func withLaterDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	longer := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(longer, deadline.Add(endedClaimMax))
	}
	return context.WithCancel(longer)
}

// releaseAll tries for a while to release the claims. It returns the first error of a claim that may still be held.
func releaseAll(ctx context.Context, claims []*Claim) error {
	ctx, cancel := context.WithTimeout(ctx, endedClaimMax)
	defer cancel()
	errs := make([]error, len(claims))
	var all sync.WaitGroup
	for i, cl := range claims {
		all.Go(func() { errs[i] = cl.Release(ctx, 0) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrStaleClaim) {
			return err
		}
	}
	return nil
}

// claimWhile is claimTasks that stops waiting when waiting ends, and then takes up to endedClaimMax more. This way
// the leader answers; ending ctx instead would leave it unknown what was claimed.
func (c *Client) claimWhile(ctx, waiting context.Context, path string, req ClaimRequest, limit int) ([]*Claim, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	ctx, end := c.bound(ctx, req.Wait)
	defer end()
	ctx, cutOff := context.WithCancelCause(ctx)
	defer cutOff(nil)
	defer context.AfterFunc(waiting, func() {
		if waitFor(ctx, endedClaimMax) == nil {
			cutOff(ended(waiting))
		}
	})()
	k := claimCall{c: c, path: path, req: req, limit: limit, waitUntil: waitUntil(waiting, req.Wait), waiting: waiting}
	for {
		asked := time.Now()
		claims, over, err := k.ask(ctx)
		switch empty := err == nil && len(claims) == 0 || errors.Is(err, ErrNoTasks); {
		case !empty:
			return claims, err
		case over && req.RequestID != "":
			return nil, fmt.Errorf("%w: what request %q claimed", ErrStaleClaim, req.RequestID)
		case !over && k.left() <= 0:
			return nil, err
		}
		if err := waitFor(ctx, emptyPause-time.Since(asked)); err != nil {
			return nil, err
		}
	}
}

// waitUntil returns until when a claim waits under ctx.
func waitUntil(ctx context.Context, d time.Duration) time.Time {
	now := time.Now()
	until := now.Add(min(d, waitMax))
	if deadline, ok := ctx.Deadline(); ok {
		left := deadline.Sub(now)
		if last := deadline.Add(-min(waitMargin, left/10)); last.Before(until) {
			return last
		}
	}
	return until
}

// left returns how long a request may wait.
func (k *claimCall) left() time.Duration {
	if k.waiting.Err() != nil {
		return 0
	}
	return time.Until(k.waitUntil)
}

// ask makes one request with one request id, until it is answered. over says that it had claimed something whose
// lease has ended since.
func (k *claimCall) ask(ctx context.Context) (claims []*Claim, over bool, err error) {
	w := k.req.wire()
	w.Limit = k.limit
	decoded, a, err := k.call(ctx, w)
	if err != nil {
		return nil, false, err
	}
	if decoded.Task != nil {
		decoded.Tasks = []wire.Task{*decoded.Task}
	}
	claims = k.c.claimsOf(&k.req, decoded.Tasks, decoded.Repeated, &a)
	if k.req.Wait > 0 {
		claims = refresh(ctx, claims)
	}
	return claims, len(claims) == 0 && len(decoded.Tasks) > 0, nil
}

// call makes the request. A claim of one task that does not wait may share its request with others.
func (k *claimCall) call(ctx context.Context, w wire.Claim) (decoded wire.Answer, a answer, err error) {
	if k.path == claimPath && k.req.Wait == 0 && k.limit <= 1 {
		body, err := hotjson.Claim(&w)
		if err != nil {
			return decoded, a, fmt.Errorf("encode request: %w", err)
		}
		o := opCall{kind: repeat.OpClaim, body: body}
		if w.ClaimRequestID == "" {
			o.claimAt = len("{")
		}
		return k.c.op(ctx, k.c.lanes.claims, o)
	}
	if w.ClaimRequestID == "" {
		w.ClaimRequestID = rand.Text()
	}
	r := Request{Method: http.MethodPost, Path: k.path, Repeatable: repeat.OpClaim.Safe(true), take: takeAnswer(&decoded, true)}
	r.prepare = func() ([]byte, time.Duration, error) {
		d := repeat.PollWait(k.left(), k.req.Lease)
		w.WaitMS = milliseconds(d)
		body, err := hotjson.Claim(&w)
		return body, d, err
	}
	waits, giveUp := context.WithCancel(ctx)
	defer giveUp()
	end := k.endWait(ctx, w, giveUp)
	a, err = k.c.call(waits, r)
	switch e := end(); {
	case e == nil || len(decoded.Tasks) > 0 || decoded.Task != nil:
	case e.err == nil:
		return e.decoded, e.a, nil
	case err == nil || errors.Is(err, ErrNoTasks):
		err = e.err
	}
	return decoded, a, err
}

// waitEnd is the outcome of a request that ended a wait: it claimed something, or its outcome is unknown (err).
type waitEnd struct {
	decoded wire.Answer
	a       answer
	err     error
}

// endWait ends the wait of request w on the leader once waiting has ended, by sending the same request without a
// wait. If that arrives before w, it is sent again. If it is answered with claims, giveUp is called, because w gets
// the same claims or none. end waits for the answers and returns the claims, which may be told nowhere else; nil
// without any.
func (k *claimCall) endWait(ctx context.Context, w wire.Claim, giveUp func()) (end func() *waitEnd) {
	over, ended := make(chan struct{}), make(chan struct{})
	var outcome *waitEnd
	unhook := context.AfterFunc(k.waiting, func() {
		defer close(ended)
		w.WaitMS = 0
		body, err := hotjson.Claim(&w)
		for pause := endWaitPause; err == nil; pause *= 2 {
			var e waitEnd
			r := Request{Method: http.MethodPost, Path: k.path, Body: body, Repeatable: repeat.OpClaim.Safe(true), take: takeAnswer(&e.decoded, true)}
			e.a, e.err = k.c.call(ctx, r)
			switch {
			case e.err == nil && (len(e.decoded.Tasks) > 0 || e.decoded.Task != nil):
				giveUp()
				fallthrough
			case errors.Is(e.err, ErrOutcomeUnknown):
				outcome = &e
				return
			case e.err != nil:
				return
			}
			select {
			case <-over:
				return
			case <-time.After(pause):
			}
		}
	})
	return func() *waitEnd {
		close(over)
		if unhook() {
			return nil
		}
		<-ended
		return outcome
	}
}

// refresh extends claims whose lease was used up in part by waiting for the answer, and leaves out those that are
// over.
func refresh(ctx context.Context, claims []*Claim) []*Claim {
	live := claims[:0]
	for _, cl := range claims {
		if repeat.Scarce(time.Until(cl.Deadline), cl.lease) {
			if _, err := cl.extend(ctx, wire.Settle{}, nil); errors.Is(err, ErrStaleClaim) {
				continue
			}
			cl.Deadline = cl.LeaseEndsAt()
		}
		live = append(live, cl)
	}
	return live
}

// waitFor waits for d, or returns why ctx has ended.
func waitFor(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

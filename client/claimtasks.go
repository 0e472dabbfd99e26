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
	"github.com/claimq/claimq/client/internal/hotwire"
	"github.com/claimq/claimq/internal/repeat"
)

const (
	// waitMargin is how long before ctx's deadline a waiting request is to be
	// answered, so that it is known that it took nothing; a tenth of what is left
	// if that is less.
	waitMargin = 500 * time.Millisecond
	// endWaitPause is how long after a request that ended a wait it is sent again, if the
	// wait goes on: then it had come to the leader before the claim. Doubled each time.
	endWaitPause = 20 * time.Millisecond
	// endedClaimMax is for how long a claim may go on whose wait was ended, before it is cut
	// off: a cluster that works answers in milliseconds. It bounds giving back what it got, too.
	endedClaimMax = time.Second
	// emptyPause keeps a claim from asking in a tight loop a server that does not
	// wait as long as it was asked to.
	emptyPause = 100 * time.Millisecond
)

// claimPath is that of a claim of the next task.
const claimPath = "/api/tasks/claim"

// claimCall is a claim under way, over its requests: each waits for a part of
// the time, and each has a request id of its own, which it keeps until an answer
// to it has been received.
type claimCall struct {
	c         *Client
	path      string
	req       ClaimRequest
	limit     int       // 0: one task, as an answer without a list
	waitUntil time.Time // before which a request may wait
	// waiting: after its end no request waits, and the wait of one that does is ended.
	waiting context.Context
}

// claimTasks claims by the request, waiting as long as it says. With a request
// id of its own making it asks again if what an earlier try claimed is over by
// the time of the answer.
func (c *Client) claimTasks(ctx context.Context, path string, req ClaimRequest, limit int) ([]*Claim, error) {
	return c.claimWhile(ctx, context.Background(), path, req, limit)
}

// claimNext is claimTasks of the next tasks, which leaves none claimed for nobody when ctx ends
// while it waits: it has the leader answer, and releases what there is.
func (c *Client) claimNext(ctx context.Context, req ClaimRequest, limit int) ([]*Claim, error) {
	if req.Wait <= 0 || ctx.Err() != nil {
		return c.claimTasks(ctx, claimPath, req, limit)
	}
	calls, end := outlasting(ctx)
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

// outlasting returns ctx that does not end by a cancel, and later than by its deadline, for
// claimWhile to end.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	longer := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(longer, deadline.Add(endedClaimMax))
	}
	return context.WithCancel(longer)
}

// releaseAll releases the claims, as far as it can in a while. The error is the first of those
// that may still hold.
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

// claimWhile is claimTasks that waits no longer than waiting lasts, and goes on for
// endedClaimMax after that at most. To end ctx instead would leave it unknown what was
// claimed: this has the leader answer.
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

// waitUntil returns until when a claim waits, for as long as ctx lasts.
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

// left is how long a request may wait.
func (k *claimCall) left() time.Duration {
	if k.waiting.Err() != nil {
		return 0
	}
	return time.Until(k.waitUntil)
}

// ask makes one request with one request id, until it is answered. over says
// that it had claimed something that has ended since.
func (k *claimCall) ask(ctx context.Context) (claims []*Claim, over bool, err error) {
	w := k.req.wire()
	w.Limit = k.limit
	if w.ClaimRequestID == "" {
		w.ClaimRequestID = rand.Text()
	}
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

// call makes the request. One for one task at once goes with others that are asked for
// meanwhile.
func (k *claimCall) call(ctx context.Context, w wire.Claim) (decoded wire.Answer, a answer, err error) {
	if k.path == claimPath && k.req.Wait == 0 && k.limit <= 1 {
		body, err := hotwire.Claim(&w)
		if err != nil {
			return decoded, a, fmt.Errorf("encode request: %w", err)
		}
		return k.c.op(ctx, k.c.lanes.claims, opCall{kind: repeat.OpClaim, body: body})
	}
	r := Request{Method: http.MethodPost, Path: k.path, Repeatable: repeat.OpClaim.Safe(true), take: takeAnswer(&decoded, true)}
	r.prepare = func() ([]byte, time.Duration, error) {
		d := repeat.PollWait(k.left(), k.req.Lease)
		w.WaitMS = milliseconds(d)
		body, err := hotwire.Claim(&w)
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

// waitEnd is the outcome of a request that ended a wait: it had claimed something, or, with an
// err, nobody knows.
type waitEnd struct {
	decoded wire.Answer
	a       answer
	err     error
}

// endWait ends the wait of the request w on the leader once waiting has ended: the same
// request without a wait does, unless it comes there first; then it is sent again. If it is
// answered with claims, giveUp is called, as w has the same or none. end waits for the
// answer to what was sent, which may be all that tells of these claims, and returns it;
// nil: there are none.
func (k *claimCall) endWait(ctx context.Context, w wire.Claim, giveUp func()) (end func() *waitEnd) {
	over, ended := make(chan struct{}), make(chan struct{})
	var outcome *waitEnd
	unhook := context.AfterFunc(k.waiting, func() {
		defer close(ended)
		w.WaitMS = 0
		body, err := hotwire.Claim(&w)
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

// refresh extends the claims that were waited for so long that too little of
// their lease is left for sure, and leaves out those that are over.
func refresh(ctx context.Context, claims []*Claim) []*Claim {
	live := claims[:0]
	for _, cl := range claims {
		if repeat.Scarce(time.Until(cl.Deadline), cl.lease) {
			if _, err := cl.extend(ctx, 0, nil); errors.Is(err, ErrStaleClaim) {
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

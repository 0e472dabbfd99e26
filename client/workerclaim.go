package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/claimq/claimq/client/internal/slots"
	"github.com/claimq/claimq/internal/repeat"
)

const (
	// The pause of a worker whose claims fail: doubled from the first on, less a
	// random share of up to a half. Each of its calls has been repeated for
	// Config.Timeout already, if the cluster did not answer.
	claimPauseMin = 200 * time.Millisecond
	claimPauseMax = 10 * time.Second
	// keyUnknownMax is for how long a worker asks on whose key no node that it asks knows.
	keyUnknownMax = 10 * time.Second
	// giveBackTimeout bounds giving back what a claim may have got whose answer the
	// worker did not wait for.
	giveBackTimeout = 5 * time.Second
)

// errMoreRoom is why a claim waits no longer: there is a new one then.
var errMoreRoom = errors.New("more types have room")

// claimTasks is the claim loop: it takes all slots that are free and claims that
// many tasks at most, waiting for the first. It returns when claiming has ended,
// or why it cannot go on.
//
// One claim waits at a time. A worker that is busy seldom gets here: a handler's
// slot goes on to the next task in the request that completes the last one.
func (r *shift) claimTasks() error {
	s := r.w.slots
	for r.claiming.Err() == nil {
		free, ok := s.Take()
		if !ok {
			select {
			case <-s.Changed():
			case <-r.claiming.Done():
			case <-r.w.c.life.Done():
				return ErrClosed
			}
			continue
		}
		err := r.fill(&free)
		s.GiveBack(&free)
		if err != nil {
			return err
		}
	}
	return nil
}

// fill claims tasks for the room and begins with them, until one request was
// answered or it is certain that it took nothing. The error is why there is nothing more to
// ask for: the client was closed, or the key is refused.
func (r *shift) fill(free *slots.Room) error {
	r.w.health.claims.asking()
	defer r.w.health.claims.stopped()
	req := r.request(free.Types)
	limit := free.N
	req.Wait = repeat.PollWait(repeat.PollMax, req.Lease)
	doubted := false
	for {
		claims, err := r.ask(free, req, limit)
		if err == nil {
			r.answered()
			if r.claiming.Err() != nil {
				r.giveBackAll(claims)
				return nil
			}
			r.begin(claims, free)
			return nil
		}
		switch {
		case errors.Is(err, ErrStaleClaim): // what it got is over by now
			r.answered()
			return nil
		case errors.Is(err, ErrClosed):
			return err
		case r.refusesKey(err):
			return fmt.Errorf("the API key is refused: %w", err)
		}
		doubted = doubted || errors.Is(err, ErrOutcomeUnknown)
		r.refused(err)
		_ = waitFor(r.claiming, r.claimPause()) // the end of claiming is seen below
		switch {
		case r.claiming.Err() != nil:
			if doubted {
				r.lines.Go(func() { r.giveBackLost(req, limit) })
			}
			return nil
		case !doubted:
			return nil
		}
		// What it may have claimed is asked for by the same request, and not waited for:
		// then there is a new one.
		req.Wait = 0
	}
}

// request is what the worker asks for, with an id that is kept until an answer
// was received.
func (r *shift) request(types []string) ClaimRequest {
	return ClaimRequest{WorkerID: r.w.cfg.ID, Types: types, Lease: r.w.cfg.Lease, RequestID: rand.Text()}
}

// ask makes one claim. When claiming has ended or more types have room its wait is ended,
// and the answer says what it took: if it were cut off, that could come to the leader after
// all that asks for it, and hold a task that nobody works on.
func (r *shift) ask(free *slots.Room, req ClaimRequest, limit int) ([]*Claim, error) {
	waiting, endWait := context.WithCancelCause(r.claiming)
	defer endWait(nil)
	if req.Wait > 0 {
		end := r.w.slots.Watch(free, func() { endWait(errMoreRoom) })
		defer end()
	}
	claims, err := r.w.c.claimWhile(r.life, waiting, claimPath, req, limit)
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	return claims, nil
}

// giveBackLost gives back what a claim got whose answer did not come before the
// end of claiming: repeating the request tells.
func (r *shift) giveBackLost(req ClaimRequest, limit int) {
	ctx, cancel := context.WithTimeout(r.life, giveBackTimeout)
	defer cancel()
	req.Wait = 0
	claims, err := r.w.c.ClaimMany(ctx, req, limit)
	if err != nil && !errors.Is(err, ErrStaleClaim) {
		r.tell(r.life, slog.LevelWarn, "what the last claim may have got could not be given back; it expires", nil, err, "err", err)
	}
	r.giveBackAll(claims)
}

// giveBackAll releases claims that came after the end of claiming.
func (r *shift) giveBackAll(claims []*Claim) {
	r.w.counts.claimed.Add(int64(len(claims)))
	for _, cl := range claims {
		r.lines.Go(func() { r.giveBack(cl) })
	}
}

// answered notes that a claim was answered.
func (r *shift) answered() {
	r.w.health.claims.answered()
	if r.failures > 0 {
		r.w.cfg.Logger.InfoContext(r.claiming, "claimq: claims are answered again", "worker_id", r.w.cfg.ID)
	}
	r.failures, r.unknownSince = 0, time.Time{}
}

// refused notes that a claim got no answer, or a refusal.
func (r *shift) refused(err error) {
	if r.claiming.Err() != nil {
		return
	}
	r.failures++
	r.w.health.claims.failed(err)
	r.tell(r.claiming, slog.LevelWarn, "claim failed", nil, err, "failures", r.failures, "err", err)
}

// refusesKey reports whether a claim was refused for who asks, and it would not help to ask again. A
// key that is not known may be known to another node behind the same address, or here in a moment.
func (r *shift) refusesKey(err error) bool {
	switch {
	case r.claiming.Err() != nil:
		return false
	case !errors.Is(err, ErrUnauthorized):
		return errors.Is(err, ErrForbidden)
	case r.unknownSince.IsZero():
		r.unknownSince = time.Now()
	}
	return time.Since(r.unknownSince) >= keyUnknownMax
}

// claimPause is how long to wait after claims have failed.
func (r *shift) claimPause() time.Duration {
	d := claimPauseMax
	if shift := r.failures - 1; shift < 10 {
		d = min(claimPauseMin<<max(shift, 0), claimPauseMax)
	}
	return d - mathrand.N(d/2+1)
}

package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/slots"
	"github.com/claimq/claimq/internal/repeat"
)

const (
	// The pause of a worker whose claims fail, doubled each time, less a random share of up to a half. If the cluster
	// does not answer, each claim has already been repeated for Config.Timeout.
	claimPauseMin = 200 * time.Millisecond
	claimPauseMax = 10 * time.Second
	// keyUnknownMax limits how long a worker keeps asking when no node knows its key.
	keyUnknownMax = 10 * time.Second
	// giveBackTimeout bounds releasing the tasks of a claim if the worker did not wait for its answer.
	giveBackTimeout = 5 * time.Second
)

// errMoreRoom ends a claim's wait because more types have room, so that a new claim can ask for them.
var errMoreRoom = errors.New("more types have room")

// claimTasks is the claim loop: it takes all free slots, waits for a first task, and claims as many tasks as there
// are slots at most. It returns when claiming has ended, or why it cannot continue.
//
// Only one claim waits at a time. A busy worker seldom gets here, because a completion claims the next task for the
// same slot.
func (r *workerRun) claimTasks() error {
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

// fill claims tasks for the room and begins handling them, until a request was answered or certainly claimed nothing.
// It returns an error if no further claim makes sense: the client was closed, or the key is refused.
func (r *workerRun) fill(free *slots.Room) error {
	r.w.health.claims.asking()
	defer r.w.health.claims.stopped()
	req := r.request(free.Types)
	req.RequestID = rand.Text() // until it is answered
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
		case errors.Is(err, ErrStaleClaim): // what it claimed is over by now
			r.answered()
			return nil
		case errors.Is(err, ErrClosed):
			return err
		case r.refusesKey(err):
			return fmt.Errorf("the API key is refused: %w", err)
		}
		doubted = doubted || errors.Is(err, ErrOutcomeUnknown)
		r.refused(err)
		_ = waitFor(r.claiming, r.claimPause()) // the loop sees the end of claiming
		switch {
		case r.claiming.Err() != nil:
			if doubted {
				r.lines.Go(func() { r.giveBackLost(req, limit) })
			}
			return nil
		case !doubted:
			return nil
		}
		// The same request asks for what an earlier try may have claimed. It does not wait, because a new claim can
		// do that.
		req.Wait = 0
	}
}

// request returns a claim request without an id.
func (r *workerRun) request(types []string) ClaimRequest {
	return ClaimRequest{WorkerID: r.w.cfg.ID, Types: types, Lease: r.w.cfg.Lease, IncludeDependencies: r.w.cfg.IncludeDependencies}
}

// within returns req for a completion, which has the worker's id already.
func within(req ClaimRequest) *wire.Claim {
	claim := req.wire()
	claim.WorkerID = ""
	return &claim
}

// ask makes one claim. When claiming has ended or more types have room, its wait is ended and the answer tells what
// it claimed. Cutting it off instead could leave a task claimed that no handler works on.
func (r *workerRun) ask(free *slots.Room, req ClaimRequest, limit int) ([]*Claim, error) {
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

// giveBackLost releases the tasks of a claim that was not answered before the end of claiming. It repeats the request to
// learn which tasks these are.
func (r *workerRun) giveBackLost(req ClaimRequest, limit int) {
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
func (r *workerRun) giveBackAll(claims []*Claim) {
	r.w.counts.claimed.Add(int64(len(claims)))
	for _, cl := range claims {
		r.lines.Go(func() { r.giveBack(cl) })
	}
}

// answered notes that a claim was answered.
func (r *workerRun) answered() {
	r.w.health.claims.answered()
	if r.failures > 0 {
		r.w.cfg.Logger.InfoContext(r.claiming, "claimq: claims are answered again", "worker_id", r.w.cfg.ID)
	}
	r.failures, r.unknownSince = 0, time.Time{}
}

// refused notes that a claim failed.
func (r *workerRun) refused(err error) {
	if r.claiming.Err() != nil {
		return
	}
	r.failures++
	r.w.health.claims.failed(err)
	r.tell(r.claiming, slog.LevelWarn, "claim failed", nil, err, "failures", r.failures, "err", err)
}

// refusesKey reports whether claims are refused because of the API key and asking again would not help. An unknown
// key gets some time, because another node behind the same address may know it, or this one in a moment.
func (r *workerRun) refusesKey(err error) bool {
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

// claimPause returns how long to wait after claims have failed.
func (r *workerRun) claimPause() time.Duration {
	d := claimPauseMax
	if shift := r.failures - 1; shift < 10 {
		d = min(claimPauseMin<<max(shift, 0), claimPauseMax)
	}
	return d - mathrand.N(d/2+1)
}

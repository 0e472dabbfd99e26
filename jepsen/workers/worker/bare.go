package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// claimWait bounds a bare worker's wait for a task in one call.
const claimWait = 5 * time.Second

// runBare handles tasks with claims and KeepAlive until ctx ends, and then finishes those
// that it holds.
func (h *hand) runBare(ctx context.Context, c *client.Client, log *slog.Logger) error {
	var lines sync.WaitGroup
	for range h.cfg.Concurrency {
		lines.Go(func() {
			for ctx.Err() == nil {
				cl, err := c.ClaimNext(ctx, h.request(claimWait))
				h.answered(err)
				if err != nil {
					log.Warn("claim", "err", err)
					pause.For(ctx, retryDelay)
					continue
				}
				for cl != nil {
					cl = h.handleClaim(ctx, cl, log)
				}
			}
		})
	}
	lines.Wait()
	return nil
}

func (h *hand) request(wait time.Duration) client.ClaimRequest {
	return client.ClaimRequest{WorkerID: h.cfg.ID, Types: []string{diary.Plain, diary.Timed}, Lease: h.cfg.Lease, Wait: wait}
}

// handleClaim does the work and settles the claim. It returns the next claim, if it requested
// one and got it.
func (h *hand) handleClaim(ctx context.Context, cl *client.Claim, log *slog.Logger) (next *client.Claim) {
	held := hold{task: cl.Task, token: cl.Token, deadline: cl.LeaseEndsAt}
	if err := json.Unmarshal(cl.Task.Payload, &held.params); err != nil {
		panic(err) // the harness submits them
	}
	work, stop := cl.KeepAlive(context.WithoutCancel(ctx))
	defer stop()
	outcome := h.perform(work, held)
	next, err := h.settle(ctx, work, cl, held, outcome)
	h.answered(err)
	if err != nil && !errors.Is(err, client.ErrNoTasks) {
		log.Warn("settle", "task", cl.Task.ID, "token", cl.Token, "outcome", outcome, "err", err)
	}
	return next
}

// answered records who decided a call.
func (h *hand) answered(err error) {
	l := diary.Line{At: diary.Now(), Event: diary.Answered, Text: string(answerOf(err))}
	if err != nil {
		l.Why = err.Error()
	}
	h.diary.Write(l)
}

// answerOf returns who decided a call that ended with the error. Answers without a code of
// claimq's come from something between worker and node.
func answerOf(err error) diary.Answer {
	var refusal *client.Error
	switch {
	case err == nil, errors.Is(err, client.ErrNoTasks):
		return diary.OfNode
	case errors.Is(err, client.ErrOutcomeUnknown), !errors.As(err, &refusal):
		return diary.Open
	case refusal.Code == "":
		return diary.OfOther
	}
	return diary.OfNode
}

// settle makes the call that ends the claim.
func (h *hand) settle(ctx, work context.Context, cl *client.Claim, held hold, outcome diary.Outcome) (next *client.Claim, err error) {
	result := []byte(strconv.FormatInt(held.token, 10))
	switch outcome {
	case diary.Completes:
		if len(held.params.Then) == 0 && ctx.Err() == nil {
			return cl.CompleteAndClaim(work, result, h.request(0))
		}
		return nil, cl.Complete(work, result, thenOf(held.params)...)
	case diary.Snoozes:
		return nil, cl.Release(work, retryDelay)
	case diary.Lost:
		return nil, nil
	}
	return nil, cl.Fail(work, errorOf(outcome))
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// claimWait is how long a bare worker waits for a task in one call.
const claimWait = 5 * time.Second

// runBare handles tasks with claims and KeepAlive until ctx ends, and what it
// holds then to its end.
func (h *hand) runBare(ctx context.Context, c *client.Client, log *slog.Logger) error {
	var lines sync.WaitGroup
	for range h.cfg.Concurrency {
		lines.Go(func() {
			for ctx.Err() == nil {
				cl, err := c.ClaimNext(ctx, h.request(claimWait))
				if err != nil {
					log.Warn("claim", "err", err)
					pause.For(ctx, retryDelay)
					continue
				}
				for cl != nil {
					cl = h.handleClaim(ctx, cl)
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

// handleClaim does the work and settles the claim. It returns the next claim, if
// it asked for one and there was one.
func (h *hand) handleClaim(ctx context.Context, cl *client.Claim) (next *client.Claim) {
	held := hold{task: cl.Task, token: cl.Token, deadline: cl.LeaseEndsAt}
	if err := json.Unmarshal(cl.Task.Payload, &held.params); err != nil {
		panic(err) // the harness submits them
	}
	work, stop := cl.KeepAlive(context.WithoutCancel(ctx))
	defer stop()
	outcome := h.perform(work, held)
	verb, next, err := h.settle(ctx, work, cl, held, outcome)
	l := diary.Line{At: diary.Now(), Event: diary.Settled, TaskID: cl.Task.ID, Token: cl.Token, Text: verb}
	if err != nil && !errors.Is(err, client.ErrNoTasks) {
		l.Text = fmt.Sprintf("%s: %v", verb, err)
	}
	h.diary.Write(l)
	return next
}

// settle makes the call that ends the claim.
func (h *hand) settle(ctx, work context.Context, cl *client.Claim, held hold, outcome diary.Outcome) (verb string, next *client.Claim, err error) {
	result := []byte(strconv.FormatInt(held.token, 10))
	switch outcome {
	case diary.Completes:
		if len(held.params.Then) == 0 && ctx.Err() == nil {
			next, err = cl.CompleteAndClaim(work, result, h.request(0))
			return "complete and claim", next, err
		}
		return "complete", nil, cl.Complete(work, result, thenOf(held.params)...)
	case diary.Snoozes:
		return "release", nil, cl.Release(work, retryDelay)
	case diary.Lost:
		return "none", nil, nil
	}
	return "fail", nil, cl.Fail(work, errorOf(outcome))
}

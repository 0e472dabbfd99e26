package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// handlerTimeout is the timeout of the timed type: longer than any handler works.
const handlerTimeout = time.Minute

// runWorker handles tasks with a client.Worker until ctx ends.
func (h *hand) runWorker(ctx context.Context, c *client.Client, log *slog.Logger) error {
	w, err := client.NewWorker(c, client.WorkerConfig{
		ID: h.cfg.ID, Concurrency: h.cfg.Concurrency, Lease: h.cfg.Lease, StopWait: h.cfg.StopWait, Logger: log,
		Retry: func(*client.Task, error) time.Duration { return retryDelay }, // a task that panics late should not wait for minutes
	})
	if err != nil {
		return err
	}
	client.Handle(w, diary.Plain, h.handle)
	client.Handle(w, diary.Timed, h.handle, client.WithTimeout(handlerTimeout))
	return w.Run(ctx)
}

func (h *hand) handle(ctx context.Context, job *client.Job[diary.Params]) error {
	outcome := h.perform(ctx, hold{task: job.Task, token: job.Token, params: job.Params})
	switch outcome {
	case diary.Completes:
		job.SetResult(job.Token)
		job.Then(thenOf(job.Params)...)
	case diary.Panics:
		panic("the attempt panics")
	case diary.Lost, diary.Stops:
		return context.Cause(ctx)
	}
	return errorOf(outcome)
}

// thenOf returns the follow-up tasks.
func thenOf(p diary.Params) []client.Task {
	var tasks []client.Task
	for i, key := range p.Then {
		// It cannot fail, because these are numbers.
		t, _ := client.NewTask(diary.Plain, diary.Params{Seed: p.Seed + int64(i) + 1})
		t.IdempotencyKey, t.MaxAttempts = key, client.UnlimitedAttempts
		tasks = append(tasks, t)
	}
	return tasks
}

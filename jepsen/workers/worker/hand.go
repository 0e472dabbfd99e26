package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// hand does the work of all handlers of a process.
type hand struct {
	cfg   diary.Config
	diary *diary.Writer
	http  *http.Client // for the store
}

// storeTimeout bounds a write to the store, which is never cut off.
const storeTimeout = 30 * time.Second

func newHand(cfg diary.Config, d *diary.Writer) *hand {
	return &hand{cfg: cfg, diary: d, http: &http.Client{Timeout: storeTimeout}}
}

// hold is a claim of a handler.
type hold struct {
	task   *client.Task
	token  int64
	params diary.Params
	// deadline returns the end of the lease; nil: the library does not say.
	deadline func() time.Time
}

// perform does the work of a claim, and returns its outcome.
func (h *hand) perform(ctx context.Context, held hold) diary.Outcome {
	outcome := h.work(ctx, held)
	h.diary.Write(diary.Line{At: diary.Now(), Event: diary.Return, TaskID: held.task.ID, Token: held.token, Text: string(outcome)})
	return outcome
}

// work looks at its context before each action.
func (h *hand) work(ctx context.Context, held hold) diary.Outcome {
	act := held.params.Draw(held.token)
	if !h.look(ctx, held, diary.Begin) {
		return whyEnded(ctx)
	}
	if outcome, ok := h.write(held, diary.Mark); !ok {
		return outcome
	}
	work := time.NewTimer(time.Duration(act.Leases * float64(h.cfg.Lease)))
	defer work.Stop()
	look := time.NewTicker(act.Look)
	defer look.Stop()
	for working := true; working; {
		select {
		case <-work.C:
			working = false
		case <-look.C:
		case <-ctx.Done():
		}
		if !h.look(ctx, held, diary.Held) {
			return h.tooLate(ctx, held, act)
		}
	}
	if act.Outcome != diary.Completes && act.Outcome != diary.FailsAll {
		return act.Outcome
	}
	if outcome, ok := h.write(held, diary.Effect); !ok {
		return outcome
	}
	return act.Outcome
}

// look looks at the context, and records the result. It returns false if the context has
// ended.
func (h *hand) look(ctx context.Context, held hold, event diary.Event) bool {
	l := diary.Line{Event: event, TaskID: held.task.ID, Token: held.token, Attempt: held.task.Attempts}
	l.At = diary.Now()
	err := ctx.Err()
	l.To = diary.Now()
	if err != nil {
		l.Event, l.Text = diary.Ended, context.Cause(ctx).Error()
	} else if held.deadline != nil {
		l.Deadline = diary.At(held.deadline())
	}
	h.diary.Write(l)
	return err == nil
}

func whyEnded(ctx context.Context) diary.Outcome {
	if errors.Is(context.Cause(ctx), client.ErrShutdown) {
		return diary.Stops
	}
	return diary.Lost
}

// tooLate returns the outcome for a handler whose context has ended. One that should be
// late writes all the same: the store must refuse that.
func (h *hand) tooLate(ctx context.Context, held hold, act diary.Act) diary.Outcome {
	outcome := whyEnded(ctx)
	if act.Late && outcome == diary.Lost {
		<-time.After(2 * h.cfg.Lease)
		h.write(held, diary.Effect)
	}
	return outcome
}

// write writes to the store, with the token.
func (h *hand) write(held hold, what string) (outcome diary.Outcome, ok bool) {
	body, err := json.Marshal(diary.Write{TaskID: held.task.ID, Token: held.token, Worker: h.cfg.ID, What: what})
	if err != nil {
		panic(err) // only strings and numbers
	}
	resp, err := h.http.Post(h.cfg.Store, "application/json", bytes.NewReader(body))
	if err != nil {
		return diary.Unwritten, false
	}
	_ = resp.Body.Close()
	return diary.Refused, resp.StatusCode == http.StatusOK
}

// errorOf returns the error with which a handler returns the outcome.
func errorOf(outcome diary.Outcome) error {
	switch outcome {
	case diary.Completes:
		return nil
	case diary.FailsAll:
		return client.Permanent(errors.New("it is to fail"))
	case diary.Snoozes:
		return client.Snooze(retryDelay)
	}
	return client.RetryAfter(retryDelay, fmt.Errorf("the attempt %s", outcome))
}

// retryDelay is the delay before a task that was not completed is tried again.
const retryDelay = 100 * time.Millisecond

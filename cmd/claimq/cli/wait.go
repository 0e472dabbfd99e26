package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/repeat"
)

// emptyPause is the pause after an empty answer. It prevents a tight loop of claims if a server answers waiting claims
// too early.
const emptyPause = 100 * time.Millisecond

// claimNext sends w and waits up to wait for a task. It returns the answer as bytes and decoded; the answer may hold
// no task. It uses a new claim_request_id only after an empty answer, so a repeated request cannot claim a second
// task.
func claimNext(ctx context.Context, s session.Talk, w wire.Claim, wait time.Duration) ([]byte, wire.Answer, error) {
	until := time.Now().Add(wait)
	lease := time.Duration(w.LeaseMS) * time.Millisecond
	for {
		hold := repeat.PollWait(time.Until(until), lease)
		// Rounded up, because the last request would otherwise end just before the time is over.
		w.WaitMS, w.ClaimRequestID = (hold + time.Millisecond - 1).Milliseconds(), rand.Text()
		r, err := session.Post("/api/tasks/claim", w, "If a task was claimed, it can be claimed again when the lease has ended.")
		if err != nil {
			return nil, wire.Answer{}, err
		}
		r.Wait = hold
		asked := time.Now()
		var answer wire.Answer
		raw, err := s.Do(ctx, r, &answer)
		empty := err == nil && answer.Task == nil && len(answer.Tasks) == 0 || errors.Is(err, client.ErrNoTasks)
		if !empty || !time.Now().Before(until) {
			return raw, answer, err
		}
		select {
		case <-time.After(emptyPause - time.Since(asked)):
		case <-ctx.Done():
			return raw, answer, err
		}
	}
}

// waitEnded waits up to wait until the task at path has ended. It returns the current task, decoded and as bytes.
func waitEnded(ctx context.Context, s session.Talk, path string, wait time.Duration) (*wire.Task, []byte, error) {
	until := time.Now().Add(wait)
	for {
		hold := max(0, min(time.Until(until), repeat.PollMax))
		r := session.Get(path + "?wait_ms=" + strconv.FormatInt((hold+time.Millisecond-1).Milliseconds(), 10))
		r.Wait = hold
		asked := time.Now()
		var answer wire.Answer
		body, err := s.Do(ctx, r, &answer)
		switch {
		case err != nil:
			return nil, nil, err
		case answer.Task == nil:
			return nil, nil, errors.New("the answer has no task")
		case client.TaskStatus(answer.Task.Status).Ended(), !time.Now().Before(until):
			return answer.Task, body, nil
		}
		select {
		case <-time.After(emptyPause - time.Since(asked)):
		case <-ctx.Done():
			return nil, nil, &term.CallError{Err: ctx.Err()}
		}
	}
}

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

// emptyPause keeps a claim from asking in a tight loop a server that does not
// wait as long as it was asked to.
const emptyPause = 100 * time.Millisecond

// claimNext claims by w and waits up to wait if there is nothing. It returns the
// answer as it came and decoded, possibly without a task. Each request has a
// claim_request_id of its own: a new one only after an empty answer.
func claimNext(ctx context.Context, s session.Talk, w wire.Claim, wait time.Duration) ([]byte, wire.Answer, error) {
	until := time.Now().Add(wait)
	lease := time.Duration(w.LeaseMS) * time.Millisecond
	for {
		hold := repeat.PollWait(time.Until(until), lease)
		// Rounded up: else the last request would end just before the time does.
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

// waitEnded waits up to wait until the task has ended, and returns it as it is
// then, also as it came.
func waitEnded(ctx context.Context, s session.Talk, id uint64, wait time.Duration) (*wire.Task, []byte, error) {
	until := time.Now().Add(wait)
	for {
		hold := max(0, min(time.Until(until), repeat.PollMax))
		path := session.TaskPath(id, "") + "?wait_ms=" + strconv.FormatInt((hold+time.Millisecond-1).Milliseconds(), 10)
		r := session.Get(path)
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

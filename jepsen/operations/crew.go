package operations

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
)

// crewType is the type of the crew's tasks. It is paused, so that nobody else
// claims them: by id they can be.
const crewType = "crew"

const (
	crewSize = 4
	// crewPause is between two tasks of one of them.
	crewPause = 20 * time.Millisecond
	// crewErrorsMax bounds the errors that are kept.
	crewErrorsMax = 20
)

// crew goes through the ordinary client, which repeats by itself what
// fails for a moment. What it returns is what a program sees of an upgrade.
type crew struct {
	client *client.Client
	done   chan struct{}
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	calls   int
	longest time.Duration
	errors  []error
}

func startCrew(ctx context.Context, urls []string) (*crew, error) {
	c, err := client.New(client.Config{Endpoints: urls})
	if err != nil {
		return nil, err
	}
	u := &crew{client: c, done: make(chan struct{})}
	paused := true
	if _, err := c.SetType(ctx, crewType, client.TypeSettings{Paused: &paused}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for i := range crewSize {
		u.work.Go(func() { u.run(ctx, fmt.Sprintf("crew-%d", i)) })
	}
	return u, nil
}

// run takes one task after the other through its life.
func (u *crew) run(ctx context.Context, worker string) {
	for {
		select {
		case <-u.done:
			return
		case <-ctx.Done():
			return
		case <-time.After(crewPause):
		}
		var id string
		life := []struct {
			what string
			do   func() error
		}{
			{"submit", func() (err error) {
				id, err = u.client.Submit(ctx, client.Task{TaskType: crewType, Payload: []byte(`{}`), MaxAttempts: client.UnlimitedAttempts})
				return err
			}},
			{"claim", func() error { return u.client.Claim(ctx, id, worker) }},
			{"complete", func() error { return u.client.Complete(ctx, id, []byte(`{"by":"crew"}`)) }},
			{"get", func() error {
				t, err := u.client.Get(ctx, id)
				if err == nil && t.Status != client.StatusCompleted {
					err = fmt.Errorf("task %s is %s after its complete", id, t.Status)
				}
				return err
			}},
			{"delete", func() error { return u.client.Delete(ctx, id) }},
		}
		for _, step := range life {
			if !u.note(step.what, step.do) {
				break
			}
		}
	}
}

// note makes a call and notes how long it took, and its error.
func (u *crew) note(what string, do func() error) (ok bool) {
	start := time.Now()
	err := do()
	took := time.Since(start)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	u.longest = max(u.longest, took)
	if err != nil && len(u.errors) < crewErrorsMax {
		u.errors = append(u.errors, fmt.Errorf("%s, after %v: %w", what, took.Round(time.Millisecond), err))
	}
	return err == nil
}

// stop lets each end the task that it is at, and waits.
func (u *crew) stop() {
	close(u.done)
	u.work.Wait()
	_ = u.client.Close()
}

// tell adds what was seen to the report.
func (u *crew) tell(r *Report) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf("ordinary client: %d calls, the longest %v", u.calls, u.longest.Round(time.Millisecond)))
	for _, err := range u.errors {
		r.violate("the ordinary client: %v", err)
	}
}

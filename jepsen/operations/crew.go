package operations

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
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
	end    context.CancelFunc
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
	paused := true
	if _, err := c.SetType(ctx, crewType, client.TypeSettings{Paused: &paused}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	going, end := context.WithCancel(ctx)
	u := &crew{client: c, end: end}
	for i := range crewSize {
		u.work.Go(func() {
			for pause.For(going, crewPause) {
				u.live(ctx, fmt.Sprintf("crew-%d", i))
			}
		})
	}
	return u, nil
}

// live takes a task through its life, until a call fails.
func (u *crew) live(ctx context.Context, worker string) {
	var id string
	_ = u.note("submit", func() (err error) {
		id, err = u.client.Submit(ctx, client.Task{TaskType: crewType, Payload: []byte(`{}`), MaxAttempts: client.UnlimitedAttempts})
		return err
	}) && u.note("claim", func() error {
		return u.client.Claim(ctx, id, worker)
	}) && u.note("complete", func() error {
		return u.client.Complete(ctx, id, []byte(`{"by":"crew"}`))
	}) && u.note("get", func() error {
		t, err := u.client.Get(ctx, id)
		if err == nil && t.Status != client.StatusCompleted {
			err = fmt.Errorf("task %s is %s after its complete", id, t.Status)
		}
		return err
	}) && u.note("delete", func() error {
		return u.client.Delete(ctx, id)
	})
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

// stop lets each end the task that it is at, waits, and adds what was seen to the report.
func (u *crew) stop(r *Report) {
	u.end()
	u.work.Wait()
	_ = u.client.Close()
	r.notes = append(r.notes, fmt.Sprintf("ordinary client: %d calls, the longest %v", u.calls, u.longest.Round(time.Millisecond)))
	for _, err := range u.errors {
		r.found(ruleClient, nil, "%v", err)
	}
}

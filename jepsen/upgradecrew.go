package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
)

// crewType is the type of the crew's tasks. It is paused, so that nobody else
// claims them: by id they can be.
const crewType = "upgrade-crew"

const (
	crewSize = 4
	// crewPause is between two tasks of one of them.
	crewPause = 20 * time.Millisecond
	// crewErrorsMax bounds the errors that are kept.
	crewErrorsMax = 20
)

// upgradeCrew goes through the ordinary client, which repeats by itself what
// fails for a moment. What it returns is what a program sees of an upgrade.
type upgradeCrew struct {
	client *client.Client
	done   chan struct{}
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	calls   int
	longest time.Duration
	errors  []error
}

// crewReport is what the crew saw.
type crewReport struct {
	Calls   int
	Longest time.Duration // of a call, with its repeats
	Errors  []error
}

func startUpgradeCrew(ctx context.Context, urls []string) (*upgradeCrew, error) {
	c, err := client.New(client.Config{Endpoints: urls})
	if err != nil {
		return nil, err
	}
	u := &upgradeCrew{client: c, done: make(chan struct{})}
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
func (u *upgradeCrew) run(ctx context.Context, worker string) {
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
func (u *upgradeCrew) note(what string, do func() error) (ok bool) {
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
func (u *upgradeCrew) stop() {
	close(u.done)
	u.work.Wait()
	_ = u.client.Close()
}

// report returns what was seen.
func (u *upgradeCrew) report() crewReport {
	u.mu.Lock()
	defer u.mu.Unlock()
	return crewReport{Calls: u.calls, Longest: u.longest, Errors: slices.Clone(u.errors)}
}

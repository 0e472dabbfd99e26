package workers

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// submitTimeout bounds a submit, over any number of changes of leader.
const submitTimeout = time.Minute

// submitted is a task that the harness submitted.
type submitted struct {
	key    string
	params diary.Params
}

// produce submits tasks at the rate until end. A submit that was not acknowledged is an
// error, because no trouble lasts that long.
func (r *run) produce(ctx context.Context, end time.Time) error {
	rng := rand.New(rand.NewSource(r.cfg.Seed + 1))
	pace := time.NewTicker(time.Second / time.Duration(r.cfg.Rate))
	defer pace.Stop()
	for n := 1; time.Now().Before(end); n++ {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return nil // the other goroutine says why
		}
		s := submitted{key: fmt.Sprintf("t%d", n), params: diary.Params{Seed: rng.Int63n(1 << 32), Fails: rng.Intn(20) == 0}}
		for i := range []int{0, 0, 0, 0, 0, 1, 1, 3}[rng.Intn(8)] {
			s.params.Then = append(s.params.Then, fmt.Sprintf("%s-then-%d", s.key, i+1))
		}
		taskType := diary.Plain
		if rng.Intn(4) == 0 {
			taskType = diary.Timed
		}
		task, err := client.NewTask(taskType, s.params)
		if err != nil {
			return err
		}
		task.IdempotencyKey, task.MaxAttempts = s.key, client.UnlimitedAttempts
		submitting, cancel := context.WithTimeoutCause(ctx, submitTimeout, errors.New("a submit is not acknowledged"))
		_, err = r.client.Submit(submitting, task)
		cancel()
		if err != nil {
			return err
		}
		r.submitted = append(r.submitted, s)
	}
	return nil
}

package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
)

const (
	taskType = "hash"
	// rounds is the length of a task: the number of times that a text is hashed.
	rounds = 4000
	// callPatience is the time for which the client retries a call before it gives up on
	// its outcome.
	callPatience = 20 * time.Second
	lease        = 10 * time.Second
	// idleWait bounds a worker's wait for a task.
	idleWait = time.Second
)

// hash does the work of a task: it hashes the text, then the hash, and so on.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	for range rounds - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}

// textOf is the text of a task.
func textOf(number int) string { return fmt.Sprintf("text number %d", number) }

// work starts producers, which end when everything is submitted, and workers; all end with
// ctx.
func (d *demo) work(ctx context.Context) (producers, workers *sync.WaitGroup) {
	producers, workers = &sync.WaitGroup{}, &sync.WaitGroup{}
	for i := range producerCount {
		producers.Go(func() {
			for n := i + 1; n <= d.Tasks && ctx.Err() == nil; n += producerCount {
				// Half of the tasks are held back until some work is done, so that there is
				// something to submit when the leader dies.
				if d.wait(ctx, func() bool { return len(d.tally.completed) >= n-d.Tasks/2 }) == nil {
					d.write(ctx, func(ctx context.Context) (note func(), err error) { return d.submit(ctx, n) })
				}
			}
		})
	}
	for i := range workerCount {
		workers.Go(func() {
			for ctx.Err() == nil {
				d.write(ctx, func(ctx context.Context) (note func(), err error) {
					return d.process(ctx, fmt.Sprintf("worker-%d", i+1))
				})
			}
		})
	}
	return producers, workers
}

// write makes calls and records what was acknowledged, or an error unless it is caused by
// the end of ctx.
func (d *demo) write(ctx context.Context, calls func(context.Context) (note func(), err error)) {
	asked := time.Now()
	calling, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	note, err := calls(calling)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		note()
		if d.stood == 0 && !d.died.IsZero() && asked.After(d.died) {
			d.stood = time.Since(d.died)
		}
	case ctx.Err() == nil && !errors.Is(err, client.ErrNoTasks):
		d.tally.failures = append(d.tally.failures, err)
	}
}

// submit submits the task of that number.
func (d *demo) submit(ctx context.Context, number int) (note func(), err error) {
	task, err := client.NewTask(taskType, textOf(number))
	if err != nil {
		return nil, err
	}
	task.IdempotencyKey = fmt.Sprintf("text-%d", number)
	id, err := d.client.Submit(ctx, task)
	return func() { d.tally.submitted[id] = number }, err
}

// process claims a task and does it.
func (d *demo) process(ctx context.Context, worker string) (note func(), err error) {
	claim, err := d.client.ClaimNext(ctx, client.ClaimRequest{WorkerID: worker, Types: []string{taskType}, Lease: lease, Wait: idleWait})
	if err != nil {
		return nil, err
	}
	var text string
	if err := json.Unmarshal(claim.Task.Payload, &text); err != nil {
		return nil, err
	}
	err = claim.Complete(ctx, strconv.AppendQuote(nil, hash(text)))
	return func() { d.tally.completed[claim.Task.ID]++ }, err
}

// waitDone waits until all tasks are done.
func (d *demo) waitDone(ctx context.Context) error {
	return pause.Until(ctx, pollInterval, func() error {
		var stats wire.Stats
		err := d.cluster.Nodes[0].Ask(ctx, http.MethodGet, "/api/stats", nil, &stats)
		if left := stats.Counts["pending"] + stats.Counts["claimed"]; err == nil && left > 0 {
			err = fmt.Errorf("%d tasks are not done", left)
		}
		return err
	})
}

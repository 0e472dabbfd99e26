package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
)

const (
	taskType      = "hash"
	producerCount = 4
	// callPatience is how long the client asks again before a call's outcome is
	// given up as unknown.
	callPatience = 20 * time.Second
	lease        = 10 * time.Second
	// idleWait is how long a worker waits for a task.
	idleWait = time.Second
	// pollInterval is how often a condition is looked at.
	pollInterval = 5 * time.Millisecond
)

// job is what a task asks for: the SHA-256 of a text, of that, and so on.
type job struct {
	Text   string `json:"text"`
	Rounds int    `json:"rounds"`
}

func jobOf(n, rounds int) job { return job{Text: fmt.Sprintf("text number %d", n), Rounds: rounds} }

func (j job) do() string {
	sum := sha256.Sum256([]byte(j.Text))
	for range j.Rounds - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}

// work starts producers, which end when all is submitted, and workers; all end with ctx.
func (d *demo) work(ctx context.Context) (producers, workers *sync.WaitGroup) {
	producers, workers = &sync.WaitGroup{}, &sync.WaitGroup{}
	var next atomic.Int64
	for range producerCount {
		producers.Go(func() {
			for n := int(next.Add(1)); n <= d.Tasks && ctx.Err() == nil; n = int(next.Add(1)) {
				// Half of them are held back until some work is done, so that there is
				// something to submit when the leader dies.
				if n <= d.Tasks/2 || d.tally.waitCompleted(ctx, n-d.Tasks/2) == nil {
					d.try(ctx, func(ctx context.Context) error { return d.submit(ctx, n) })
				}
			}
		})
	}
	for i := range d.Workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				d.try(ctx, func(ctx context.Context) error { return d.process(ctx, fmt.Sprintf("worker-%d", i+1)) })
			}
		})
	}
	return producers, workers
}

// try makes calls, and notes an error that is not for the end of ctx.
func (d *demo) try(ctx context.Context, calls func(context.Context) error) {
	calling, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	if err := calls(calling); err != nil && !errors.Is(err, client.ErrNoTasks) && ctx.Err() == nil {
		d.tally.failed(err)
	}
}

// submit submits a task.
func (d *demo) submit(ctx context.Context, n int) error {
	asked := time.Now()
	task, err := client.NewTask(taskType, jobOf(n, d.Rounds))
	if err != nil {
		return err
	}
	task.IdempotencyKey = fmt.Sprintf("text-%d", n)
	id, err := d.client.Submit(ctx, task)
	if err == nil {
		d.tally.submitted(id, n, asked)
	}
	return err
}

// process claims a task and does it.
func (d *demo) process(ctx context.Context, worker string) error {
	claim, err := d.client.ClaimNext(ctx, client.ClaimRequest{WorkerID: worker, Types: []string{taskType}, Lease: lease, Wait: idleWait})
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(claim.Task.Payload, &j); err != nil {
		return err
	}
	result, err := json.Marshal(j.do())
	if err != nil {
		return err
	}
	asked := time.Now()
	if err := claim.Complete(ctx, result); err != nil {
		return err
	}
	d.tally.completed(claim.Task.ID, asked)
	return nil
}

// waitDone waits until nothing is left to do.
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

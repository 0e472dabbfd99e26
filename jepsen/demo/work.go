package main

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
			for n := int(next.Add(1)); n <= d.tasks && ctx.Err() == nil; n = int(next.Add(1)) {
				d.produce(ctx, n)
			}
		})
	}
	for i := range d.workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				d.process(ctx, fmt.Sprintf("worker-%d", i+1))
			}
		})
	}
	return producers, workers
}

// produce submits a task. Half of them are held back until some work is done,
// so that there is something to submit when the leader dies.
func (d *demo) produce(ctx context.Context, n int) {
	if n > d.tasks/2 && d.waitCompleted(ctx, n-d.tasks/2) != nil {
		return
	}
	asked := time.Now()
	task, err := client.NewTask(taskType, jobOf(n, d.rounds))
	if err == nil {
		task.IdempotencyKey = fmt.Sprintf("text-%d", n)
		var id string
		if id, err = d.submit(ctx, task); err == nil {
			d.tally.submitted(id, n, asked)
		}
	}
	d.tally.failed(ctx, err)
}

func (d *demo) submit(ctx context.Context, task client.Task) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	return d.client.Submit(ctx, task)
}

// process claims a task and does it.
func (d *demo) process(ctx context.Context, worker string) {
	err := d.processOne(ctx, worker)
	if !errors.Is(err, client.ErrNoTasks) {
		d.tally.failed(ctx, err)
	}
}

func (d *demo) processOne(ctx context.Context, worker string) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	claim, err := d.client.ClaimNext(ctx, client.ClaimRequest{WorkerID: worker, Types: []string{taskType}, Lease: lease, Wait: idleWait})
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(claim.Task.Payload, &j); err != nil {
		return claim.Fail(ctx, err)
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

// waitCompleted waits until so many tasks are completed.
func (d *demo) waitCompleted(ctx context.Context, count int) error {
	return wait(ctx, func() bool { _, completed, _ := d.tally.progress(); return completed >= count })
}

// waitDone waits until nothing is left to do.
func (d *demo) waitDone(ctx context.Context) error {
	var err error
	return errors.Join(wait(ctx, func() bool {
		var stats wire.Stats
		err = d.cluster.Nodes[0].Ask(ctx, http.MethodGet, "/api/stats", nil, &stats)
		return err != nil || stats.Counts["pending"]+stats.Counts["claimed"] == 0
	}), err)
}

// wait waits until ready, or ctx ends.
func wait(ctx context.Context, ready func() bool) error {
	for !ready() {
		if !pause.For(ctx, pollInterval) {
			return context.Cause(ctx)
		}
	}
	return nil
}

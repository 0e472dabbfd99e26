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
)

// job is what a task asks for: the SHA-256 of a text, of that, and so on.
type job struct {
	Text   string `json:"text"`
	Rounds int    `json:"rounds"`
}

func (j job) do() string {
	sum := sha256.Sum256([]byte(j.Text))
	for range j.Rounds - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}

const (
	taskType  = "hash"
	producers = 4
	// callPatience is how long the client asks again before a call's outcome is
	// given up as unknown.
	callPatience = 20 * time.Second
	lease        = 10 * time.Second
)

func jobOf(n, rounds int) job { return job{Text: fmt.Sprintf("text number %d", n), Rounds: rounds} }

func keyOf(n int) string { return fmt.Sprintf("text-%d", n) }

// work starts producers and workers. They end with ctx, and the channel is
// closed when they have.
func (d *demo) work(ctx context.Context) <-chan struct{} {
	var all sync.WaitGroup
	var next atomic.Int64
	for range producers {
		all.Go(func() { d.produce(ctx, &next) })
	}
	for i := range d.workers {
		all.Go(func() { d.process(ctx, fmt.Sprintf("worker-%d", i+1)) })
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	return done
}

// produce submits tasks. Half of them are held back until some work is done,
// so that there is something to submit when the leader dies.
func (d *demo) produce(ctx context.Context, next *atomic.Int64) {
	defer d.tally.producerDone()
	for ctx.Err() == nil {
		n := int(next.Add(1))
		if n > d.tasks {
			return
		}
		if n > d.tasks/2 {
			_ = wait(ctx, func() bool { _, completed := d.tally.progress(); return completed >= n-d.tasks/2 })
		}
		task, err := client.NewTask(taskType, jobOf(n, d.rounds))
		if err != nil {
			d.tally.failed(err)
			return
		}
		task.IdempotencyKey = keyOf(n)
		call, cancel := context.WithTimeout(ctx, callPatience)
		asked := time.Now()
		id, err := d.client.Submit(call, task)
		cancel()
		if err == nil {
			d.tally.submitted(id, n, asked)
		} else if ctx.Err() == nil {
			d.tally.failed(err)
		}
	}
}

// process is one worker.
func (d *demo) process(ctx context.Context, worker string) {
	for ctx.Err() == nil {
		if err := d.processOne(ctx, worker); err != nil && ctx.Err() == nil {
			d.tally.failed(err)
		}
	}
}

func (d *demo) processOne(ctx context.Context, worker string) error {
	call, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	asked := time.Now()
	claim, err := d.client.ClaimNext(call, client.ClaimRequest{WorkerID: worker, Types: []string{taskType}, Lease: lease})
	if errors.Is(err, client.ErrNoTasks) {
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
		return nil
	}
	if err != nil {
		return err
	}
	d.tally.claimed(claim, asked)
	var j job
	if err := json.Unmarshal(claim.Task.Payload, &j); err != nil {
		return claim.Fail(call, err)
	}
	result, err := json.Marshal(j.do())
	if err != nil {
		return err
	}
	asked = time.Now()
	if err := claim.Complete(call, result); err != nil {
		return err
	}
	d.tally.completed(claim.Task.ID, asked)
	return nil
}

// waitDone waits until everything was submitted and nothing is left to do.
func (d *demo) waitDone(ctx context.Context) error {
	if err := wait(ctx, func() bool { return d.tally.producersDone() == producers }); err != nil {
		return err
	}
	for {
		raw, err := d.client.Do(ctx, client.Request{Method: http.MethodGet, Path: "/api/stats"})
		if err != nil {
			return err
		}
		var stats wire.Stats
		if err := json.Unmarshal(raw, &stats); err != nil {
			return err
		}
		if stats.Counts["pending"]+stats.Counts["claimed"] == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
)

// settledWait is the interval at which the load checks whether the Worker has settled everything.
const settledWait = time.Millisecond

// clientLoad drives the cluster like a Go program that uses package client: as many goroutines submit as there would
// be connections, and one Worker has as many slots.
type clientLoad struct {
	r      *run
	c      *client.Client
	worker *client.Worker
	task   client.Task

	timings []*timings
	ledgers []*ledger // of the submitting goroutines

	mu      sync.Mutex
	handled []string // ids, once for each time that the Worker handled them; guarded by mu
}

// runClient is Run with package client.
func (r *run) runClient(ctx context.Context, nodes []string) (Report, error) {
	c, err := client.New(client.Config{Endpoints: r.cfg.Endpoints})
	if err != nil {
		return Report{}, err
	}
	defer c.Close()
	l := &clientLoad{r: r, c: c}
	params := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, r.cfg.Payload-2)...), '"')
	l.task = client.Task{TaskType: fmt.Sprintf("bench-%x", time.Now().UnixNano()), Payload: params}
	for range r.cfg.Conns {
		l.timings, l.ledgers = append(l.timings, &timings{}), append(l.ledgers, &ledger{})
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if l.worker, err = client.NewWorker(c, client.WorkerConfig{Concurrency: r.cfg.Conns, Logger: logger}); err != nil {
		return Report{}, err
	}
	client.Handle(l.worker, l.task.TaskType, l.handle)
	work := l.lifecycle
	switch r.cfg.Mode {
	case Submit:
		work = l.submitAll
	case Drain:
		r.left.Store(int64(r.cfg.Tasks))
		l.submitAll(ctx)
		if err := context.Cause(ctx); err != nil {
			return Report{}, err
		}
		work = l.drain
	case Lifecycle, Latency, Chain:
	}
	rep, err := r.measure(ctx, nodes, work)
	if err != nil {
		return rep, err
	}
	rep.Client, rep.Calls = true, latencies(l.timings)
	if r.cfg.Mode != Submit {
		rep.Done, rep.Doubled, rep.Lost = l.totals()
	}
	return rep, nil
}

// submitAll submits all tasks, from all goroutines.
func (l *clientLoad) submitAll(ctx context.Context) {
	var wg sync.WaitGroup
	for k := range l.timings {
		wg.Go(func() {
			if err := l.submit(ctx, l.timings[k], l.ledgers[k]); err != nil {
				l.r.stop(err)
			}
		})
	}
	wg.Wait()
}

func (l *clientLoad) submit(ctx context.Context, t *timings, led *ledger) error {
	for ctx.Err() == nil && l.r.take() > 0 {
		t.counting = l.r.counting.Load()
		start := time.Now()
		id, err := l.c.Submit(ctx, l.task)
		t.add(callSubmit, time.Since(start))
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return fmt.Errorf("submit: the id is %q: %w", id, err)
		}
		led.submitted = append(led.submitted, n)
		l.r.open.Add(1)
		if l.r.cfg.Mode == Submit {
			l.r.done.Add(1)
		}
	}
	return nil
}

// handle is the Worker's handler: it records the task.
func (l *clientLoad) handle(_ context.Context, job *client.Job[json.RawMessage]) error {
	l.mu.Lock()
	l.handled = append(l.handled, job.Task.ID)
	l.mu.Unlock()
	l.r.done.Add(1)
	return nil
}

// lifecycle submits all tasks while the Worker works.
func (l *clientLoad) lifecycle(ctx context.Context) {
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		l.submitAll(ctx)
	}()
	l.work(ctx, submitted)
	<-submitted
}

// drain lets the Worker work until all tasks are done.
func (l *clientLoad) drain(ctx context.Context) {
	submitted := make(chan struct{})
	close(submitted)
	l.work(ctx, submitted)
}

// work runs the Worker until all submitted tasks are completed.
func (l *clientLoad) work(ctx context.Context, submitted <-chan struct{}) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		defer end()
		select {
		case <-submitted:
		case <-ctx.Done():
			return
		}
		look := time.NewTicker(settledWait)
		defer look.Stop()
		for s := l.worker.Stats(); s.Completed+s.Failed+s.Lost < l.r.open.Load(); s = l.worker.Stats() {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := l.worker.Run(ctx); err != nil {
		l.r.stop(err)
	}
}

// totals counts the tasks that were handled, those handled more than once, and those submitted but never handled, or
// not completed as far as the Worker knows.
func (l *clientLoad) totals() (done, doubled, lost int) {
	handled := &ledger{}
	for _, id := range l.handled {
		n, _ := strconv.ParseUint(id, 10, 64) // the client formatted a number
		handled.completed = append(handled.completed, n)
	}
	done, doubled, lost = totals(append(l.ledgers, handled))
	s := l.worker.Stats()
	return done, doubled, lost + int(s.Failed+s.Lost)
}

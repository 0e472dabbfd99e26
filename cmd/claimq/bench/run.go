package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// emptyPause is the pause of a connection that found nothing to claim although tasks are left, because others hold
// them.
const emptyPause = time.Millisecond

// run is the state of a run.
type run struct {
	cfg  Config
	left atomic.Int64 // tasks that no connection has begun
	open atomic.Int64 // tasks submitted and not yet completed
	done atomic.Int64 // finished tasks, for the rate

	counting atomic.Bool
	stop     context.CancelCauseFunc
}

// Run drives the cluster as cfg says and returns the result. An error of any call ends it.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Mode == Latency {
		cfg.Conns, cfg.Batch = 1, 1
	}
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	leader, nodes, err := findCluster(ctx, cfg.Endpoints)
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{cfg: cfg, stop: cancel}
	if cfg.Client {
		return r.runClient(ctx, nodes)
	}
	conns := r.connect(leader)
	defer func() {
		for _, c := range conns {
			c.link.close()
		}
	}()

	if cfg.Mode == Drain {
		r.left.Store(int64(cfg.Tasks))
		r.each(ctx, conns, r.submitAll)
		if err := context.Cause(ctx); err != nil {
			return Report{}, err
		}
	}
	rep, err := r.measure(ctx, nodes, func(ctx context.Context) { r.each(ctx, conns, r.modeWork()) })
	if err != nil {
		return rep, err
	}
	all, ledgers := make([]*timings, len(conns)), make([]*ledger, len(conns))
	for k, c := range conns {
		all[k], ledgers[k] = c.timings, c.ledger
	}
	rep.Calls = latencies(all)
	if cfg.Mode != Submit {
		rep.Done, rep.Doubled, rep.Lost = totals(ledgers)
	}
	return rep, nil
}

// connect makes the connections; each opens at its first call.
func (r *run) connect(leader string) []*conn {
	params := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, r.cfg.Payload-2)...), '"')
	taskType := fmt.Sprintf("bench-%x", time.Now().UnixNano())
	conns := make([]*conn, r.cfg.Conns)
	for k := range conns {
		conns[k] = newConn(leader, taskType, k, params, r.cfg)
	}
	return conns
}

// each runs work on every connection and waits for all. The first error ends the run.
func (r *run) each(ctx context.Context, conns []*conn, work func(context.Context, *conn) error) {
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			if err := work(ctx, c); err != nil {
				r.stop(err)
			}
		})
	}
	wg.Wait()
}

func (r *run) modeWork() func(context.Context, *conn) error {
	switch r.cfg.Mode {
	case Submit:
		return r.submitAll
	case Drain:
		return r.drain
	case Chain:
		return r.chain
	case Lifecycle, Latency:
	}
	return r.lifecycle
}

// measure runs work and counts from the end of the warm-up.
func (r *run) measure(ctx context.Context, nodes []string, work func(context.Context)) (Report, error) {
	if r.cfg.Mode != Drain {
		r.left.Store(int64(r.cfg.Tasks))
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		work(ctx)
	}()
	warm := time.NewTimer(r.cfg.WarmUp)
	defer warm.Stop()
	select {
	case <-warm.C:
	case <-finished:
		if err := context.Cause(ctx); err != nil {
			return Report{}, err
		}
		return Report{}, fmt.Errorf("all %d tasks were done before the warm-up of %v ended: give more --tasks", r.cfg.Tasks, r.cfg.WarmUp)
	}
	// Counting begins before the nodes are asked, which on a busy machine can take as long as a small run.
	from, start := r.done.Load(), time.Now()
	r.counting.Store(true)
	load := loadCPU()
	before := usageOf(nodes)
	<-finished
	elapsed := time.Since(start)
	load = loadCPU() - load
	if err := context.Cause(ctx); err != nil {
		return Report{}, err
	}
	tasks := int(r.done.Load() - from)
	rep := Report{
		Mode: r.cfg.Mode, Conns: r.cfg.Conns, Batch: r.cfg.Batch, Payload: r.cfg.Payload, Nodes: len(nodes),
		Seconds: elapsed.Seconds(), Tasks: tasks, TasksPerSecond: float64(tasks) / elapsed.Seconds(),
		LoadCPU: load,
	}
	for node, after := range usageOf(nodes) {
		if at, ok := before[node]; ok && at.cpuSeconds <= after.cpuSeconds { // it did not restart
			rep.NodesSeen++
			rep.ServerCPU += after.cpuSeconds - at.cpuSeconds
			rep.ServerRSS += after.rssBytes
			rep.LogBytes += after.logBytes - at.logBytes
		}
	}
	return rep, nil
}

// take returns how many tasks the connection may begin now; 0: none is left.
func (r *run) take() int {
	n := int64(r.cfg.Batch)
	left := r.left.Add(-n)
	return int(max(0, min(n, left+n)))
}

func (r *run) submitAll(ctx context.Context, c *conn) error {
	for ctx.Err() == nil {
		c.timings.counting = r.counting.Load()
		n := r.take()
		if n == 0 {
			return nil
		}
		if err := c.submit(n); err != nil {
			return err
		}
		r.open.Add(int64(n))
		if r.cfg.Mode == Submit {
			r.done.Add(int64(n))
		}
	}
	return nil
}

func (r *run) lifecycle(ctx context.Context, c *conn) error {
	for ctx.Err() == nil {
		c.timings.counting = r.counting.Load()
		n := r.take()
		if n == 0 {
			return r.drain(ctx, c) // tasks that others submitted and that are not claimed yet
		}
		if err := c.submit(n); err != nil {
			return err
		}
		r.open.Add(int64(n))
		if err := r.work(c, n); err != nil && !errors.Is(err, errNone) {
			return err
		}
	}
	return nil
}

// chain submits a task and completes the one that the connection holds with a claim of the next, in turn. The first
// task is claimed separately, and so is the next one whenever others took all tasks.
func (r *run) chain(ctx context.Context, c *conn) error {
	var holds *held
	for ctx.Err() == nil {
		c.timings.counting = r.counting.Load()
		if r.take() == 0 {
			break
		}
		if err := c.submit(1); err != nil {
			return err
		}
		r.open.Add(1)
		var err error
		if holds, err = r.next(c, holds); err != nil {
			return err
		}
	}
	for ctx.Err() == nil && holds != nil { // tasks that others submitted and that are not claimed yet
		c.timings.counting = r.counting.Load()
		var err error
		if holds, err = r.next(c, holds); err != nil {
			return err
		}
	}
	return r.drain(ctx, c)
}

// next completes the task that the connection holds and claims the next in the same call, or only claims if it holds
// none. It returns nil if there was nothing to claim.
func (r *run) next(c *conn, holds *held) (*held, error) {
	if holds == nil {
		tasks, err := c.claim(1)
		if errors.Is(err, errNone) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return &tasks[0], nil
	}
	next, err := c.completeAndClaim(*holds)
	if err != nil {
		return nil, err
	}
	r.completed(1)
	return next, nil
}

func (r *run) completed(n int) {
	r.open.Add(-int64(n))
	r.done.Add(int64(n))
}

// drain claims and completes until every task is completed.
func (r *run) drain(ctx context.Context, c *conn) error {
	for ctx.Err() == nil && r.open.Load() > 0 {
		c.timings.counting = r.counting.Load()
		switch err := r.work(c, r.cfg.Batch); {
		case errors.Is(err, errNone):
			select {
			case <-time.After(emptyPause):
			case <-ctx.Done():
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// work claims up to n tasks and completes them.
func (r *run) work(c *conn, n int) error {
	tasks, err := c.claim(n)
	if err != nil {
		return err
	}
	if err := c.completeAll(tasks); err != nil {
		return err
	}
	r.completed(len(tasks))
	return nil
}

package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

// Config says what the callers do.
type Config struct {
	Nodes     []string // base URLs
	Producers int
	Workers   int
	Readers   int
	Tasks     int // to submit in all
	LeaseMS   int64
	// Name begins the idempotency keys and claim request ids: two workloads of one
	// cluster need two. "" = made from the recorder's seed.
	Name string
	// Rate bounds the submits per second in all; 0 = as fast as it goes.
	Rate int
}

// idlePause is how long a worker waits when there was nothing to claim, and
// everybody when there is no leader.
const idlePause = 20 * time.Millisecond

// Workload is producers, workers and readers at work. All they choose comes
// from the seed; what the cluster answers does not, so two runs of a seed are
// alike and not the same.
type Workload struct {
	rec  *Recorder
	cfg  Config
	seed int64

	taken    atomic.Int64 // that producers have begun with
	lastID   atomic.Uint64
	requests atomic.Int64
	enough   atomic.Bool // no more is submitted

	producers sync.WaitGroup
	others    sync.WaitGroup
	drained   chan struct{} // closed by Drain: workers and readers end
}

// Start starts the callers. They end when ctx does, or by Drain.
func (r *Recorder) Start(ctx context.Context, cfg Config) *Workload {
	w := &Workload{rec: r, cfg: cfg, seed: r.seed, drained: make(chan struct{})}
	if w.cfg.Name == "" {
		w.cfg.Name = fmt.Sprintf("s%d", r.seed)
	}
	start := func(count, stream int, group *sync.WaitGroup, do func(c *Caller, rng *rand.Rand, number int)) {
		for i := range count {
			caller, rng := r.Caller(cfg.Nodes, i), rand.New(rand.NewSource(w.seed*1_000_003+int64(stream+i)))
			group.Go(func() { do(caller, rng, i+1) })
		}
	}
	start(cfg.Producers, 1000, &w.producers, func(c *Caller, rng *rand.Rand, _ int) { w.produce(ctx, c, rng) })
	start(cfg.Workers, 2000, &w.others, func(c *Caller, rng *rand.Rand, n int) { w.work(ctx, c, rng, fmt.Sprintf("w%d", n)) })
	start(cfg.Readers, 3000, &w.others, func(c *Caller, rng *rand.Rand, _ int) { w.read(ctx, c, rng) })
	return w
}

// Enough ends the producers, however much they have submitted of Config.Tasks.
func (w *Workload) Enough() { w.enough.Store(true) }

// Drain waits until the producers are done and every task has ended, then
// stops the workers and reads the state at the end.
func (w *Workload) Drain(ctx context.Context) error {
	w.producers.Wait()
	err := w.waitEmpty(ctx)
	close(w.drained)
	w.others.Wait()
	if err != nil {
		return err
	}
	return w.rec.ReadFinal(ctx, w.cfg.Nodes)
}

// Wait waits for the callers after their ctx has ended.
func (w *Workload) Wait() {
	w.producers.Wait()
	w.others.Wait()
}

func (w *Workload) waitEmpty(ctx context.Context) error {
	for {
		open, err := w.rec.OpenCount(ctx, w.cfg.Nodes)
		if err != nil || open == 0 {
			return err
		}
		if !pause.For(ctx, retryPause) {
			return fmt.Errorf("%d tasks have not ended: %w", open, context.Cause(ctx))
		}
	}
}

// again makes a call until its outcome is known and it is not one to be tried
// later, or ctx ends.
func (w *Workload) again(ctx context.Context, call func() history.Op) history.Op {
	for {
		op := call()
		if !Again(op) || !pause.For(ctx, idlePause) {
			return op
		}
	}
}

// produce submits tasks, each with a key of its own.
func (w *Workload) produce(ctx context.Context, c *Caller, rng *rand.Rand) {
	for ctx.Err() == nil && !w.enough.Load() {
		n := w.taken.Add(1)
		if n > int64(w.cfg.Tasks) {
			return
		}
		var limit int32 // none
		if rng.Intn(8) == 0 {
			limit = 5
		}
		task := wire.NewTask{
			TaskType:       fmt.Sprintf("type-%d", rng.Intn(3)),
			Params:         json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
			Priority:       int32(rng.Intn(3)),
			MaxAttempts:    &limit,
			IdempotencyKey: fmt.Sprintf("%s-%d", w.cfg.Name, n),
			LeaseMS:        w.cfg.LeaseMS,
			Backoff:        &wire.Backoff{}, // none
		}
		op := w.again(ctx, func() history.Op { return c.Submit(ctx, task) })
		if op.Outcome == history.OK {
			w.lastID.Store(op.TaskID)
			if rng.Intn(50) == 0 { // a producer that was not sure
				c.Submit(ctx, task)
			}
		}
		if w.cfg.Rate > 0 {
			pause.For(ctx, time.Duration(w.cfg.Producers)*time.Second/time.Duration(w.cfg.Rate))
		}
	}
}

// drains reports whether workers and readers are to end.
func (w *Workload) drains(ctx context.Context) bool {
	select {
	case <-w.drained:
		return true
	default:
		return ctx.Err() != nil
	}
}

// read reads recent tasks.
func (w *Workload) read(ctx context.Context, c *Caller, rng *rand.Rand) {
	const window = 200
	for pause.For(ctx, idlePause) && !w.drains(ctx) {
		if last := w.lastID.Load(); last > 0 {
			c.Get(ctx, last-min(uint64(rng.Intn(window)), last-1), false)
		}
	}
}

// work claims tasks and settles them, in every way a worker may.
func (w *Workload) work(ctx context.Context, c *Caller, rng *rand.Rand, worker string) {
	for !w.drains(ctx) {
		req := wire.Claim{
			WorkerID: worker, LeaseMS: w.cfg.LeaseMS,
			ClaimRequestID: fmt.Sprintf("%s-r%d", w.cfg.Name, w.requests.Add(1)),
		}
		if rng.Intn(4) == 0 {
			req.SortBy = "created_at"
		}
		op := w.again(ctx, func() history.Op { return c.Claim(ctx, req) })
		if op.Outcome != history.OK {
			pause.For(ctx, idlePause)
			continue
		}
		if rng.Intn(50) == 0 { // a worker that was not sure
			c.Claim(ctx, req)
		}
		w.handle(ctx, c, rng, op)
	}
}

// handle is what a worker does with a claim.
func (w *Workload) handle(ctx context.Context, c *Caller, rng *rand.Rand, claim history.Op) {
	lease := time.Duration(w.cfg.LeaseMS) * time.Millisecond
	hold := wire.Settle{WorkerID: claim.Worker, ClaimToken: claim.Token}
	settle := func(kind history.Kind, s wire.Settle) {
		w.again(ctx, func() history.Op { return c.Settle(ctx, kind, claim.TaskID, s) })
	}
	done := hold
	done.Result = json.RawMessage(fmt.Sprintf(`{"token":%d}`, claim.Token))
	if claim.Seen.Attempts > 1 && rng.Intn(2) == 0 {
		// Somebody may have lost this task before. Hold it for a while, so that
		// the late call meets a claim that is not its own.
		pause.For(ctx, time.Duration(rng.Int63n(int64(lease*3/4))))
	}
	switch n := rng.Intn(1000); {
	case n < 40:
		hold.Error = "it went wrong"
		settle(history.Fail, hold)
	case n < 80:
		settle(history.Release, hold)
	case n < 160:
		extend := hold
		extend.LeaseMS = 2 * w.cfg.LeaseMS
		settle(history.Extend, extend)
		pause.For(ctx, time.Duration(rng.Int63n(int64(10*time.Millisecond))))
		settle(history.Complete, done)
	case n < 170: // much too late
		pause.For(ctx, lease+time.Duration(rng.Int63n(int64(lease/2))))
		late := [...]history.Kind{history.Complete, history.Fail, history.Release, history.Extend}
		kind := late[rng.Intn(len(late))]
		if kind == history.Fail {
			hold.Error = "it took too long"
		}
		settle(kind, hold)
	case n < 175: // about when the lease ends
		pause.For(ctx, lease*9/10+time.Duration(rng.Int63n(int64(lease/5))))
		settle(history.Complete, done)
	case n < 180: // it dies
	case n < 200: // it was not sure
		settle(history.Complete, done)
		settle(history.Complete, done)
	default:
		settle(history.Complete, done)
	}
}

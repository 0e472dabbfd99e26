package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
	"github.com/claimq/claimq/jepsen/strangers"
)

// Config says how many callers there are and how busy they are.
type Config struct {
	Nodes   []string // base URLs
	Clients int      // callers in all, at least MinClients
	Rate    int      // calls per second in all, approximately
	Seed    int64
	// Parents is the percentage of parents among the tasks, 0 = 10; Steps is the number of
	// steps in each parent, 0 = 2 to 5.
	Parents, Steps int
	// Busy means that there is always a lot to claim, instead of alternately a lot and
	// little.
	Busy bool
	// Strangers are callers in addition to Clients.
	Strangers []strangers.Caller
}

const (
	// MinClients is one of each kind for each of five nodes.
	MinClients = 18
	// idlePause is the pause before a caller repeats a call.
	idlePause = 20 * time.Millisecond
	// patience bounds the wait of a reader that is bound to one node: longer than a node
	// may be paused or cut off.
	patience = 10 * time.Second
	// There is one reader bound to the first node per boundShare callers, and the same for
	// the second one, and so on.
	boundShare = 12
	// phaseLength is the length of the phases with a lot to claim, and of those with
	// little.
	phaseLength = 3 * time.Second
	backlogHigh = 150
	backlogLow  = 4
	typeCount   = 3
	// The tasks of two more types are held back: by their group, and by the limit of live
	// claims of the type.
	groupedType   = "grouped"
	groupCount    = 3
	limitedType   = "limited"
	claimedAtOnce = 2
	// The share keys of sharedType take turns: the first has more weight, and the last a limit of live
	// claims.
	sharedType  = "shared"
	shareCount  = 3
	shareWeight = 300
	// Tasks of delayedType are submitted with a delay of at most delayMSMax.
	delayedType = "delayed"
	delayMSMax  = 2500
	// waitMSMax bounds the waits of workers for a task, and of readers for its end.
	waitMSMax = 1500
	// There is one processor per processorShare callers.
	processorShare = 12
	// contendedShare is the number of callers per processor for each percent of parents: if
	// all tasks are parents, a third of the callers are processors, which contend.
	contendedShare = 300
)

// leases are the lengths that workers request, in milliseconds: short, so that many end.
var leases = [...]int64{300, 600, 1000, 1500, 3000}

// Workload is a group of active callers.
type Workload struct {
	rec   *recorder.Recorder
	cfg   Config
	pace  time.Duration // between two calls of a caller, on average
	began time.Time

	started  int          // callers
	names    atomic.Int64 // makes keys and request ids unique
	created  atomic.Int64 // acknowledged submits, as counted by WaitSubmitted
	open     atomic.Int64 // tasks not known to have ended, approximately
	tasks    board
	inFlight atomic.Pointer[wire.NewTask] // the last one sent, for another producer to send, too

	asking  sync.WaitGroup // callers that end with the ctx of Start
	working sync.WaitGroup // callers that end by Drain
	limited atomic.Bool    // the limit of limitedType is set
	fair    atomic.Bool    // sharedType is fair, and its shares are set
	drain   atomic.Bool    // workers complete all claims, and do nothing else
	early   atomic.Int64   // workers' actions from before the drain, which may still submit a task
	drained chan struct{}  // closed: workers end
}

// Start starts the callers. Producers, readers and the meddler end with ctx, workers by
// Drain.
func Start(ctx context.Context, rec *recorder.Recorder, cfg Config) *Workload {
	cfg.Clients, cfg.Parents = max(cfg.Clients, MinClients), cmp.Or(cfg.Parents, parentPercent)
	w := &Workload{
		rec: rec, cfg: cfg, drained: make(chan struct{}), began: time.Now(),
		pace: time.Duration(cfg.Clients) * time.Second / time.Duration(max(cfg.Rate, 1)),
	}
	until := func(do func(*client, context.Context)) func(*client) {
		return func(c *client) { do(c, ctx) }
	}
	for _, node := range cfg.Nodes {
		w.start(&w.asking, max(cfg.Clients/boundShare, 1), []string{node}, func(c *client) {
			c.Timeout = patience
			c.read(ctx)
		})
	}
	for _, do := range []func(*client, context.Context){(*client).read, (*client).meddle, (*client).direct, (*client).act} {
		w.start(&w.asking, 1, cfg.Nodes, until(do))
	}
	w.asking.Go(func() { w.count(ctx) })
	w.asking.Go(func() { w.rec.SetTick(ctx, w.cfg.Nodes) })
	w.start(&w.asking, max((cfg.Clients-w.started)/4, 2), cfg.Nodes, until((*client).produce))
	w.start(&w.working, max(cfg.Clients/processorShare, cfg.Clients*cfg.Parents/contendedShare, 2), cfg.Nodes, func(c *client) { c.untilDrained(c.process) })
	w.start(&w.working, cfg.Clients-w.started, cfg.Nodes, func(c *client) { c.untilDrained(c.claim) })
	for i := range cfg.Strangers {
		s := &cfg.Strangers[i]
		nodes := cfg.Nodes
		if s.URL != "" {
			nodes = []string{s.URL}
		}
		w.start(&w.working, 1, nodes, func(c *client) {
			c.anonymous, c.hedges = s.Anonymous, s.Hedges
			c.By(s.First)
			c.twin.By(s.Second)
			c.untilDrained(c.claim)
		})
	}
	return w
}

// start starts count callers of a kind.
func (w *Workload) start(group *sync.WaitGroup, count int, nodes []string, do func(*client)) {
	for range count {
		w.started++
		c := &client{
			Caller: w.rec.Caller(nodes, w.started), twin: w.rec.Caller(nodes, w.started), w: w, number: w.started,
			rng: rand.New(rand.NewSource(w.cfg.Seed*1_000_003 + int64(w.started))),
		}
		group.Go(func() { do(c) })
	}
}

// Drain must be called after the ctx of Start has ended. It ends the pause of a type, waits
// until no more tasks are submitted and all have ended, and stops the workers.
func (w *Workload) Drain(ctx context.Context) error {
	w.asking.Wait()
	w.drain.Store(true)
	err := errors.Join(w.resume(ctx), w.waitEmpty(ctx), w.rec.EndTick(ctx, w.cfg.Nodes))
	w.Stop()
	return err
}

// Stop stops the workers and waits for all callers. It may be called after Drain.
func (w *Workload) Stop() {
	select {
	case <-w.drained:
	default:
		close(w.drained)
	}
	w.asking.Wait()
	w.working.Wait()
}

// resume lets claims take the tasks of pausedType, because pending ones have to end.
func (w *Workload) resume(ctx context.Context) error {
	director := w.rec.Caller(w.cfg.Nodes, 0)
	return pause.Until(ctx, idlePause, func() error {
		if op := director.Call(ctx, settingPaused(false)); op.Outcome != history.OK {
			return fmt.Errorf("resume %s: %s %s", pausedType, op.Outcome, op.Code)
		}
		return nil
	})
}

func (w *Workload) waitEmpty(ctx context.Context) error {
	return pause.Until(ctx, 2*idlePause, func() error {
		if early := w.early.Load(); early > 0 {
			return fmt.Errorf("%d workers are at what they began before", early)
		}
		open, err := w.rec.OpenCount(ctx, w.cfg.Nodes)
		if err == nil && open > 0 {
			err = fmt.Errorf("%d tasks have not ended", open)
		}
		return err
	})
}

// counted calls do for a worker, and counts it while it runs if it began before the drain.
func (w *Workload) counted(do func()) {
	w.early.Add(1)
	if w.drain.Load() { // checked after counting, because Drain sets it before it checks the count
		w.early.Add(-1)
		do()
		return
	}
	defer w.early.Add(-1)
	do()
}

// countInterval is the interval at which the open tasks are counted.
const countInterval = time.Second

// count counts the open tasks regularly, because the callers do not know about all of them.
func (w *Workload) count(ctx context.Context) {
	for pause.For(ctx, countInterval) {
		asking, cancel := context.WithTimeout(ctx, countInterval)
		if open, err := w.rec.OpenCount(asking, w.cfg.Nodes); err == nil {
			w.open.Store(open)
		}
		cancel()
	}
}

// WaitSubmitted waits until n tasks were submitted, not counting steps. If all should be
// parents, those that follow from a complete or a batch do not count either.
func (w *Workload) WaitSubmitted(ctx context.Context, n int) error {
	return pause.Until(ctx, idlePause, func() error {
		if created := w.created.Load(); created < int64(n) {
			return fmt.Errorf("%d of %d tasks were submitted", created, n)
		}
		return nil
	})
}

// backlog returns the number of open tasks that producers currently aim at.
func (w *Workload) backlog() int64 {
	if w.cfg.Busy || time.Since(w.began)/phaseLength%2 == 0 {
		return backlogHigh
	}
	return backlogLow
}

// name returns a unique name.
func (w *Workload) name(kind string) string {
	return fmt.Sprintf("s%d-%s%d", w.cfg.Seed, kind, w.names.Add(1))
}

// client is one caller.
type client struct {
	*recorder.Caller
	w      *Workload
	number int
	rng    *rand.Rand
	twin   *recorder.Caller // a second connection
	seen   uint64           // highest index in an answer to this caller
	died   int              // number of its deaths as a processor
	// givenUp is the last claim that a worker released.
	givenUp hold
	// anonymous and hedges are as in strangers.Stranger.
	anonymous bool
	hedges    int
}

// hedged makes a call, and percent times in a hundred the twin makes the same one at once.
func (c *client) hedged(percent int, call, twin func()) {
	var both sync.WaitGroup
	if c.percent(percent) {
		both.Go(twin)
	}
	call()
	both.Wait()
}

// percent returns true n times in a hundred.
func (c *client) percent(n int) bool { return c.rng.Intn(100) < n }

// breathe waits as the rate requires: sometimes hardly, sometimes long.
func (c *client) breathe(ctx context.Context) bool {
	return pause.For(ctx, time.Duration(c.rng.ExpFloat64()*float64(c.w.pace)))
}

// note records the contents of an answer.
func (c *client) note(op history.Op) history.Op {
	if op.Outcome == history.OK {
		c.seen = max(c.seen, op.Index)
	}
	return op
}

// repeatsMax bounds the repeats of a call before its caller gives up.
const repeatsMax = 40

// again makes a call until its outcome is known and it should not be tried again later.
// Some callers give up at the first unknown outcome, and never learn it.
func (c *client) again(ctx context.Context, call func() history.Op) history.Op {
	return c.againAll(ctx, func() []history.Op { return []history.Op{call()} })[0]
}

// callAgain is again for a single op.
func (c *client) callAgain(ctx context.Context, op history.Op) history.Op {
	return c.again(ctx, func() history.Op { return c.Call(ctx, op) })
}

// againAll is again for a call of several ops, which end together.
func (c *client) againAll(ctx context.Context, call func() []history.Op) []history.Op {
	for n := 0; ; n++ {
		ops := call()
		first := c.note(ops[0])
		if !recorder.Again(first) || n == repeatsMax || first.Outcome == history.Unknown && c.percent(10) || !pause.For(ctx, idlePause) {
			return ops
		}
	}
}

// untilDrained calls do repeatedly until Drain. Its calls have separate deadlines.
func (c *client) untilDrained(do func(context.Context)) {
	ctx := context.Background()
	for {
		select {
		case <-c.w.drained:
			return
		default:
			c.breathe(ctx)
			c.w.counted(func() { do(ctx) })
		}
	}
}

// upTo returns a time up to most.
func (c *client) upTo(most time.Duration) time.Duration {
	return time.Duration(c.rng.Int63n(int64(most) + 1))
}

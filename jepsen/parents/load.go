package parents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/jepsen/recorder"
)

// Config says how many parents there are and who handles them.
type Config struct {
	Nodes      []string // base URLs
	Parents    int      // to submit in all
	Steps      int      // of each, at least 2
	Producers  int
	Workers    int
	Processors int
	Seed       int64
	// Rate bounds the parents that are submitted per second in all, until Hurry;
	// 0 = as fast as it goes.
	Rate int
	Out  io.Writer // for lines of progress
}

const (
	// submitMax is how many parents a submit has at most.
	submitMax = 50
	// openMax is how many parents are under way at most.
	openMax = 4000
	// claimMax is how many steps a worker claims at most.
	claimMax = 100
	// leaseMS is long enough for a worker that has lost its leader for a moment,
	// and short enough for leases to run out during a run.
	leaseMS = 4000
	// progressInterval is how often a line says how far it is.
	progressInterval = 5 * time.Second
	// stallMax is how long no parent need be submitted or end: longer than nodes
	// that were killed take to come back.
	stallMax = 2 * time.Minute
	// idleConnections bounds the idle connections that are kept to each node.
	idleConnections = 64
)

// Load is everybody at work.
type Load struct {
	cfg    Config
	ledger *Ledger
	rec    *recorder.Recorder // of what processors were answered
	http   *http.Client
	began  time.Time

	allowed  atomic.Int64 // parents that may be submitted so far
	rate     atomic.Int64 // parents per second in all, 0 = no bound
	taken    atomic.Int64 // that producers have begun with
	acked    atomic.Int64 // whose submit was acknowledged
	unknown  atomic.Int64 // requests of producers and workers whose outcome was not known
	requests atomic.Int64 // numbers claim requests
	dropped  atomic.Int64 // steps that were claimed by workers that died
	late     atomic.Int64 // settling ops that were refused, since the lease had ended
	abandons atomic.Int64 // finalization claims of processors that died

	jobs chan job // for processors

	producing, others sync.WaitGroup
	stop              context.CancelFunc
	failed            context.CancelCauseFunc // of what can not go on
	ctx               context.Context         // of everybody; its cause says what went wrong
}

// Start starts everybody. The caller must call Stop.
func Start(ctx context.Context, rec *recorder.Recorder, cfg Config) *Load {
	l := &Load{
		cfg: cfg, rec: rec, began: time.Now(), jobs: make(chan job, jobsMax),
		http: &http.Client{Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: time.Second}).DialContext, MaxIdleConnsPerHost: idleConnections, DisableCompression: true,
		}},
	}
	ctx, l.stop = context.WithCancel(ctx)
	l.ctx, l.failed = context.WithCancelCause(ctx)
	l.ledger = newLedger(l.handOut)
	l.rate.Store(int64(cfg.Rate))
	f := &follower{http: l.http, nodes: cfg.Nodes, hop: hopDefault, ledger: l.ledger}
	l.others.Go(func() {
		if err := f.run(l.ctx); err != nil {
			l.failed(fmt.Errorf("follow the trail: %w", err))
		}
	})
	l.others.Go(l.say)
	l.others.Go(l.remind)
	for i := range cfg.Producers {
		l.producing.Go(func() { l.produce(i) })
	}
	for i := range cfg.Workers {
		l.others.Go(func() { l.work(i) })
	}
	for i := range cfg.Processors {
		l.others.Go(func() { l.process(i) })
	}
	return l
}

// caller returns a caller that begins with another node than the one before.
func (l *Load) caller(i int) *caller {
	return &caller{http: l.http, nodes: l.cfg.Nodes, at: i % len(l.cfg.Nodes), unknown: &l.unknown}
}

// rng returns the choices of one of them.
func (l *Load) rng(stream int) *rand.Rand {
	return rand.New(rand.NewSource(l.cfg.Seed*1_000_003 + int64(stream)))
}

// Allow bounds the parents that are submitted from now on to n in all, so that
// there is load as long as it is wanted.
func (l *Load) Allow(n int) { l.allowed.Store(int64(min(n, l.cfg.Parents))) }

// Hurry lifts the bounds of Allow and of Config.Rate.
func (l *Load) Hurry() {
	l.rate.Store(0)
	l.Allow(l.cfg.Parents)
}

// WaitSubmitted waits until n parents were submitted and acknowledged.
func (l *Load) WaitSubmitted(ctx context.Context, n int) error {
	for l.acked.Load() < int64(min(n, l.cfg.Parents)) {
		if err := l.pause(ctx, retryPause); err != nil {
			return fmt.Errorf("%d of %d parents are submitted: %w", l.acked.Load(), n, err)
		}
	}
	return nil
}

// Drain waits until the trail has told the end of every parent.
func (l *Load) Drain(ctx context.Context) error {
	for {
		known, ended, _ := l.ledger.counts()
		if known == l.cfg.Parents && ended == known {
			return nil
		}
		if err := l.pause(ctx, retryPause); err != nil {
			return fmt.Errorf("%d of %d parents have ended: %w", ended, l.cfg.Parents, err)
		}
	}
}

// Stop ends everybody and waits for them. It is safe after an error, and twice.
func (l *Load) Stop() {
	l.stop()
	l.producing.Wait()
	l.others.Wait()
	l.http.CloseIdleConnections()
}

// Violate notes what must not be, and was seen elsewhere.
func (l *Load) Violate(format string, args ...any) { l.ledger.Violate(format, args...) }

// pause waits, or returns why it does not.
func (l *Load) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// oddly ends the run if err is of an answer that no server may give.
func (l *Load) oddly(err error) {
	if errors.Is(err, errOdd) {
		l.ledger.Violate("%v", err)
		l.failed(err)
	}
}

// errStuck is returned when nothing gets on although nobody prevents it.
var errStuck = errors.New("parents are stuck")

// say prints a line of progress now and then, and ends the run when there is
// none.
func (l *Load) say() {
	last, since := 0, time.Now()
	for l.pause(l.ctx, progressInterval) == nil {
		fmt.Fprintln(l.cfg.Out, l.progress())
		known, ended, _ := l.ledger.counts()
		if known+ended != last {
			last, since = known+ended, time.Now()
		}
		if time.Since(since) > stallMax {
			l.failed(fmt.Errorf("%w: none was submitted or ended for %v", errStuck, stallMax))
		}
	}
}

// progress says how far it is.
func (l *Load) progress() string {
	known, ended, events := l.ledger.counts()
	return fmt.Sprintf("%7.1fs  %d of %d parents submitted, %d ended, %d events, %d calls of unknown outcome, %d steps dropped by workers that died, %d finalization claims by processors that died",
		time.Since(l.began).Seconds(), known, l.cfg.Parents, ended, events, l.unknown.Load(), l.dropped.Load(), l.abandons.Load())
}

// jobsMax bounds the parents that wait for a processor; the others are handed
// out again later.
const jobsMax = 4096

// job is a parent for a processor.
type job struct {
	shape Shape
	id    uint64
	all   bool // all its steps have ended
}

// crowd is how many processors are told of a parent at the same time.
const crowd = 3

// handOut tells processors of a parent by claim: several, if all its steps have
// ended. The ledger is locked.
func (l *Load) handOut(p *parent, all bool) {
	count := 1
	if all {
		count = 1 + p.Number%crowd
	} else if p.Number%5 != 0 { // some are too early
		return
	}
	for range count {
		select {
		case l.jobs <- job{p.Shape, p.id, all}:
		default: // remind does it
		}
	}
}

// remindInterval is how often parents that nobody has ended are handed out again:
// as long as a processor that died may have held them.
const remindInterval = 2 * time.Second

// remind hands out again what processors have left.
func (l *Load) remind() {
	for l.pause(l.ctx, remindInterval) == nil {
		for _, p := range l.ledger.waiting() {
			select {
			case l.jobs <- job{p.Shape, p.id, true}:
			case <-l.ctx.Done():
				return
			}
		}
	}
}

// waiting returns the parents by claim whose steps have all ended, and who have
// not.
func (l *Ledger) waiting() []*parent {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unfinished = slices.DeleteFunc(l.unfinished, func(p *parent) bool { return l.tasks[p.id].status != open })
	var found []*parent
	for _, p := range l.unfinished {
		if p.stepsOpen == 0 {
			found = append(found, p)
		}
	}
	return found
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/child"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/reap"
)

const (
	// greetingMax is how long a program has to say hello: it may have much to load.
	greetingMax = time.Minute
	// The pause before a program is begun again that ended before it had taken a task:
	// doubled for each in a row.
	againMin = 200 * time.Millisecond
	againMax = 30 * time.Second
	// roomWait is how long a claimed task waits for a program that has room, before it is given
	// back: the one that it was claimed for may have ended.
	roomWait = time.Second
	// limitsWait is after how long without an answer the user hears of it: the endpoint may be wrong.
	limitsWait = 5 * time.Second
	// limitsPause is how long it is waited before the cluster is asked again.
	limitsPause = time.Second
	// unaskedLook is how often it is told at most that answers were dropped.
	unaskedLook = time.Second
)

// Options are those of `claimq work --serve`.
type Options struct {
	Processes        int
	TasksPerProcess  int   // 0: no bound
	MemoryPerProcess int64 // bytes; 0: no bound
	Timeout          time.Duration
	// Listen is the path of the socket to which programs connect that are started by hand; "": the pool starts
	// them.
	Listen string

	Path    string // of the executable
	Args    []string
	Environ []string
	Stdout  io.Writer // of the programs
	Out     *child.Output

	// Worker is how the worker is made; its Concurrency is that of the programs.
	Worker client.WorkerConfig
	// ID is the worker's, which the programs are told.
	ID string
	// Counts counts what happens to the programs.
	Counts *Counts
}

// Counts are of the programs of a Run. They may be read at any time.
type Counts struct {
	Connected      atomic.Int64 // programs now
	Started        atomic.Int64 // processes, or programs that connected
	Died           atomic.Int64 // programs that ended unasked, or were ended for a fault or a task
	LinesRefused   atomic.Int64 // that broke the protocol
	AnswersDropped atomic.Int64 // about tasks that the program did not have
}

// pool has the programs.
type pool struct {
	o           Options
	c           *client.Client
	children    *reap.Children
	stopping    <-chan struct{} // closed when no more tasks are to be claimed
	greetingMax time.Duration

	first chan *said // has the hello of the first program

	known  chan struct{} // closed when limits are
	limits limits        // what programs may say

	mu       sync.Mutex // guards what follows
	programs []*program
	hello    *said // of the first
	worker   *client.Worker
	news     chan struct{} // closed, and replaced, when a place may have become free
	dropped  int           // answers, since toldAt
	toldAt   time.Time
}

func (p *pool) log(format string, args ...any) {
	fmt.Fprintln(p.o.Out, term.Printable(fmt.Sprintf(format, args...)))
}

// changed tells those who wait for a place.
func (p *pool) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changedLocked()
}

func (p *pool) changedLocked() {
	close(p.news)
	p.news = make(chan struct{})
}

// askLimits asks the cluster what it takes, until it answers or ctx ends: before that no program
// works, as nothing could be claimed. One that refuses to say is taken to have the limits of a
// new one.
func (p *pool) askLimits(ctx context.Context) {
	defer close(p.known)
	late := time.AfterFunc(limitsWait, func() {
		p.log("the cluster has not answered for %v, and is asked on: is it up, and is --endpoint or CLAIMQ_ENDPOINTS right?", limitsWait)
	})
	defer late.Stop()
	for {
		d, err := p.c.Defaults(ctx)
		refusal := (*client.Error)(nil)
		switch {
		case err == nil:
			p.limits = limitsOf(d.Limits)
			return
		case ctx.Err() != nil, errors.As(err, &refusal) && refusal.Code != "" && refusal.Status < http.StatusInternalServerError && refusal.Status != http.StatusTooManyRequests:
			p.limits = limitsOf(nil)
			return
		}
		p.log("asking the cluster for its limits: %v", err)
		pause.For(ctx, limitsPause)
	}
}

// greeted takes the hello of a program.
func (p *pool) greeted(of *program, s *said) error {
	<-p.known
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hello != nil && (p.hello.Concurrency != s.Concurrency || !slices.Equal(p.hello.Types, s.Types)) {
		return errors.New("its hello has other types or another concurrency than that of the first program: start claimq work again")
	}
	of.mu.Lock()
	if of.stopping {
		of.mu.Unlock()
		return errors.New("it is being stopped")
	}
	of.hello = s
	of.tell(helloMessage{
		Kind: kindHello, Protocol: protocol, WorkerID: p.o.ID, GraceMS: child.Grace.Milliseconds(),
		Limits: p.limits,
	})
	of.mu.Unlock()
	if p.hello == nil {
		p.hello = s
		p.first <- s
	}
	p.resizeLocked()
	p.changedLocked()
	return nil
}

// resize has the worker claim as many tasks as the programs take.
func (p *pool) resize() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resizeLocked()
	p.changedLocked()
}

func (p *pool) resizeLocked() {
	if p.worker != nil {
		p.worker.SetConcurrency(p.liveLocked() * p.hello.Concurrency)
	}
}

// liveLocked is how many programs take tasks.
func (p *pool) liveLocked() int {
	n := 0
	for _, of := range p.programs {
		of.mu.Lock()
		if of.hello != nil && !of.stopping {
			n++
		}
		of.mu.Unlock()
	}
	return n
}

// unasked notes an answer about a task that the program does not have.
func (p *pool) unasked(of *program, s *said) {
	if s.Kind == kindProgress { // it may have been on the way when the task was cancelled
		return
	}
	p.mu.Lock()
	p.o.Counts.AnswersDropped.Add(1)
	p.dropped++
	tell := time.Since(p.toldAt) >= unaskedLook
	n := p.dropped
	if tell {
		p.dropped, p.toldAt = 0, time.Now()
	}
	p.mu.Unlock()
	if tell {
		p.log("%s: %d answers about tasks that it does not have were dropped, the last about task %d, token %d", of.name, n, s.ID, s.Token)
	}
}

// errNoProgram is returned when there is none for a task.
var errNoProgram = errors.New("no program has room")

// place hands a task to the program that has fewest, once one has room.
func (p *pool) place(ctx context.Context, h *handling, line []byte) error {
	timer := time.NewTimer(roomWait)
	defer timer.Stop()
	for {
		p.mu.Lock()
		var best *program
		fewest := 0
		for _, of := range p.programs {
			if has, ok := of.room(h.taskType); ok && (best == nil || has < fewest) {
				best, fewest = of, has
			}
		}
		if best != nil {
			h.p = best
			if best.take(h, line) {
				last := best.isStopping()
				p.mu.Unlock()
				if last {
					p.resize()
				}
				return nil
			}
		}
		news := p.news
		p.mu.Unlock()
		select {
		case <-news:
		case <-p.stopping:
			return errNoProgram
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return errNoProgram
		}
	}
}

func (p *program) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

// add takes a program in.
func (p *pool) add(of *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.programs = append(p.programs, of)
	p.o.Counts.Started.Add(1)
	p.o.Counts.Connected.Add(1)
}

// remove takes a program out that has ended.
func (p *pool) remove(of *program) {
	p.mu.Lock()
	p.programs = slices.DeleteFunc(p.programs, func(other *program) bool { return other == of })
	p.mu.Unlock()
	p.o.Counts.Connected.Add(-1)
	p.resize()
}

// stop has all programs finish what they have.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.programs {
		of.stop()
	}
}

// kill ends all programs.
func (p *pool) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.programs {
		of.kill(errors.New("it did not end when claimq work stopped"), true)
	}
}

// keep has one process run after the other until ctx ends. run runs one, and returns false if it
// was of no use: the next is begun after a pause.
func keep(ctx context.Context, run func() (ok bool)) {
	wait := againMin
	for ctx.Err() == nil {
		if run() {
			wait = againMin
			continue
		}
		pause.For(ctx, wait)
		wait = min(2*wait, againMax)
	}
}

// Run serves until ctx ends, and then stops. began is called with the worker when there is one, at
// the first program's hello.
func Run(ctx context.Context, c *client.Client, o Options, began func(*client.Worker)) (*client.Worker, error) {
	p := newPool(ctx, c, o)
	if o.Listen != "" {
		l, err := p.listen()
		if err != nil {
			return nil, err
		}
		return p.run(ctx, began, func() { p.accept(ctx, l) })
	}
	adopting, endAdopting := context.WithCancel(context.Background())
	defer endAdopting()
	go p.children.Adopt(adopting)
	keepers := make([]func(), o.Processes)
	for i := range keepers {
		keepers[i] = func() {
			keep(ctx, func() bool {
				ok, err := p.process(ctx, i+1)
				if err != nil {
					p.log("process %d: %v", i+1, err)
				}
				return ok
			})
		}
	}
	return p.run(ctx, began, keepers...)
}

// newPool returns a pool without programs, which gets no more tasks when ctx has ended.
func newPool(ctx context.Context, c *client.Client, o Options) *pool {
	return &pool{o: o, c: c, children: &reap.Children{}, stopping: ctx.Done(), greetingMax: greetingMax, first: make(chan *said, 1), known: make(chan struct{}), news: make(chan struct{})}
}

// run serves by the programs that the keepers bring, which end some time after ctx.
func (p *pool) run(ctx context.Context, began func(*client.Worker), keep ...func()) (*client.Worker, error) {
	var keepers sync.WaitGroup
	end := context.AfterFunc(ctx, p.stop)
	defer end()
	keepers.Go(func() { p.askLimits(ctx) })
	for _, k := range keep {
		keepers.Go(k)
	}
	w, err := p.work(ctx, began)
	ended := make(chan struct{})
	go func() {
		keepers.Wait()
		close(ended)
	}()
	p.stop() // the worker may have ended for another reason
	timer := time.NewTimer(child.Grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		p.kill()
		<-ended
	}
	return w, err
}

// work runs a worker for the types of the first program.
func (p *pool) work(ctx context.Context, began func(*client.Worker)) (*client.Worker, error) {
	var hello *said
	select {
	case hello = <-p.first:
	case <-ctx.Done():
		return nil, nil //nolint:nilnil // it was stopped before there was one
	}
	cfg := p.o.Worker
	cfg.ID, cfg.Concurrency = p.o.ID, p.o.Processes*hello.Concurrency
	w, err := client.NewWorker(p.c, cfg)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(hello.Types))
	for i, t := range hello.Types {
		names[i] = t.Type
		timeout := p.o.Timeout
		if t.TimeoutMS > 0 {
			timeout = time.Duration(t.TimeoutMS) * time.Millisecond
		}
		opts := []client.HandlerOption{client.WithTimeout(timeout)}
		if t.Concurrency > 0 {
			opts = append(opts, client.WithConcurrency(t.Concurrency*p.o.Processes))
		}
		client.Handle(w, t.Type, func(ctx context.Context, job *client.Job[[]byte]) error { return p.handle(ctx, job, timeout) }, opts...)
	}
	p.mu.Lock()
	p.worker = w
	p.resizeLocked()
	p.mu.Unlock()
	began(w)
	p.log("worker %s serves %v, %d at a time in each of %d: %s", w.ID(), names, hello.Concurrency, p.o.Processes, hello.Client)
	return w, w.Run(ctx)
}

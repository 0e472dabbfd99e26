package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/child"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/reap"
)

const (
	// greetingMax is the time a program has for its hello. It is long because a program may load much first.
	greetingMax = time.Minute
	// The pause before a program that ended without taking a task is started again, doubled each time in a row.
	restartMin = 200 * time.Millisecond
	restartMax = 30 * time.Second
	// roomWait limits how long a claimed task waits for a program with room, because the one it was claimed for may have
	// ended. The task is given back after that.
	roomWait = time.Second
	// limitsRetry is the pause before the cluster is asked again.
	limitsRetry = time.Second
	// droppedLogMin is the shortest time between two log lines about dropped answers.
	droppedLogMin = time.Second
)

// Options are the options of `claimq work --serve`.
type Options struct {
	Processes        int
	TasksPerProcess  int   // 0: unlimited
	MemoryPerProcess int64 // in bytes; 0: unlimited
	Timeout          time.Duration
	// Listen is the path of a socket for programs that are started elsewhere. If it is empty, the pool starts them.
	Listen string

	Path    string // of the executable
	Args    []string
	Environ []string
	Stdout  io.Writer // of the programs
	Out     *child.Output

	// Worker configures the worker. Its Concurrency is replaced by the programs'.
	Worker client.WorkerConfig
	// ID is the worker's id. Programs receive it.
	ID string
	// Counts is updated during Run.
	Counts *Counts

	// closedMax is the time in which a process must end once it has closed its socket; 0: child.PipeGrace.
	closedMax time.Duration
}

// Counts counts the programs of a Run. It may be read at any time.
type Counts struct {
	Connected      atomic.Int64 // programs now
	Started        atomic.Int64 // processes, or programs that connected
	Died           atomic.Int64 // programs that ended by themselves, or were ended for a fault or for a task
	LinesRefused   atomic.Int64 // lines that broke the protocol
	AnswersDropped atomic.Int64 // answers to tasks that the program did not have
}

// pool keeps the programs and gives them tasks.
type pool struct {
	o           Options
	c           *client.Client
	children    *reap.Children
	stopping    <-chan struct{} // closed when no more tasks should be claimed
	greetingMax time.Duration

	first chan *programMessage // receives the hello of the first program

	known  chan struct{} // closed when limits is set
	limits limits        // bounds for what programs send

	waiting atomic.Int64 // tasks that wait for room

	mu       sync.Mutex // guards the fields below
	programs []*program
	hello    *programMessage // of the first program
	worker   *client.Worker
	news     chan struct{} // closed, and replaced, when there may be room
	dropped  int           // dropped answers since toldAt
	toldAt   time.Time
}

func (p *pool) log(format string, args ...any) {
	fmt.Fprintln(p.o.Out, term.Printable(fmt.Sprintf(format, args...)))
}

// freed wakes the tasks that wait for room, because a program has one task less.
func (p *pool) freed() {
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changedLocked()
}

func (p *pool) changedLocked() {
	close(p.news)
	p.news = make(chan struct{})
}

// askLimits asks the cluster for its limits until it answers or ctx ends. No program works before, because nothing
// could be claimed either. If the cluster refuses, the defaults of a new cluster are used.
func (p *pool) askLimits(ctx context.Context) {
	defer close(p.known)
	for {
		d, err := p.c.Defaults(ctx)
		switch {
		case err == nil:
			p.limits = limitsOf(d.Limits)
			return
		case ctx.Err() != nil, session.Answered(err):
			p.limits = limitsOf(nil)
			return
		}
		p.log("asking the cluster for its limits: %v", err)
		pause.For(ctx, limitsRetry)
	}
}

// greeted processes the hello of a program.
func (p *pool) greeted(of *program, s *programMessage) error {
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
	of.send(helloMessage{
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

// resize sets the worker's concurrency to what the programs can take.
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

// liveLocked returns the number of programs that take tasks.
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

// dropAnswer counts an answer to a task that the program does not have.
func (p *pool) dropAnswer(of *program, s *programMessage) {
	if s.Kind == kindProgress { // it may have been sent before the cancel arrived
		return
	}
	p.mu.Lock()
	p.o.Counts.AnswersDropped.Add(1)
	p.dropped++
	tell := time.Since(p.toldAt) >= droppedLogMin
	n := p.dropped
	if tell {
		p.dropped, p.toldAt = 0, time.Now()
	}
	p.mu.Unlock()
	if tell {
		p.log("%s: %d answers about tasks that it does not have were dropped, the last about task %d, token %d", of.name, n, s.ID, s.Token)
	}
}

// errNoProgram is returned if no program has room for a task.
var errNoProgram = errors.New("no program has room")

// place gives a task to the program with the fewest tasks that has room, and waits for one if necessary.
func (p *pool) place(ctx context.Context, h *handling, line []byte) error {
	if _, ok := p.offer(h, line); ok {
		return nil
	}
	// From here on freed closes news. The loop looks again first, because room may have become free before.
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	timer := time.NewTimer(roomWait)
	defer timer.Stop()
	for {
		news, ok := p.offer(h, line)
		if ok {
			return nil
		}
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

// offer gives a task to the program with the fewest tasks that has room. If none has, it returns a channel that is
// closed when there may be room.
func (p *pool) offer(h *handling, line []byte) (news <-chan struct{}, ok bool) {
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
			return nil, true
		}
	}
	news = p.news
	p.mu.Unlock()
	return news, false
}

func (p *program) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

func (p *pool) add(of *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.programs = append(p.programs, of)
	p.o.Counts.Started.Add(1)
	p.o.Counts.Connected.Add(1)
}

// remove removes a program that has ended.
func (p *pool) remove(of *program) {
	p.mu.Lock()
	p.programs = slices.DeleteFunc(p.programs, func(other *program) bool { return other == of })
	p.mu.Unlock()
	p.o.Counts.Connected.Add(-1)
	p.resize()
}

// stop asks all programs to finish their tasks and end.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.programs {
		of.stop()
	}
}

// kill ends all programs at once.
func (p *pool) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.programs {
		of.kill(errors.New("it did not end when claimq work stopped"), true)
	}
}

// keepRunning runs one process after another until ctx ends. If run returns false, the process was of no use, and the
// next one starts after a pause.
func keepRunning(ctx context.Context, run func() (ok bool)) {
	wait := restartMin
	for ctx.Err() == nil {
		if run() {
			wait = restartMin
			continue
		}
		pause.For(ctx, wait)
		wait = min(2*wait, restartMax)
	}
}

// Run serves until ctx ends, and then stops in order. It calls began with the worker once the first program has said
// hello and the worker exists.
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
			keepRunning(ctx, func() bool {
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

// newPool returns a pool without programs. It takes no more tasks once ctx has ended.
func newPool(ctx context.Context, c *client.Client, o Options) *pool {
	return &pool{o: o, c: c, children: &reap.Children{}, stopping: ctx.Done(), greetingMax: greetingMax, first: make(chan *programMessage, 1), known: make(chan struct{}), news: make(chan struct{})}
}

// run serves with the programs that the functions in keep bring. They end some time after ctx.
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
	p.stop() // also if the worker has ended for another reason
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

// work runs a worker for the task types of the first program.
func (p *pool) work(ctx context.Context, began func(*client.Worker)) (*client.Worker, error) {
	var hello *programMessage
	select {
	case hello = <-p.first:
	case <-ctx.Done():
		return nil, nil //nolint:nilnil // stopped before a program said hello
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
	speaks := cmp.Or(strings.TrimSpace(hello.Client), "a program whose hello does not name its client")
	p.log("worker %s serves %v, %d at a time in each of %d: %s", w.ID(), names, hello.Concurrency, p.o.Processes, speaks)
	return w, w.Run(ctx)
}

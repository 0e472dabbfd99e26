package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/bench/figures"
	"github.com/claimq/claimq/internal/pause"
)

// fairness compares how long the tasks of small tenants wait while a large one has a backlog, by the means that
// systems have against it.
//
// The large tenant submits its backlog; then the workers begin, each of which takes a task, handles it, which takes a
// fixed time, acknowledges it and takes the next. Once they have handled some of the backlog the small tenants submit
// their tasks, all at the same time. A task's wait lasts from the call that submits it to the worker that has it. The
// run ends with the wait of the last of them.
type fairness struct {
	backlog  int // tasks of the large tenant
	first    int // of these, how many are handled before the others submit
	tenants  int // small ones
	each     int // tasks of each of them
	workers  int
	handling time.Duration // of a task
}

// asMeasured is the comparison of docs/benchmarks.md.
func asMeasured() fairness {
	return fairness{backlog: 100_000, first: 2_000, tenants: 50, each: 10, workers: 32, handling: 10 * time.Millisecond}
}

// means is a way in which a system keeps the tasks of several tenants.
type means struct {
	name    string
	program string // the system's
	start   func(ctx context.Context, path string, s *site) (tenancies, error)
	apart   bool // it tells them apart
}

func allMeans() []means {
	return []means{
		{"claimq, one type", "claimq", startClaimqTenants, false},
		{"claimq, a `share_key` for each tenant, type `fair`", "claimq", startClaimqTenants, true},
		{"RabbitMQ, one queue", "rabbitmq-server", startRabbitTenants, false},
		{"RabbitMQ, a queue for each tenant", "rabbitmq-server", startRabbitTenants, true},
	}
}

// tenancies makes a new tenancy of a running system.
type tenancies func(ctx context.Context, apart bool, tenants int) (tenancy, error)

// tenancy keeps the tasks of tenants, who are numbered.
type tenancy struct {
	// submit returns when all tasks are confirmed. Tenants may call it at the same time.
	submit func(ctx context.Context, tenant int, tasks [][]byte) error
	// work has the workers take, handle and acknowledge tasks, one at a time each, until ctx ends. Then it returns nil.
	work func(ctx context.Context, workers int, handle func(task []byte)) error
	// end removes the tasks that are left, unless later ones do not meet them.
	end func(ctx context.Context) error
}

func tenantName(tenant int) string { return fmt.Sprintf("tenant-%02d", tenant) }

// waited is the outcome of a run.
type waited struct {
	waits []float64 // of the small tenants' tasks, ms
	rate  float64   // tasks/s of all tenants meanwhile
}

// backlogEach is the number of tasks that the large tenant submits at a time.
const backlogEach = 1000

// waitMax bounds a run after the backlog is there.
const waitMax = 10 * time.Minute

// measure runs the comparison once.
func (f *fairness) measure(ctx context.Context, of tenancy) (waited, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	l := &ledger{}
	for left := f.backlog; left > 0; left -= backlogEach {
		tasks := make([][]byte, min(left, backlogEach))
		for i := range tasks {
			tasks[i] = l.next()
		}
		if err := of.submit(ctx, 0, tasks); err != nil {
			return waited{}, fmt.Errorf("submit the backlog: %w", err)
		}
	}
	var (
		w          = waits{of: f, submitted: make([]time.Time, f.tenants), begun: make(chan struct{}), over: make(chan struct{})}
		workCtx, s = context.WithCancel(ctx)
		working    sync.WaitGroup
	)
	defer s()
	end := time.AfterFunc(waitMax, func() { fail(errors.New("not all tasks of the small tenants were handled")) })
	defer end.Stop()
	working.Go(func() {
		err := of.work(workCtx, f.workers, func(task []byte) {
			l.handled(task)
			w.took(task)
			pause.For(workCtx, f.handling)
		})
		if err != nil {
			fail(fmt.Errorf("work: %w", err))
		}
	})
	select {
	case <-w.begun:
		f.submitSmall(ctx, of, &w, l, fail)
	case <-ctx.Done():
	}
	select {
	case <-w.over:
	case <-ctx.Done():
	}
	s()
	working.Wait()
	if err := context.Cause(ctx); err != nil {
		return waited{}, fmt.Errorf("%w (%s)", err, l)
	}
	if _, doubled, _, others := l.counts(); doubled > 0 || others > 0 {
		return waited{}, errors.New(l.String())
	}
	return w.outcome(), nil
}

// submitSmall has the small tenants submit their tasks.
func (f *fairness) submitSmall(ctx context.Context, of tenancy, w *waits, l *ledger, fail context.CancelCauseFunc) {
	tasks := make([][][]byte, f.tenants)
	for tenant := range tasks {
		for range f.each {
			tasks[tenant] = append(tasks[tenant], l.next())
		}
	}
	var submitting sync.WaitGroup
	for tenant := range tasks {
		submitting.Go(func() {
			w.submits(tenant)
			if err := of.submit(ctx, tenant+1, tasks[tenant]); err != nil {
				fail(fmt.Errorf("submit: %w", err))
			}
		})
	}
	submitting.Wait()
}

// waits are the waits of the small tenants' tasks, whose numbers come after those of the backlog. Concurrent calls are
// safe.
type waits struct {
	of    *fairness
	begun chan struct{} // closed when the small tenants may submit
	over  chan struct{} // closed when all waits are known

	handled atomic.Int64

	mu        sync.Mutex
	submitted []time.Time // by tenant; guarded by mu
	ms        []float64   // guarded by mu
	from, to  time.Time   // the first submit and the last wait's end; guarded by mu
	before    int64       // tasks handled before the first submit; guarded by mu
	handledTo int64       // tasks handled at the last wait's end; guarded by mu
}

// submits notes that the small tenant submits now.
func (w *waits) submits(tenant int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.submitted[tenant] = now
	if w.from.IsZero() {
		w.from, w.before = now, w.handled.Load()
	}
}

// took notes that a worker has the task.
func (w *waits) took(task []byte) {
	count := w.handled.Add(1)
	if count == int64(w.of.first) {
		close(w.begun)
	}
	number, ok := numberOf(task)
	small := int(number) - w.of.backlog
	if !ok || small < 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to, w.handledTo = time.Now(), count
	w.ms = append(w.ms, float64(w.to.Sub(w.submitted[small/w.of.each]).Microseconds())/1000)
	if len(w.ms) == w.of.tenants*w.of.each {
		close(w.over)
	}
}

func (w *waits) outcome() waited {
	w.mu.Lock()
	defer w.mu.Unlock()
	return waited{waits: w.ms, rate: float64(w.handledTo-w.before) / w.to.Sub(w.from).Seconds()}
}

// runFair measures each of the means that is installed in turn, and prints the table. A system starts once, when its first
// turn comes.
func (c *comparison) runFair(ctx context.Context, dir string, found []installed, missing []string, out, progress io.Writer) (err error) {
	var all []means
	for _, m := range allMeans() {
		if slices.ContainsFunc(found, func(s installed) bool { return s.program == m.program }) {
			all = append(all, m)
		}
	}
	outcomes, running, at := make([][]waited, len(all)), map[string]tenancies{}, &site{}
	defer func() { err = errors.Join(err, at.end()) }()
	for round := range c.rounds {
		for i := range all {
			which := (i + round) % len(all)
			m := all[which]
			if running[m.program] == nil {
				s := found[slices.IndexFunc(found, func(s installed) bool { return s.program == m.program })]
				if running[m.program], err = m.startIn(ctx, filepath.Join(dir, m.program), s.path, at); err != nil {
					return fmt.Errorf("start %s: %w", m.program, err)
				}
			}
			w, err := c.fair.measureNew(ctx, running[m.program], m.apart)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			fmt.Fprintf(progress, "round %d of %d: %s, p50 %.0f, p99 %.0f ms, %.0f tasks/s\n", round+1, c.rounds, m.name,
				figures.Quantile(w.waits, 0.5), figures.Quantile(w.waits, 0.99), w.rate)
			outcomes[which] = append(outcomes[which], w)
		}
	}
	return c.fair.print(out, all, found, outcomes, missing)
}

// startIn starts the system in a new folder. It ends with the site.
func (m *means) startIn(ctx context.Context, dir, path string, at *site) (tenancies, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	at.dir = dir
	return m.start(ctx, path, at)
}

// measureNew measures a new tenancy.
func (f *fairness) measureNew(ctx context.Context, of tenancies, apart bool) (w waited, err error) {
	its, err := of(ctx, apart, 1+f.tenants)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, its.end(ctx)) }()
	return f.measure(ctx, its)
}

// print prints the table in Markdown: the medians of the rounds.
func (f *fairness) print(out io.Writer, all []means, found []installed, outcomes [][]waited, missing []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "One tenant with %s tasks, %d with %d each; %d workers, a task takes %v.\n\n", figures.Thousands(float64(f.backlog)), f.tenants, f.each, f.workers, f.handling)
	b.WriteString("| | version | wait of the small tenants' tasks, p50, ms | p99, ms | tasks/s of all meanwhile |\n| --- | --- | --- | --- | --- |\n")
	for i, m := range all {
		release := found[slices.IndexFunc(found, func(s installed) bool { return s.program == m.program })].release
		of := func(figure func(w waited) float64) string {
			var rounds []float64
			for _, w := range outcomes[i] {
				rounds = append(rounds, figure(w))
			}
			return fmt.Sprintf("%s (%s to %s)", figures.Thousands(figures.Median(rounds)), figures.Thousands(slices.Min(rounds)), figures.Thousands(slices.Max(rounds)))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.name, release,
			of(func(w waited) float64 { return figures.Quantile(w.waits, 0.5) }),
			of(func(w waited) float64 { return figures.Quantile(w.waits, 0.99) }),
			of(func(w waited) float64 { return w.rate }))
	}
	for _, what := range missing {
		fmt.Fprintf(&b, "\nNot measured: %s\n", what)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

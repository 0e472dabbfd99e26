package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/claimq/claimq/bench/figures"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

const (
	nodeCount     = 3
	producerCount = 4
	workerCount   = 8
	startTimeout  = 30 * time.Second
	// pollInterval is the interval between checks of a condition.
	pollInterval = 5 * time.Millisecond
)

// Config configures the demo.
type Config struct {
	Binary string // claimq
	Dir    string // for the nodes' data; it exists
	Tasks  int
	Out    io.Writer
}

// demo is one run.
type demo struct {
	Config
	cluster *procs.Cluster
	client  *client.Client

	mu    sync.Mutex // guards the fields below
	tally tally
	died  time.Time     // of the killed leader
	stood time.Duration // from then to the next acknowledged write; 0 = none yet
}

// say prints a paragraph under the step's number, or without one (" ").
func (d *demo) say(step, format string, args ...any) {
	fmt.Fprintf(d.Out, "  %s  %s\n", step, fmt.Sprintf(format, args...))
}

// Run tells the whole story: start, work, kill, go on, come back, count. Errors: ErrCount,
// or the reason why it could not finish.
func Run(ctx context.Context, cfg Config) (err error) {
	began := time.Now()
	d := demo{Config: cfg, tally: newTally()}
	fmt.Fprintf(d.Out, "\nclaimq: three nodes, %s tasks, and a leader that does not survive them\n\n", thousands(d.Tasks))
	if err := d.start(ctx); err != nil {
		return err
	}
	defer d.cluster.Close()
	if d.client, err = client.New(client.Config{Endpoints: d.cluster.URLs()}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.client.Close()) }()
	working, stopWork := context.WithCancel(ctx)
	producers, workers := d.work(working)
	defer workers.Wait()
	defer stopWork()
	if err := d.killLeader(ctx); err != nil {
		return err
	}
	producers.Wait()
	if err := d.waitDone(ctx); err != nil {
		return err
	}
	stopWork()
	workers.Wait()
	if err := d.count(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\nIt adds up. (%.1f s)\n", time.Since(began).Seconds())
	return nil
}

// start starts the nodes.
func (d *demo) start(ctx context.Context) (err error) {
	d.say("1", "Starting three nodes: processes of their own, each with its own copy of everything on disk.")
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if d.cluster, err = procs.Start(ctx, procs.Config{Binary: d.Binary, Dir: d.Dir, Nodes: nodeCount}); err != nil {
		return err
	}
	leader, err := d.cluster.WaitLeader(ctx)
	if err != nil {
		d.cluster.Close()
		return err
	}
	for _, n := range d.cluster.Nodes {
		role := ""
		if n == leader {
			role = "   leads: it puts all writes in order; each counts once two nodes have it on disk"
		}
		d.say(" ", "   %s  pid %-7d %s%s", n.ID, n.PID(), n.URL(), role)
	}
	return nil
}

// killLeader kills the leader in the middle of the work, and starts it again once another
// one serves.
func (d *demo) killLeader(ctx context.Context) error {
	d.say("2", "Submitting %s tasks (hash a text %s times), while %d workers claim and complete them.",
		thousands(d.Tasks), thousands(rounds), workerCount)
	if err := d.wait(ctx, func() bool { return len(d.tally.completed) >= d.Tasks/3 }); err != nil {
		return err
	}
	leader, err := d.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	d.locked(func() {
		d.say("3", "%s submitted, %s completed. Now:  kill -9 %d  (%s, the leader).",
			thousands(len(d.tally.submitted)), thousands(len(d.tally.completed)), leader.PID(), leader.ID)
		d.died = time.Now()
	})
	if err := leader.Kill(); err != nil {
		return err
	}
	next, err := d.cluster.WaitLeader(ctx, leader)
	if err != nil {
		return err
	}
	if err := d.wait(ctx, func() bool { return d.stood > 0 }); err != nil {
		return err
	}
	d.say(" ", "%s leads. For %.2f s nobody could write; the clients waited, asked again, and go on.", next.ID, d.stood.Seconds())
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := leader.StartReady(ctx); err != nil {
		return err
	}
	d.say("4", "%s starts again (pid %d) and is ready after %.2f s.", leader.ID, leader.PID(), time.Since(started).Seconds())
	return nil
}

func (d *demo) locked(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
}

// wait waits until ready, which reads the tally, is true.
func (d *demo) wait(ctx context.Context, ready func() bool) error {
	return pause.Until(ctx, pollInterval, func() (err error) {
		d.locked(func() {
			if !ready() {
				err = fmt.Errorf("%d tasks are submitted, %d completed", len(d.tally.submitted), len(d.tally.completed))
			}
		})
		return err
	})
}

// thousands writes n with commas.
func thousands(n int) string { return figures.Thousands(float64(n)) }

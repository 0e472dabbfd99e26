package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/procs"
)

const (
	nodeCount    = 3
	startTimeout = 30 * time.Second
)

// Config says what the demo is made of.
type Config struct {
	Binary  string // claimq
	Dir     string // of the nodes' data; it exists
	Tasks   int
	Workers int
	Rounds  int // how long a task is: times a text is hashed
	Out     io.Writer
}

// demo is one run.
type demo struct {
	Config
	cluster *procs.Cluster
	client  *client.Client
	tally   *tally
}

// say prints a paragraph under the step's number, or under no new one (" ").
func (d *demo) say(step, format string, args ...any) {
	fmt.Fprintf(d.Out, "  %s  %s\n", step, fmt.Sprintf(format, args...))
}

// Run is the story: start, work, kill, go on, come back, count. Errors: ErrCount, or why
// it could not be told to its end.
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

	leader, err := d.killLeader(ctx)
	if err != nil {
		return err
	}
	if err := d.comeBack(ctx, leader); err != nil {
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

// killLeader kills the leader in the middle of the work.
func (d *demo) killLeader(ctx context.Context) (*procs.Node, error) {
	d.say("2", "Submitting %s tasks (hash a text %s times), while %d workers claim and complete them.",
		thousands(d.Tasks), thousands(d.Rounds), d.Workers)
	if err := d.tally.waitCompleted(ctx, d.Tasks/3); err != nil {
		return nil, err
	}
	leader, err := d.cluster.WaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	d.tally.leaderDies(func(submitted, completed int) {
		d.say("3", "%s submitted, %s completed. Now:  kill -9 %d  (%s, the leader).", thousands(submitted), thousands(completed), leader.PID(), leader.ID)
	})
	if err := leader.Kill(); err != nil {
		return nil, err
	}
	next, err := d.cluster.WaitLeader(ctx, leader)
	if err != nil {
		return nil, err
	}
	outage, err := d.tally.waitOutage(ctx)
	if err != nil {
		return nil, err
	}
	d.say(" ", "%s leads. For %.2f s nobody could write; the clients waited, asked again, and go on.", next.ID, outage.Seconds())
	return leader, nil
}

// comeBack starts the killed node again.
func (d *demo) comeBack(ctx context.Context, killed *procs.Node) error {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := killed.StartReady(ctx); err != nil {
		return err
	}
	d.say("4", "%s starts again (pid %d) and is ready after %.2f s.", killed.ID, killed.PID(), time.Since(started).Seconds())
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"syscall"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// killConfig says how long and how hard a kill test is.
type killConfig struct {
	Binary    string
	Dir       string // for the nodes; it exists
	Tasks     int
	Kills     int
	Producers int
	Workers   int
	Seed      int64
	KillAll   bool // also kill all nodes at once, in the middle
	Out       io.Writer
}

const (
	killNodes   = 3
	killReaders = 2
	// killLeaseMS is long enough for a worker that has lost its leader for a
	// moment, and short enough for leases to run out during a run.
	killLeaseMS = 1500
	// roundSeconds is how long the load between two kills lasts about: the rate
	// of submits follows from it.
	roundSeconds = 2
	startTimeout = 30 * time.Second
	// A round may take this long before the run is given up: an election, a
	// restart, and a machine with other things to do.
	roundTimeout = 60 * time.Second
	drainTimeout = 3 * time.Minute
)

// kill runs a workload against three processes, kills the leader again and
// again, drains the queue, and checks the history.
func kill(ctx context.Context, cfg killConfig) (killResult, error) {
	started := time.Now()
	cluster, err := procs.New(procs.Config{Binary: cfg.Binary, Dir: cfg.Dir, Nodes: killNodes})
	if err != nil {
		return killResult{}, err
	}
	defer cluster.Close()
	if err := within(ctx, startTimeout, cluster.StartAll); err != nil {
		return killResult{}, err
	}
	fmt.Fprintf(cfg.Out, "kill test: %d tasks, %d producers, %d workers, %d nodes, the leader killed %d times, seed %d\n",
		cfg.Tasks, cfg.Producers, cfg.Workers, killNodes, cfg.Kills, cfg.Seed)

	rec := recorder.New(cfg.Seed)
	defer rec.Close()
	working, stop := context.WithCancel(ctx)
	perRound := cfg.Tasks/(cfg.Kills+1) + 1
	load := rec.Start(working, recorder.Config{
		Nodes: cluster.URLs(), Producers: cfg.Producers, Workers: cfg.Workers, Readers: killReaders,
		Tasks: cfg.Tasks, LeaseMS: killLeaseMS, Rate: max(perRound/roundSeconds, 1),
	})
	n := nemesis{cluster: cluster, rec: rec, rng: rand.New(rand.NewSource(cfg.Seed)), out: cfg.Out}
	err = n.run(ctx, load, cfg, perRound)
	if err == nil {
		err = within(ctx, drainTimeout, load.Drain)
	}
	stop()
	load.Wait()
	result := killResult{History: rec.History(), Kills: n.kills, Wall: time.Since(started)}
	if err != nil {
		return result, err
	}
	result.Report = check.Check(result.History, check.Options{Drained: true})
	result.measure()
	return result, nil
}

// within calls do with a deadline.
func within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// nemesis kills nodes.
type nemesis struct {
	cluster *procs.Cluster
	rec     *recorder.Recorder
	rng     *rand.Rand
	out     io.Writer
	kills   []int64 // when a leader was killed, by the recorder's clock
}

// run kills the leader cfg.Kills times, letting perRound tasks be submitted
// around each.
func (n *nemesis) run(ctx context.Context, load *recorder.Workload, cfg killConfig, perRound int) error {
	for round := 1; round <= cfg.Kills; round++ {
		load.Allow(round * perRound)
		if err := within(ctx, roundTimeout, n.killLeader); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if cfg.KillAll && round == (cfg.Kills+1)/2 {
			if err := within(ctx, roundTimeout, n.killAll); err != nil {
				return fmt.Errorf("all nodes killed at once: %w", err)
			}
		}
		ops, unknown := n.rec.Count()
		fmt.Fprintf(n.out, "  %3d leaders killed, %6d tasks submitted, %7d calls, %4d of unknown outcome\n", len(n.kills), load.Submitted(), ops, unknown)
	}
	load.Hurry()
	return nil
}

// pause waits for a random time up to most.
func (n *nemesis) pause(ctx context.Context, most time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(n.rng.Int63n(int64(most)))):
		return nil
	}
}

// killLeader kills the leader at a random moment, and starts it again once
// another one leads.
func (n *nemesis) killLeader(ctx context.Context) error {
	if err := n.pause(ctx, 2*time.Second); err != nil {
		return err
	}
	leader, err := n.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := n.kill(leader); err != nil {
		return err
	}
	if _, err := n.cluster.WaitLeader(ctx, leader); err != nil {
		return err
	}
	if err := n.pause(ctx, time.Second); err != nil {
		return err
	}
	return n.restart(ctx)
}

// killAll kills every node at once, at a random moment, and starts them again.
func (n *nemesis) killAll(ctx context.Context) error {
	if err := n.pause(ctx, 2*time.Second); err != nil {
		return err
	}
	n.rec.Event("all nodes killed")
	for _, node := range n.cluster.Nodes {
		if err := node.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	for _, node := range n.cluster.Nodes {
		if err := node.WaitExit(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(n.out, "      all nodes killed at once")
	return n.restart(ctx)
}

func (n *nemesis) kill(leader *procs.Node) error {
	n.kills = append(n.kills, n.rec.Now())
	n.rec.Event("%s, the leader, killed", leader.ID)
	return leader.Kill()
}

// restart starts what does not run, and waits until all nodes are ready.
func (n *nemesis) restart(ctx context.Context) error {
	n.rec.Event("the killed nodes started")
	return n.cluster.StartAll(ctx)
}

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// upgradeConfig says what is upgraded to what.
type upgradeConfig struct {
	Old   string // binary of an earlier version
	New   string
	Level uint32 // feature level that Old knows
	Dir   string // for the nodes; it exists
	Rate  int    // submits per second
	Rest  time.Duration
	Seed  int64
	Out   io.Writer
}

const (
	upgradeNodes     = 3
	upgradeProducers = 6
	upgradeWorkers   = 16
	upgradeReaders   = 2
	// drainTimeout bounds the wait until every task has ended.
	drainTimeout = 3 * time.Minute
	// upgradeTasksMax bounds the tasks of a run.
	upgradeTasksMax = 1_000_000
	// upgradeSnapshotBytes lets each version restore what the other has written.
	upgradeSnapshotBytes = "1048576" // the least
	// upgradeLeaseMS is longer than a restart takes: what expires beside is not
	// the upgrade's doing.
	upgradeLeaseMS = 5000
)

// runUpgrade is the long upgrade test: from each of several feature levels.
func runUpgrade(ctx context.Context, c *call) error {
	cfg := upgradeConfig{Out: c.out}
	c.onNodes()
	from := c.String("from", defaultUpgradeLevels(), "feature levels to upgrade from, separated by commas")
	c.IntVar(&cfg.Rate, "rate", 200, "submits per second")
	c.DurationVar(&cfg.Rest, "rest", 3*time.Second, "between two restarts")
	if err := c.parse(nil); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	cfg.New, cfg.Seed = c.binary, c.seed
	for name := range strings.SplitSeq(*from, ",") {
		level, err := strconv.ParseUint(name, 10, 32)
		if err == nil {
			err = upgradeFrom(ctx, cfg, c.dir, uint32(level))
		}
		if err != nil {
			return c.end(nil, fmt.Errorf("from feature level %s: %w", name, err))
		}
	}
	return c.end(nil, nil)
}

// defaultUpgradeLevels are the two before this one.
func defaultUpgradeLevels() string {
	return fmt.Sprintf("%d,%d", fsm.FeatureLevel-2, fsm.FeatureLevel-1)
}

// upgradeFrom builds the version of the feature level and upgrades from it, in a
// folder of its own below dir.
func upgradeFrom(ctx context.Context, cfg upgradeConfig, dir string, level uint32) error {
	var err error
	cfg.Level, cfg.Dir = level, filepath.Join(dir, fmt.Sprintf("level-%d", level))
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return err
	}
	if cfg.Old, err = procs.BuildLevel(ctx, dir, level); err != nil {
		return err
	}
	result, err := upgrade(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Fprintln(cfg.Out, result)
	if !result.OK() {
		return errFails
	}
	return nil
}

// upgrade takes three nodes from one version to another and back, and there
// again for good, one node at a time under load, and checks the history.
func upgrade(ctx context.Context, cfg upgradeConfig) (upgradeResult, error) {
	started := time.Now()
	cluster, err := procs.New(procs.Config{
		Binary: cfg.Old, Dir: cfg.Dir, Nodes: upgradeNodes, Flags: []string{"--snapshot-log-bytes", upgradeSnapshotBytes},
	})
	if err != nil {
		return upgradeResult{}, err
	}
	defer cluster.Close()
	if err := within(ctx, startTimeout, cluster.StartAll); err != nil {
		return upgradeResult{}, err
	}
	fmt.Fprintf(cfg.Out, "upgrade: %d nodes of feature level %d to %d, %d submits a second, %d workers, seed %d\n",
		upgradeNodes, cfg.Level, fsm.FeatureLevel, cfg.Rate, upgradeWorkers, cfg.Seed)
	rec := recorder.New(cfg.Seed)
	defer rec.Close()
	working, stop := context.WithCancel(ctx)
	defer stop()
	load := rec.Start(working, recorder.Config{
		Nodes: cluster.URLs(), Producers: upgradeProducers, Workers: upgradeWorkers, Readers: upgradeReaders,
		Tasks: upgradeTasksMax, LeaseMS: upgradeLeaseMS, Rate: cfg.Rate,
	})
	crew, err := startUpgradeCrew(working, cluster.URLs())
	if err != nil {
		stop()
		load.Wait()
		return upgradeResult{}, err
	}
	u := &upgrading{cfg: cfg, cluster: cluster, rec: rec}
	err = u.run(ctx)
	crew.stop()
	load.Enough()
	if err == nil {
		err = within(ctx, drainTimeout, load.Drain)
	}
	stop()
	load.Wait()
	result := upgradeResult{History: rec.History(), Restarts: u.restarts, Crew: crew.report(), Wall: time.Since(started)}
	if err != nil {
		return result, err
	}
	result.History.Ops = slices.DeleteFunc(result.History.Ops, func(op history.Op) bool { // of the crew, which is not recorded
		return op.Seen != nil && op.Seen.Type == crewType
	})
	result.Report = check.Check(result.History, check.Options{Drained: true})
	result.measure()
	return result, nil
}

// upgrading is an upgrade that goes on.
type upgrading struct {
	cfg      upgradeConfig
	cluster  *procs.Cluster
	rec      *recorder.Recorder
	restarts []restart
}

// restart is one node that ended and began again, by the recorder's clock.
type restart struct {
	node   string
	leader bool // it led
	to     string
	from   int64 // when it was asked to end
	ready  int64
}

// run goes up, back, up again, and makes that final.
func (u *upgrading) run(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"up", func(ctx context.Context) error { return u.roll(ctx, "new", u.cfg.New) }},
		{"the level before it is final", func(ctx context.Context) error { return u.wantLevel(ctx, u.cfg.Level) }},
		{"back", func(ctx context.Context) error { return u.roll(ctx, "old", u.cfg.Old) }},
		{"up again", func(ctx context.Context) error { return u.roll(ctx, "new", u.cfg.New) }},
		{"final", u.finalize},
		{"an old node on its folder", u.tryOldNode},
		{"an old node that joins", u.tryOldJoin},
	}
	for _, step := range steps {
		if err := within(ctx, upgradeStepTimeout, step.do); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		ops, unknown := u.rec.Count()
		fmt.Fprintf(u.cfg.Out, "  %-28s %7d calls, %4d of unknown outcome\n", step.what, ops, unknown)
	}
	return nil
}

// upgradeStepTimeout bounds a step, on a machine with other things to do.
const upgradeStepTimeout = 3 * time.Minute

// roll restarts every node with the binary, the leader last.
func (u *upgrading) roll(ctx context.Context, name, binary string) error {
	leader, err := u.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	order := make([]*procs.Node, 0, upgradeNodes)
	for _, n := range u.cluster.Nodes {
		if n != leader {
			order = append(order, n)
		}
	}
	for i, n := range append(order, leader) {
		if err := u.restart(ctx, n, name, binary); err != nil {
			return err
		}
		if i == upgradeNodes-1 {
			break
		}
		// Now there are both. Nobody may make it final.
		_, _ = u.command(ctx, u.cfg.New, n, "cluster", "upgrade", "--finalize") // a leader of the old version does not refuse it
		if err := u.wantLevel(ctx, u.cfg.Level); err != nil {
			return err
		}
		if i == 0 {
			if err := u.tryClients(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// restart ends the node as an operator does, and begins again with the binary.
func (u *upgrading) restart(ctx context.Context, n *procs.Node, name, binary string) error {
	leader, err := u.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	r := restart{node: n.ID, leader: leader == n, to: name, from: u.rec.Now()}
	u.rec.Event("%s stopped, to run the %s version", n.ID, name)
	if err := n.Stop(ctx); err != nil {
		return err
	}
	n.SetBinary(binary)
	if err := n.Start(); err != nil {
		return err
	}
	if err := n.WaitReady(ctx); err != nil {
		return err
	}
	u.rec.Event("%s ready", n.ID)
	r.ready = u.rec.Now()
	u.restarts = append(u.restarts, r)
	select { // so that each restart is seen by itself
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(u.cfg.Rest):
		return nil
	}
}

// wantLevel asks every node for the cluster's feature level.
func (u *upgrading) wantLevel(ctx context.Context, want uint32) error {
	for _, n := range u.cluster.Nodes {
		view, err := procs.View(ctx, n)
		if err != nil {
			return err
		}
		if view.FeatureLevel != want {
			return fmt.Errorf("%s says that the cluster is at feature level %d, want %d", n.ID, view.FeatureLevel, want)
		}
	}
	return nil
}

// finalize gives the command that an operator gives.
func (u *upgrading) finalize(ctx context.Context) error {
	if _, err := u.command(ctx, u.cfg.New, u.cluster.Nodes[0], "cluster", "upgrade", "--finalize"); err != nil {
		return err
	}
	for {
		err := u.wantLevel(ctx, fsm.FeatureLevel) // a follower may be a moment behind
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(idlePoll):
		}
	}
}

// idlePoll is how often a condition is looked at.
const idlePoll = 20 * time.Millisecond

// command runs the command line of the binary against the node and returns what
// it printed. It must exit with 0.
func (u *upgrading) command(ctx context.Context, binary string, n *procs.Node, args ...string) (string, error) {
	printed, code, err := procs.Command(ctx, binary, []*procs.Node{n}, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("claimq %s: exit code %d: %s", strings.Join(args, " "), code, printed)
	}
	return printed, err
}

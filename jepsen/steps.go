package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"time"

	"github.com/claimq/claimq/jepsen/parents"
	"github.com/claimq/claimq/jepsen/plants"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// stepsConfig says how long and how hard a run of parents is.
type stepsConfig struct {
	binary     string
	dir        string // for the nodes; it exists
	parents    int
	steps      int // of each
	kills      int
	producers  int
	workers    int
	processors int
	seed       int64
	killAll    bool          // also kill all nodes at once, in the middle
	limit      time.Duration // of the whole run
	out        io.Writer
}

const (
	stepsNodes = 3
	// stepsRoundSeconds is how long the load between two kills lasts at least.
	stepsRoundSeconds = 3
	// stepsRoundTimeout bounds a kill, until all nodes are ready again: they have
	// much to read.
	stepsRoundTimeout = 3 * time.Minute
	// stepsTrailBytes is how far behind the load the follower of the trail may be.
	stepsTrailBytes = "536870912"
)

// runSteps puts parents through a cluster whose leaders are killed, and says
// whether each ended exactly once.
func runSteps(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("steps", flag.ContinueOnError)
	cfg := stepsConfig{out: out}
	flags.StringVar(&cfg.binary, "binary", "", "the claimq binary; built if not given")
	flags.IntVar(&cfg.parents, "parents", 100_000, "parents to submit")
	flags.IntVar(&cfg.steps, "steps", 5, "steps of each, at least 2")
	flags.IntVar(&cfg.kills, "kills", 10, "how many times the leader is killed")
	flags.IntVar(&cfg.producers, "producers", 3, "producers")
	flags.IntVar(&cfg.workers, "workers", 8, "workers")
	flags.IntVar(&cfg.processors, "processors", 12, "processors")
	flags.Int64Var(&cfg.seed, "seed", time.Now().Unix(), "of all that is chosen at random")
	flags.BoolVar(&cfg.killAll, "all", true, "kill all nodes at once in the middle, too")
	plant := flags.String("plant", "", "build the binary with this bug in it, which the run must then find")
	flags.DurationVar(&cfg.limit, "limit", 45*time.Minute, "how long the whole run may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.steps < 2 || cfg.parents < 1 || cfg.workers < 1 || cfg.processors < 1 || cfg.producers < 1 {
		return fmt.Errorf("at least one of each, and two steps\n%s", usage)
	}
	w, err := openWorkspaceBuilding("steps", cfg.binary, func(dir string) (string, error) { return buildStepped(ctx, dir, *plant) })
	if err != nil {
		return err
	}
	cfg.dir, cfg.binary = w.dir, w.binary
	report, err := putThrough(ctx, cfg)
	if report != nil {
		fmt.Fprintf(out, "\n%s", report)
	}
	if err == nil && !report.OK() {
		err = errFails
	}
	if err != nil {
		return fmt.Errorf("%w\nlogs of the nodes: %s; try again with: go run ./jepsen steps --parents %d --steps %d --workers %d --kills %d --seed %d",
			err, w.dir, cfg.parents, cfg.steps, cfg.workers, cfg.kills, cfg.seed)
	}
	return w.remove()
}

// buildStepped builds the binary, with the bug of that name, if any.
func buildStepped(ctx context.Context, dir, plant string) (string, error) {
	if plant == "" {
		return procs.Build(ctx, dir)
	}
	p, ok := plants.ByName(plant)
	if !ok {
		return "", fmt.Errorf("no plant is called %q", plant)
	}
	return p.Build(ctx, dir)
}

// putThrough is the run itself. The report is returned beside an error too, if
// there is any: parents that are stuck are a finding.
func putThrough(ctx context.Context, cfg stepsConfig) (*parents.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.limit, fmt.Errorf("the run took longer than %v", cfg.limit))
	defer cancel()
	cluster, err := procs.New(procs.Config{
		Binary: cfg.binary, Dir: cfg.dir, Nodes: stepsNodes, Flags: []string{"--trail-bytes", stepsTrailBytes, "--log-level", "warn"},
	})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	if err := within(ctx, startTimeout, cluster.StartAll); err != nil {
		return nil, err
	}
	fmt.Fprintf(cfg.out, "%d parents of %d steps, %d producers, %d workers, %d processors, %d nodes, the leader killed %d times, seed %d\n",
		cfg.parents, cfg.steps, cfg.producers, cfg.workers, cfg.processors, stepsNodes, cfg.kills, cfg.seed)
	rec := recorder.New(cfg.seed)
	defer rec.Close()
	perRound := cfg.parents/(cfg.kills+1) + 1
	load := parents.Start(ctx, rec, parents.Config{
		Nodes: cluster.URLs(), Parents: cfg.parents, Steps: cfg.steps, Producers: cfg.producers, Workers: cfg.workers, Processors: cfg.processors,
		Seed: cfg.seed, Rate: max(perRound/stepsRoundSeconds, 1), Out: cfg.out,
	})
	defer load.Stop()
	n := &nemesis{cluster: cluster, rec: rec, rng: rand.New(rand.NewSource(cfg.seed)), out: cfg.out}
	err = n.killBeside(ctx, load, cfg, perRound)
	if err == nil {
		load.Hurry()
		err = load.Drain(ctx)
	}
	load.Stop()
	for _, node := range cluster.Nodes {
		if !node.Running() {
			load.Violate("%s ended by itself with exit code %d:\n%s", node.ID, node.ExitCode(), node.LogTail(20))
		}
	}
	report, errJudge := load.Judge(ctx, err == nil)
	if report != nil {
		report.Kills(len(n.kills), cfg.killAll)
	}
	return report, errors.Join(err, errJudge)
}

// killBeside kills the leader again and again, each time in the middle of what
// is submitted between two kills.
func (n *nemesis) killBeside(ctx context.Context, load *parents.Load, cfg stepsConfig, perRound int) error {
	for round := 1; round <= cfg.kills; round++ {
		load.Allow(round * perRound)
		at := (round-1)*perRound + n.rng.Intn(perRound/2+1)
		if err := load.WaitSubmitted(ctx, at); err != nil {
			return err
		}
		if err := within(ctx, stepsRoundTimeout, n.killLeader); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if cfg.killAll && round == (cfg.kills+1)/2 {
			if err := within(ctx, stepsRoundTimeout, n.killAll); err != nil {
				return fmt.Errorf("all nodes killed at once: %w", err)
			}
		}
	}
	return nil
}

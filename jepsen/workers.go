package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/claimq/claimq/jepsen/plants"
	"github.com/claimq/claimq/jepsen/workers"
)

// runWorkers puts worker processes through stops, kills, cuts of their network and
// leaders that die at their calls, and says whether two of them ever believed to
// hold one task.
func runWorkers(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("workers", flag.ContinueOnError)
	cfg := workers.Config{Out: out}
	flags.StringVar(&cfg.Binary, "binary", "", "the claimq binary; built if not given")
	flags.IntVar(&cfg.Nodes, "nodes", 3, "nodes")
	flags.IntVar(&cfg.Workers, "workers", 6, "worker processes")
	flags.IntVar(&cfg.Rate, "rate", 12, "tasks submitted per second")
	flags.DurationVar(&cfg.Time, "time", 2*time.Minute, "how long the load and the faults last")
	flags.DurationVar(&cfg.Lease, "lease", time.Second, "the shortest lease; the longest is twice that")
	flags.Int64Var(&cfg.Seed, "seed", time.Now().Unix(), "of all that is chosen at random")
	plant := flags.String("plant", "", "build the workers with this bug in them, which the run must then find")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.Nodes < 1 || cfg.Workers < 1 || cfg.Rate < 1 || cfg.Lease < 100*time.Millisecond {
		return fmt.Errorf("at least one of each, and 100 ms\n%s", usage)
	}
	w, err := openWorkspace(ctx, "workers", cfg.Binary)
	if err != nil {
		return err
	}
	cfg.Dir, cfg.Binary = w.dir, w.binary
	if cfg.Worker, err = buildWorker(ctx, w.dir, *plant); err != nil {
		return errors.Join(err, w.remove())
	}
	report, err := workers.Run(ctx, cfg)
	if report != nil {
		fmt.Fprintf(out, "\n%s", report)
	}
	if err == nil && !report.OK() {
		err = errFails
	}
	if err != nil {
		return fmt.Errorf("%w\nlogs and diaries: %s; try again with: go run ./jepsen workers --workers %d --rate %d --time %v --lease %v --seed %d",
			err, w.dir, cfg.Workers, cfg.Rate, cfg.Time, cfg.Lease, cfg.Seed)
	}
	return w.remove()
}

// buildWorker builds the worker program, with the bug of that name, if any.
func buildWorker(ctx context.Context, dir, plant string) (string, error) {
	if plant == "" {
		return workers.Build(ctx, dir)
	}
	p, ok := plants.WorkerByName(plant)
	if !ok {
		return "", fmt.Errorf("no plant of workers is called %q", plant)
	}
	return p.Build(ctx, dir)
}

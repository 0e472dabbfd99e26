package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/claimq/claimq/jepsen/operations"
)

// runOperations does to a cluster what operators do, under load, and says whether
// anything was lost, doubled or delayed.
func runOperations(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("operations", flag.ContinueOnError)
	cfg := operations.Config{Out: out}
	flags.StringVar(&cfg.Binary, "binary", "", "the claimq binary; built if not given")
	flags.IntVar(&cfg.Producers, "producers", 4, "producers")
	flags.IntVar(&cfg.Workers, "workers", 12, "workers")
	flags.IntVar(&cfg.Rate, "rate", 150, "submits per second in all")
	flags.DurationVar(&cfg.Pause, "pause", 5*time.Second, "how long the load goes on after each act")
	flags.Int64Var(&cfg.Seed, "seed", time.Now().Unix(), "of all that is chosen at random")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.Producers < 1 || cfg.Workers < 1 || cfg.Rate < 1 {
		return fmt.Errorf("at least one of each\n%s", usage)
	}
	w, err := openWorkspace(ctx, "operations", cfg.Binary)
	if err != nil {
		return err
	}
	cfg.Dir, cfg.Binary = w.dir, w.binary
	report, err := operations.Run(ctx, cfg)
	fmt.Fprintf(out, "\n%s", report)
	if err == nil && !report.OK() {
		err = errFails
	}
	if err != nil {
		return fmt.Errorf("%w\nlogs of the nodes: %s; try again with: go run ./jepsen operations --producers %d --workers %d --rate %d --pause %v --seed %d",
			err, w.dir, cfg.Producers, cfg.Workers, cfg.Rate, cfg.Pause, cfg.Seed)
	}
	return w.remove()
}

package main

import (
	"context"
	"time"

	"github.com/claimq/claimq/jepsen/operations"
)

// operating defines the flags of a run under the load of operations.
func (c *call) operating(cfg *operations.Config) {
	c.onNodes(&c.plant)
	c.IntVar(&cfg.Clients, "clients", 36, "callers of the load")
	c.IntVar(&cfg.Rate, "rate", 500, "calls per second in all, about")
}

// runOperations performs operators' acts on a cluster under load, and reports whether
// anything was lost, duplicated or delayed.
func runOperations(ctx context.Context, c *call) error {
	cfg := operations.Config{Out: c.out}
	c.operating(&cfg)
	c.DurationVar(&cfg.Pause, "pause", 5*time.Second, "how long the load goes on after each act")
	if err := c.begin(ctx, func() bool { return cfg.Rate > 0 }); err != nil {
		return err
	}
	cfg.Dir, cfg.Binary, cfg.Seed = c.dir, c.binary, c.seed
	return c.end(operations.Run(ctx, cfg))
}

// runUpgrade runs the long upgrade test.
func runUpgrade(ctx context.Context, c *call) error {
	cfg := operations.Config{Out: c.out}
	c.operating(&cfg)
	c.DurationVar(&cfg.Pause, "rest", 3*time.Second, "between two restarts")
	if err := c.begin(ctx, func() bool { return cfg.Rate > 0 }); err != nil {
		return err
	}
	cfg.Binary, cfg.Dir, cfg.Seed = c.binary, c.dir, c.seed
	return c.end(operations.Upgrade(ctx, cfg))
}

package main

import (
	"context"
	"time"

	"github.com/claimq/claimq/jepsen/operations"
)

// runOperations does to a cluster what operators do, under load, and says whether
// anything was lost, doubled or delayed.
func runOperations(ctx context.Context, c *call) error {
	cfg := operations.Config{Out: c.out}
	c.onNodes()
	c.IntVar(&cfg.Producers, "producers", 4, "producers")
	c.IntVar(&cfg.Workers, "workers", 12, "workers")
	c.IntVar(&cfg.Rate, "rate", 150, "submits per second in all")
	c.DurationVar(&cfg.Pause, "pause", 5*time.Second, "how long the load goes on after each act")
	if err := c.begin(ctx, func() bool { return cfg.Producers > 0 && cfg.Workers > 0 && cfg.Rate > 0 }); err != nil {
		return err
	}
	cfg.Dir, cfg.Binary, cfg.Seed = c.dir, c.binary, c.seed
	return c.end(operations.Run(ctx, cfg))
}

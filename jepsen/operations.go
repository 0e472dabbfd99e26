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
	c.IntVar(&cfg.Clients, "clients", 36, "callers of the load")
	c.IntVar(&cfg.Rate, "rate", 500, "calls per second in all, about")
	c.DurationVar(&cfg.Pause, "pause", 5*time.Second, "how long the load goes on after each act")
	if err := c.begin(ctx, func() bool { return cfg.Rate > 0 }); err != nil {
		return err
	}
	cfg.Dir, cfg.Binary, cfg.Seed = c.dir, c.binary, c.seed
	return c.end(operations.Run(ctx, cfg))
}

package main

import (
	"context"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/plants"
	"github.com/claimq/claimq/jepsen/workers"
)

// runWorkers stops and kills worker processes, cuts their network and kills leaders at
// their calls, and reports whether two workers ever believed to hold the same task.
func runWorkers(ctx context.Context, c *call) error {
	cfg, plant := workers.Config{Out: c.out}, "" // in the workers, not in claimq
	c.onNodes(&plant)
	c.IntVar(&cfg.Nodes, "nodes", 3, "nodes")
	c.IntVar(&cfg.Workers, "workers", 6, "worker processes")
	c.IntVar(&cfg.Rate, "rate", 12, "tasks submitted per second")
	c.DurationVar(&cfg.Time, "time", 2*time.Minute, "how long the load and the faults last")
	c.DurationVar(&cfg.Lease, "lease", time.Second, "the shortest lease, at least 100 ms; the longest is twice that")
	served := c.String("worker", "", "of what the workers are in place of Go: claimq work --serve [flags] -- PROGRAM")
	if err := c.begin(ctx, func() bool {
		return strings.HasPrefix(*served+" ", "claimq work --serve ") == (*served != "") && cfg.Nodes > 0 && cfg.Workers > 0 && cfg.Rate > 0 && cfg.Lease >= 100*time.Millisecond
	}); err != nil {
		return err
	}
	cfg.Dir, cfg.Binary, cfg.Seed = c.dir, c.binary, c.seed
	byName := plants.WorkerByName
	if *served != "" {
		cfg.Served, cfg.Worker, byName = strings.Fields(*served)[1:], c.binary, plants.ServedByName
	}
	worker, err := byName(plant)
	if err == nil && (*served == "" || plant != "") {
		cfg.Worker, err = worker.Build(ctx, c.dir)
	}
	if err != nil {
		return c.end(nil, err)
	}
	r, err := workers.Run(ctx, cfg)
	if r == nil {
		return c.end(nil, err)
	}
	return c.end(r, err)
}

package main

import (
	"context"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/demo"
)

// demoTimeout bounds the whole demo.
const demoTimeout = 2 * time.Minute

// runDemo demonstrates claimq with three nodes at work whose leader is killed.
func runDemo(ctx context.Context, c *call) error {
	cfg := demo.Config{Out: c.out}
	c.onNodes(&c.plant)
	c.IntVar(&cfg.Tasks, "tasks", 3000, "tasks to submit")
	if err := c.begin(ctx, func() bool { return cfg.Tasks > 0 }); err != nil {
		return err
	}
	cfg.Binary, cfg.Dir = c.binary, c.dir
	return c.end(nil, pause.Within(ctx, demoTimeout, func(ctx context.Context) error { return demo.Run(ctx, cfg) }))
}

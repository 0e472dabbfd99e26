package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/operations"
	"github.com/claimq/claimq/jepsen/procs"
)

// runUpgrade is the long upgrade test: from each of several feature levels.
func runUpgrade(ctx context.Context, c *call) error {
	cfg := operations.Config{Clients: 36, Out: c.out}
	c.onNodes()
	from := c.String("from", fmt.Sprintf("%d,%d", fsm.FeatureLevel-2, fsm.FeatureLevel-1), "feature levels to upgrade from, separated by commas")
	c.IntVar(&cfg.Rate, "rate", 500, "calls per second in all, about")
	c.DurationVar(&cfg.Pause, "rest", 3*time.Second, "between two restarts")
	if err := c.begin(ctx, nil); err != nil {
		return err
	}
	cfg.Binary, cfg.Seed = c.binary, c.seed
	for name := range strings.SplitSeq(*from, ",") {
		level, err := strconv.ParseUint(name, 10, 32)
		if err == nil {
			cfg.Dir = filepath.Join(c.dir, "level-"+name)
			err = upgradeFrom(ctx, cfg, uint32(level))
		}
		if err != nil {
			return c.end(nil, fmt.Errorf("from feature level %s: %w", name, err))
		}
	}
	return c.end(nil, nil)
}

// upgradeFrom builds the version of the feature level and upgrades from it, in the
// folder of cfg.
func upgradeFrom(ctx context.Context, cfg operations.Config, level uint32) error {
	var err error
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return err
	}
	cfg.Level, cfg.NewLevel = level, fsm.FeatureLevel
	if cfg.Old, err = procs.BuildLevel(ctx, cfg.Dir, fsm.FeatureLevel, level); err != nil {
		return err
	}
	r, err := operations.Upgrade(ctx, cfg)
	fmt.Fprintf(cfg.Out, "\n%s", r)
	if err == nil && !r.OK() {
		err = errFails
	}
	return err
}

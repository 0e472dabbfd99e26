package faults

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// BuildTag is the tag of builds whose wall clocks can be set.
const BuildTag = "faults"

// clockEnv names a node's clock file in its environment.
const clockEnv = "CLAIMQ_FAULT_CLOCK"

// canSetClocks reports whether the binary was built with BuildTag.
func canSetClocks(binary string) bool {
	info, err := buildinfo.ReadFile(binary)
	return err == nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), BuildTag)
	})
}

// clockPath returns the file in which the i-th node finds how far its wall clock is ahead.
func clockPath(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("n%d.clock", i+1)) }

// setWalls sets how far the nodes' wall clocks are ahead.
func (c *Cluster) setWalls(nodes []*procs.Node, ahead time.Duration) error {
	var errs []error
	for _, n := range nodes {
		path := clockPath(c.dir, c.number(n)-1)
		err := os.WriteFile(path+".new", []byte(strconv.FormatInt(int64(ahead), 10)), 0o600)
		errs = append(errs, err, os.Rename(path+".new", path))
	}
	return errors.Join(errs...)
}

// jumped makes wall clocks jump by a drawn time; backward if sign is -1.
func jumped(draw func(rng *rand.Rand) time.Duration, sign time.Duration) act {
	return func(_ context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
		ahead := sign * draw(rng)
		if err := c.setWalls(nodes, ahead); err != nil {
			return nil, errors.Join(err, c.setWalls(nodes, 0))
		}
		c.notef("%s: the wall clock jumps by %v", names(nodes), ahead)
		return func(context.Context) error {
			c.notef("%s: the wall clock jumps back", names(nodes))
			return c.setWalls(nodes, 0)
		}, nil
	}
}

// far draws hours to weeks, near seconds.
func far(rng *rand.Rand) time.Duration {
	return time.Hour + time.Duration(rng.Int63n(int64(20*24*time.Hour)))
}

func near(rng *rand.Rand) time.Duration {
	return 2*time.Second + time.Duration(rng.Int63n(int64(6*time.Second)))
}

// driftBeat is the interval at which a drifting clock is moved.
const driftBeat = 100 * time.Millisecond

// drifting makes wall clocks run too fast, or backward, by moving them at each beat.
func drifting(by time.Duration) act {
	return func(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
		ahead := time.Duration(0)
		move := func(context.Context, *Cluster, []*procs.Node, *rand.Rand) (undo, error) {
			ahead += by
			return func(context.Context) error { return nil }, c.setWalls(nodes, ahead)
		}
		words := fmt.Sprintf("the wall clock drifts, %v each %v", by, driftBeat)
		stop, err := beating(move, driftBeat, driftBeat, words)(ctx, c, nodes, rng)
		return func(ctx context.Context) error { return errors.Join(stop(ctx), c.setWalls(nodes, 0)) }, err
	}
}

package faults

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// BuildTag is the tag of builds whose wall clocks can be set. Only they do.
const BuildTag = "faults"

// clockEnv names a node's clock file in its environment.
const clockEnv = "CLAIMQ_FAULT_CLOCK"

// canSetClocks reports whether the binary was built with BuildTag.
func canSetClocks(binary string) bool {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), BuildTag) {
			return true
		}
	}
	return false
}

// clockPath returns where the i-th node reads how far its wall clock is ahead.
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

// wall is a fault of wall clocks.
type wall struct {
	name string
	pick picker
	// ahead draws how far the clocks are ahead; less than 0 is behind.
	ahead func(rng *rand.Rand) time.Duration
}

func (w wall) Name() string                       { return w.name }
func (w wall) Needs() (root bool, tools []string) { return false, nil }

func (w wall) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if !c.clocks {
		return nil, fmt.Errorf("%s: %w: build claimq with -tags %s", w.name, ErrNeeds, BuildTag)
	}
	nodes, ahead := w.pick(ctx, c, rng), w.ahead(rng)
	if err := c.setWalls(nodes, ahead); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", w.name, err), c.setWalls(nodes, 0))
	}
	c.notef("%s: the wall clock jumps by %v", names(nodes), ahead)
	return func(context.Context) error {
		c.notef("%s: the wall clock jumps back", names(nodes))
		return c.setWalls(nodes, 0)
	}, nil
}

// far draws hours to weeks; near seconds.
func far(rng *rand.Rand) time.Duration {
	return time.Hour + time.Duration(rng.Int63n(int64(20*24*time.Hour)))
}

func near(rng *rand.Rand) time.Duration {
	return 2*time.Second + time.Duration(rng.Int63n(int64(6*time.Second)))
}

func back(ahead func(*rand.Rand) time.Duration) func(*rand.Rand) time.Duration {
	return func(rng *rand.Rand) time.Duration { return -ahead(rng) }
}

// driftBeat is how often a drifting clock is moved.
const driftBeat = 100 * time.Millisecond

// drift is a wall clock that runs too fast, or backward.
type drift struct {
	name string
	pick picker
	by   time.Duration // at each beat
}

func (d drift) Name() string                       { return d.name }
func (d drift) Needs() (root bool, tools []string) { return false, nil }

func (d drift) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if !c.clocks {
		return nil, fmt.Errorf("%s: %w: build claimq with -tags %s", d.name, ErrNeeds, BuildTag)
	}
	nodes, ahead := d.pick(ctx, c, rng), time.Duration(0)
	moving := beat{
		name: d.name, on: driftBeat, off: driftBeat, words: fmt.Sprintf("the wall clock drifts, %v each %v", d.by, driftBeat),
		pick: func(context.Context, *Cluster, *rand.Rand) []*procs.Node { return nodes },
		begin: func(context.Context, *Cluster, []*procs.Node, *rand.Rand) (func(context.Context) error, error) {
			ahead += d.by
			return func(context.Context) error { return nil }, c.setWalls(nodes, ahead)
		},
	}
	stop, err := moving.Inject(ctx, c, rng)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return errors.Join(stop(ctx), c.setWalls(nodes, 0)) }, nil
}

package faults

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// beat is something that comes and goes by itself, again and again, until the fault
// is over.
type beat struct {
	name string
	pick picker
	// on begins it, off ends it; each lasts for so long at most, drawn by chance.
	on, off time.Duration
	words   string
	links   bool // it is of links: the nodes have hosts of their own
	begin   func(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (end func(context.Context) error, err error)
}

func (b beat) Name() string { return b.name }
func (b beat) Needs() (root bool, tools []string) {
	if b.links {
		return network{}.Needs()
	}
	return false, nil
}

func (b beat) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if b.links && c.Net == nil {
		return nil, fmt.Errorf("%s: %w: the nodes have no hosts of their own", b.name, ErrNeeds)
	}
	nodes := b.pick(ctx, c, rng)
	draws := rand.New(rand.NewSource(rng.Int63()))
	c.notef("%s: %s", names(nodes), b.words)
	stop := make(chan struct{})
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() { failed = b.run(context.WithoutCancel(ctx), c, nodes, draws, stop) })
	return func(context.Context) error {
		close(stop)
		wg.Wait()
		c.notef("%s: %s: over", names(nodes), b.words)
		return failed
	}, nil
}

// run beats until stop is closed, and ends with off.
func (b beat) run(ctx context.Context, c *Cluster, nodes []*procs.Node, draws *rand.Rand, stop chan struct{}) error {
	wait := func(most time.Duration) (goesOn bool) {
		select {
		case <-stop:
			return false
		case <-time.After(most/4 + time.Duration(draws.Int63n(int64(most)*3/4+1))):
			return true
		}
	}
	for {
		end, err := b.begin(ctx, c, nodes, draws)
		if err != nil {
			return err
		}
		goesOn := wait(b.on)
		if err := end(ctx); err != nil || !goesOn {
			return err
		}
		if !wait(b.off) {
			return nil
		}
	}
}

// stopped is SIGSTOP and SIGCONT: a node that gets little of a processor, as under a
// quota.
func stopped(_ context.Context, _ *Cluster, nodes []*procs.Node, _ *rand.Rand) (func(context.Context) error, error) {
	for _, n := range nodes {
		if err := ifRunning(n.Pause()); err != nil {
			return nil, err
		}
	}
	return func(context.Context) error {
		for _, n := range nodes {
			if err := ifRunning(n.Continue()); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// shaped cuts links in a shape of its own each time.
func shaped(shape func(ctx context.Context, c *Cluster, rng *rand.Rand) (links, string)) func(context.Context, *Cluster, []*procs.Node, *rand.Rand) (func(context.Context) error, error) {
	return func(ctx context.Context, c *Cluster, _ []*procs.Node, rng *rand.Rand) (func(context.Context) error, error) {
		now, _ := shape(ctx, c, rng)
		remove, err := c.Net.Shape(now)
		if err != nil {
			return nil, err
		}
		return func(context.Context) error { return remove() }, nil
	}
}

// snapshotKilled asks for snapshots of all nodes and kills the nodes in the midst.
type snapshotKilled struct {
	name string
	pick picker
}

// snapshotKillMax is how long after the call the kill comes at most: what a snapshot
// of a run takes, about.
const snapshotKillMax = 150 * time.Millisecond

func (s snapshotKilled) Name() string                       { return s.name }
func (s snapshotKilled) Needs() (root bool, tools []string) { return false, nil }

func (s snapshotKilled) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	nodes := s.pick(ctx, c, rng)
	after := time.Duration(rng.Int63n(int64(snapshotKillMax)))
	asking, cancel := context.WithTimeout(ctx, snapshotKillMax+time.Second)
	defer cancel()
	var wg sync.WaitGroup
	// Its answer may be lost with the node.
	wg.Go(func() { _ = c.operate(asking, "/api/snapshots", "") })
	select {
	case <-ctx.Done():
	case <-time.After(after):
	}
	c.notef("snapshots are asked for, %v later:", after.Round(time.Millisecond))
	recover, err := kill(c, nodes)
	wg.Wait()
	return recover, err
}

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand"

	"github.com/claimq/claimq/jepsen/lossyfs"
	"github.com/claimq/claimq/jepsen/procs"
)

// power is the loss of power of nodes: they end, and their disks lose what was
// not synced.
type power struct {
	name string
	pick picker
	torn bool // a random part survives
}

func (p power) Name() string                       { return p.name }
func (p power) Needs() (root bool, tools []string) { return true, nil }

func (p power) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if c.Disks == nil {
		return nil, fmt.Errorf("%s: %w: the nodes have no disks of their own", p.name, ErrNeeds)
	}
	nodes := p.pick(ctx, c, rng)
	var errs []error
	for _, n := range nodes { // all at once: what a node does from now on it can tell nobody
		errs = append(errs, signalKill(n))
	}
	for _, n := range nodes {
		p.cut(c, n, rng.Int63())
	}
	recover := func(context.Context) error {
		var errs []error
		for _, n := range nodes {
			errs = append(errs, c.disk(n).Restore())
		}
		return errors.Join(append(errs, c.startNodes(nodes))...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.name, err), recover(ctx))
	}
	return recover, nil
}

// cut takes the disk's power away, and waits for the end of the node, which
// has got its signal.
func (p power) cut(c *Cluster, n *procs.Node, seed int64) {
	var torn *rand.Rand
	if p.torn {
		torn = rand.New(rand.NewSource(seed))
	}
	loss := c.disk(n).Cut(torn)
	waitGone(n)
	c.notef("power off: %s; lost %d pages, %d sizes, %d names; %d pages survived unsynced", n.ID, loss.Pages, loss.Sizes, loss.Names, loss.Survived)
}

// disk returns the node's disk. There are disks.
func (c *Cluster) disk(n *procs.Node) *lossyfs.FS { return c.Disks[c.number(n)-1] }

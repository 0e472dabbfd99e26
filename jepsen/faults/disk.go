package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"time"

	"github.com/claimq/claimq/jepsen/lossyfs"
	"github.com/claimq/claimq/jepsen/procs"
)

// badSync makes fsync and fdatasync of nodes slow, or fail.
type badSync struct {
	name   string
	pick   picker
	tamper func(rng *rand.Rand) tampering
}

func (b badSync) Name() string                       { return b.name }
func (b badSync) Needs() (root bool, tools []string) { return true, []string{"strace"} }

// slowSync makes each sync take 20 to 100 ms longer. A vote takes four syncs, and
// an election gives up after half a second at the earliest: were all disks much
// slower, no leader could be elected until they are well again.
func slowSync(rng *rand.Rand) tampering {
	delay := slowSyncDelay(rng)
	return tampering{
		inject: fmt.Sprintf("delay_enter=%d", delay.Microseconds()),
		words:  fmt.Sprintf("each sync takes %v longer", delay),
	}
}

func slowSyncDelay(rng *rand.Rand) time.Duration {
	return time.Duration(20+rng.Intn(80)) * time.Millisecond
}

// failingSync makes each sync fail with EIO: a node then ends itself.
func failingSync(*rand.Rand) tampering {
	return tampering{inject: "error=EIO", words: "each sync fails with EIO"}
}

func (b badSync) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	nodes, t := b.pick(ctx, c, rng), b.tamper(rng)
	u := undo{}
	u.add(func(context.Context) error { return c.startNodes(nodes) }) // those that ended of it, last
	for _, n := range nodes {
		detach, err := c.tamper(ctx, n, t)
		if errors.Is(err, procs.ErrNotRunning) || errors.Is(err, errBusy) {
			c.notef("%s is left alone: %v", n.ID, err)
			continue
		}
		if err != nil {
			return nil, u.after(ctx, fmt.Errorf("%s: %w", b.name, err))
		}
		u.add(detach)
	}
	c.notef("%s: %s", names(nodes), t.words)
	u.add(func(context.Context) error { c.notef("%s: syncs are well again", names(nodes)); return nil })
	return u.all, nil
}

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

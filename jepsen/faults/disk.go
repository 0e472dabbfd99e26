package faults

import (
	"context"
	"errors"
	"math/rand"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/lossyfs"
)

// disk returns the node's disk. It must have one.
func (c *Cluster) disk(n *procs.Node) *lossyfs.FS { return c.Disks[c.number(n)-1] }

// powerOff cuts the power of nodes: they end, and their disks lose unsynced data, or with
// torn, a random part of it.
func powerOff(torn bool) act {
	return func(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
		// All at once, so that none can tell another anything from now on.
		err := each(nodes, func(n *procs.Node) error { return n.Signal(syscall.SIGKILL) })
		for _, n := range nodes {
			var survives *rand.Rand
			if seed := rng.Int63(); torn {
				survives = rand.New(rand.NewSource(seed))
			}
			loss := c.disk(n).Cut(survives)
			c.notef("power off: %s; lost %d pages, %d sizes, %d names; %d pages survived unsynced", n.ID, loss.Pages, loss.Sizes, loss.Names, loss.Survived)
		}
		err = errors.Join(err, procs.KillAll(nodes...)) // until they are gone
		recover := func(context.Context) error {
			restored := each(nodes, func(n *procs.Node) error { return c.disk(n).Restore() })
			return errors.Join(restored, c.startNodes(nodes...))
		}
		if err != nil {
			return nil, errors.Join(err, recover(ctx))
		}
		return recover, nil
	}
}

// spoiled makes the nodes' disks full, slow, failing or unresponsive.
func spoiled(spoil func(d *lossyfs.FS, rng *rand.Rand) (repair func()), words string) act {
	return func(_ context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
		var repairs []func()
		for _, n := range nodes {
			repairs = append(repairs, spoil(c.disk(n), rng))
		}
		c.notef("%s: %s", names(nodes), words)
		return func(context.Context) error {
			for _, repair := range repairs {
				repair()
			}
			return c.startNodes(nodes...) // those that ended because of it
		}, nil
	}
}

// full fills the disk.
func full(d *lossyfs.FS, _ *rand.Rand) func() {
	d.Fill(true)
	return func() { d.Fill(false) }
}

// hung makes the disk stop answering.
func hung(d *lossyfs.FS, _ *rand.Rand) func() { return d.Hang() }

// slowSync makes each sync take 20 to 100 ms longer. A vote takes four syncs, and an
// election times out after half a second at the earliest: if all disks were much slower, no
// leader could be elected until they recover.
func slowSync(d *lossyfs.FS, rng *rand.Rand) func() {
	return d.SlowSync(slowSyncMin + time.Duration(rng.Intn(80))*time.Millisecond)
}

const slowSyncMin = 20 * time.Millisecond

// failingSync makes each sync fail with EIO, so that the node ends itself.
func failingSync(d *lossyfs.FS, _ *rand.Rand) func() { return d.FailSync() }

package faults

import (
	"context"
	"fmt"
	"math/rand"
	"time"

	"github.com/claimq/claimq/jepsen/lossyfs"
)

// badDisk is a disk of a node's own that is full, slow, fails, or does not answer.
type badDisk struct {
	name  string
	pick  picker
	words string
	spoil func(d *lossyfs.FS, rng *rand.Rand) (repair func())
}

func (b badDisk) Name() string                       { return b.name }
func (b badDisk) Needs() (root bool, tools []string) { return true, nil }

func (b badDisk) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if c.Disks == nil {
		return nil, fmt.Errorf("%s: %w: the nodes have no disks of their own", b.name, ErrNeeds)
	}
	nodes := b.pick(ctx, c, rng)
	u := undo{}
	u.add(func(context.Context) error { return c.startNodes(nodes) }) // those that ended of it, last
	for _, n := range nodes {
		repair := b.spoil(c.disk(n), rng)
		u.add(func(context.Context) error { repair(); return nil })
	}
	c.notef("%s: %s", names(nodes), b.words)
	return u.all, nil
}

// full leaves no room on the disk.
func full(d *lossyfs.FS, _ *rand.Rand) func() {
	d.Fill(true)
	return func() { d.Fill(false) }
}

// hung lets the disk answer nobody.
func hung(d *lossyfs.FS, _ *rand.Rand) func() { return d.Hang() }

// slowSync makes each sync take 20 to 100 ms longer. A vote takes four syncs, and
// an election gives up after half a second at the earliest: were all disks much
// slower, no leader could be elected until they are well again.
func slowSync(d *lossyfs.FS, rng *rand.Rand) func() {
	return d.SlowSync(slowSyncMin + time.Duration(rng.Intn(80))*time.Millisecond)
}

const slowSyncMin = 20 * time.Millisecond

// failingSync makes each sync fail with EIO: a node then ends itself.
func failingSync(d *lossyfs.FS, _ *rand.Rand) func() { return d.FailSync() }

package faults

import (
	"context"
	"fmt"
	"math/rand"

	"github.com/claimq/claimq/jepsen/lossyfs"
)

// badDisk is a disk of a node's own that is full, or does not answer.
type badDisk struct {
	name  string
	pick  picker
	words string
	spoil func(*lossyfs.FS) (repair func())
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
		repair := b.spoil(c.disk(n))
		u.add(func(context.Context) error { repair(); return nil })
	}
	c.notef("%s: %s", names(nodes), b.words)
	return u.all, nil
}

// full leaves no room on the disk.
func full(d *lossyfs.FS) func() {
	d.Fill(true)
	return func() { d.Fill(false) }
}

// hung lets the disk answer nobody.
func hung(d *lossyfs.FS) func() { return d.Hang() }

package replica

import (
	"fmt"
	"sync/atomic"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// diskSlackPart is the part of the mark that must be free above it before a low disk counts as
// no longer low.
const diskSlackPart = 8

// Disk is the free space on the data folder's disk.
type Disk struct {
	// free, size and mark are in bytes; below mark the disk is low. size 0 means not measured
	// yet.
	free, size, mark atomic.Uint64
	low              atomic.Bool
	// inodes is the number of free ones out of inodesSize. Below inodesMark the disk is low,
	// too.
	inodes, inodesSize, inodesMark atomic.Uint64
	inodesLow                      atomic.Bool
}

// Low reports whether so little is free that submits are refused.
func (d *Disk) Low() bool { return d.low.Load() || d.inodesLow.Load() }

// Inodes returns how many inodes are free, and the mark below which the disk is low; ok is
// false if not measured yet, or if the file system does not bound them.
func (d *Disk) Inodes() (free, mark uint64, ok bool) {
	return d.inodes.Load(), d.inodesMark.Load(), d.inodesSize.Load() != 0
}

// noteInodes records a measurement of inodes.
func (d *Disk) noteInodes(free, size uint64) (low, changed bool) {
	mark := storage.FreeInodesMin(size)
	was := d.inodesLow.Load()
	low = free < mark || was && free < mark+mark/diskSlackPart
	d.inodes.Store(free)
	d.inodesMark.Store(mark)
	d.inodesSize.Store(size)
	d.inodesLow.Store(low)
	return low, low != was
}

// Bytes returns the free and the total bytes, and the mark below which the disk is low; ok is
// false if not measured yet.
func (d *Disk) Bytes() (free, size, mark uint64, ok bool) {
	size = d.size.Load()
	return d.free.Load(), size, d.mark.Load(), size != 0
}

// note records a measurement of bytes.
func (d *Disk) note(free, size, configured uint64) (low, changed bool) {
	mark := storage.FreeMin(configured, size)
	was := d.low.Load()
	low = free < mark || was && free < mark+mark/diskSlackPart
	d.free.Store(free)
	d.mark.Store(mark)
	d.size.Store(size)
	d.low.Store(low)
	return low, low != was
}

// full returns a *nodes.Overload if less than the mark is free. If strained, it allows half of
// that, for commands that must go on.
func (d *Disk) full(strained bool) error {
	if d.inodesLow.Load() && (!strained || d.inodes.Load() < d.inodesMark.Load()/2) {
		return &nodes.Overload{
			Bound: nodes.BoundDisk,
			Text:  fmt.Sprintf("the data folder's file system has %d inodes free, it must have %d: it holds too many files", d.inodes.Load(), d.inodesMark.Load()),
		}
	}
	if !d.low.Load() || strained && d.free.Load() >= d.mark.Load()/2 {
		return nil
	}
	return &nodes.Overload{
		Bound: nodes.BoundDisk,
		Text:  fmt.Sprintf("the data folder's disk has %s free, less than disk_free_min, %s", bytesize.Text(int64(d.free.Load())), bytesize.Text(int64(d.mark.Load()))),
	}
}

// fits returns an error if a snapshot of that size would leave less than half of the mark free.
// It needs no check of inodes, because the reserve of package storage has some for snapshots.
func (d *Disk) fits(bytes int64) error {
	if d.size.Load() == 0 || d.free.Load() >= uint64(bytes)+d.mark.Load()/2 {
		return nil
	}
	return fmt.Errorf("the data folder's disk has %s free, a snapshot may take %s", bytesize.Text(int64(d.free.Load())), bytesize.Text(bytes))
}

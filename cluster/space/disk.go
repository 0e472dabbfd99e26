package space

import (
	"fmt"
	"sync/atomic"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// diskSlackPart of the mark has to be free above it before a disk that was low
// no longer is.
const diskSlackPart = 8

// Disk is what is free on the data folder's disk.
type Disk struct {
	// free, size and mark are bytes; below mark the disk is low. size 0 = not looked
	// at yet.
	free, size, mark atomic.Uint64
	low              atomic.Bool
	// inodes are those that are free, of inodesSize. Below inodesMark the disk is low, too.
	inodes, inodesSize, inodesMark atomic.Uint64
	inodesLow                      atomic.Bool
}

// Low reports whether so little is free that submits are refused.
func (d *Disk) Low() bool { return d.low.Load() || d.inodesLow.Load() }

// Inodes returns how many inodes are free, and below which mark the disk is low; ok is false if
// nobody has looked yet, or the file system does not bound them.
func (d *Disk) Inodes() (free, mark uint64, ok bool) {
	return d.inodes.Load(), d.inodesMark.Load(), d.inodesSize.Load() != 0
}

// noteInodes takes what was found of inodes.
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

// Look returns how many bytes of how many are free, and below which mark the disk is low;
// ok is false if nobody has looked at it yet.
func (d *Disk) Look() (free, size, mark uint64, ok bool) {
	size = d.size.Load()
	return d.free.Load(), size, d.mark.Load(), size != 0
}

// note takes what was found.
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

// full returns a *nodes.Overload if less is free than the mark; strained asks for
// what goes on until half of that is left.
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

// fits returns an error if a snapshot of so many bytes would leave less than half of the
// mark free. Of inodes it has its own, in the reserve of package storage.
func (d *Disk) fits(bytes int64) error {
	if d.size.Load() == 0 || d.free.Load() >= uint64(bytes)+d.mark.Load()/2 {
		return nil
	}
	return fmt.Errorf("the data folder's disk has %s free, a snapshot may take %s", bytesize.Text(int64(d.free.Load())), bytesize.Text(bytes))
}

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
}

// Low reports whether so little is free that submits are refused.
func (d *Disk) Low() bool { return d.low.Load() }

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
	if !d.low.Load() || strained && d.free.Load() >= d.mark.Load()/2 {
		return nil
	}
	return &nodes.Overload{
		Bound: nodes.BoundDisk,
		Text:  fmt.Sprintf("the data folder's disk has %s free, less than disk_free_min, %s", bytesize.Text(int64(d.free.Load())), bytesize.Text(int64(d.mark.Load()))),
	}
}

// fits returns an error if a snapshot of so many bytes would leave less than half of the
// mark free.
func (d *Disk) fits(bytes int64) error {
	if d.size.Load() == 0 || d.free.Load() >= uint64(bytes)+d.mark.Load()/2 {
		return nil
	}
	return fmt.Errorf("the data folder's disk has %s free, a snapshot may take %s", bytesize.Text(int64(d.free.Load())), bytesize.Text(bytes))
}

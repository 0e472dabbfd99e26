package replica

import (
	"testing"

	"github.com/claimq/claimq/nodes"
)

// When a disk becomes low, and when it no longer is.
func TestDisk(t *testing.T) {
	t.Parallel()
	var d Disk
	if d.fits(1<<40) != nil {
		t.Error("nothing fits a disk that was not looked at")
	}
	for i, c := range []struct {
		free, size, configured uint64
		low                    bool
		mark                   uint64
	}{
		{50, 1000, 0, false, 50}, // a twentieth
		{49, 1000, 0, true, 50},
		{55, 1000, 0, true, 50}, // an eighth more
		{56, 1000, 0, false, 50},
		{1 << 30, 1 << 40, 0, false, 1 << 30}, // 1 GiB at most
		{1<<30 - 1, 1 << 40, 0, true, 1 << 30},
		{800, 1000, 800, true, 800}, // as configured
		{900, 1000, 800, false, 800},
		{799, 1000, 800, true, 800},
	} {
		if low, _ := d.note(c.free, c.size, c.configured); low != c.low || d.mark.Load() != c.mark {
			t.Errorf("%d: low %v below %d, want %v below %d", i, low, d.mark.Load(), c.low, c.mark)
		}
		if full := d.full(false); overloaded(full, nodes.BoundDisk) != c.low {
			t.Errorf("%d: %v", i, full)
		}
	}
	if d.full(true) != nil || d.fits(399) != nil || d.fits(400) == nil {
		t.Error("half of what is kept free is not for what goes on")
	}
	if d.note(399, 1000, 800); d.full(true) == nil {
		t.Error("half of what is kept free is used up, and more goes on")
	}
}

// Inodes count like bytes, if the file system bounds them.
func TestDisk_inodes(t *testing.T) {
	t.Parallel()
	var d Disk
	d.note(1<<40, 1<<40, 0)
	for i, c := range []struct {
		free, size uint64
		low        bool
		strained   bool // follow-ups are refused, too
	}{
		{0, 0, false, false}, // no bound
		{10, 200, false, false},
		{9, 200, true, false},
		{10, 200, true, false}, // an eighth more
		{4, 200, true, true},
		{11, 200, false, false},
		{1_000, 1 << 30, false, false}, // 1,000 at most
		{999, 1 << 30, true, false},
	} {
		low, _ := d.noteInodes(c.free, c.size)
		if low != c.low || d.Low() != c.low || overloaded(d.full(false), nodes.BoundDisk) != c.low || (d.full(true) != nil) != c.strained || d.fits(1) != nil {
			t.Errorf("%d: low %v; %v, %v, %v", i, low, d.full(false), d.full(true), d.fits(1))
		}
	}
}

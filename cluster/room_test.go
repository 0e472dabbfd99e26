package cluster

import (
	"errors"
	"testing"

	"github.com/claimq/claimq/fsm"
)

// What ended tasks may take: a quarter, less when the rest leaves less, and never
// nothing.
func TestEndedMax(t *testing.T) {
	t.Parallel()
	const limit = 6400
	for _, c := range []struct{ rest, want int64 }{
		{0, 1600}, {4400, 1600}, {4401, 1599}, {5900, 100}, {5901, 100}, {6400, 100}, {10_000, 100},
	} {
		if got := endedMax(limit, c.rest); got != c.want {
			t.Errorf("beside %d bytes: %d, want %d", c.rest, got, c.want)
		}
	}
}

// When the memory limit counts, and as what.
func TestNode_memoryFull(t *testing.T) {
	t.Parallel()
	const limit = 800
	for _, c := range []struct {
		name                   string
		all, ended, remembered int64
		level                  uint32
		full                   bool // for submits
		strained               bool // for follow-ups
	}{
		{"at the limit", 800, 0, 0, fsm.FeatureLevel, false, false},
		{"over it", 801, 0, 0, fsm.FeatureLevel, true, false},
		{"over it for ended tasks", 801, 1, 0, fsm.FeatureLevel, false, false},
		{"ended tasks that cannot be evicted", 801, 700, 0, 1, true, false},
		{"follow-ups to the last", 900, 0, 0, fsm.FeatureLevel, true, false},
		{"eviction does not keep up", 901, 900, 0, fsm.FeatureLevel, true, true},
		{"over it for what is remembered", 801, 0, 1, fsm.FeatureLevel, false, false},
		{"remembered and not forgotten", 801, 0, 700, 1, true, false},
	} {
		n, err := newNode(Config{NodeID: "n", MemoryLimit: limit}.withDefaults(), Parts{})
		if err != nil {
			t.Fatal(err)
		}
		n.fsm.bytes.Store(c.all)
		n.fsm.ended.Store(c.ended)
		n.fsm.remembered.Store(c.remembered)
		n.fsm.level.Store(c.level)
		submit := fsm.Submit{Tasks: make([]fsm.NewTask, 1)}
		for _, cmd := range []fsm.Command{submit, fsm.SetSchedule{}, fsm.Batch{Ops: []fsm.Command{fsm.Extend{}, submit}}} {
			if err := n.room(cmd); overloaded(err, fsm.BoundMemory) != c.full {
				t.Errorf("%s, %T: %v", c.name, cmd, err)
			}
		}
		followed := fsm.Complete{Submit: make([]fsm.NewTask, 1)}
		for _, cmd := range []fsm.Command{followed, fsm.Batch{Ops: []fsm.Command{followed}}} {
			if err := n.room(cmd); overloaded(err, fsm.BoundMemory) != c.strained {
				t.Errorf("%s, %T: %v", c.name, cmd, err)
			}
		}
		for _, cmd := range []fsm.Command{fsm.ClaimNext{}, fsm.Complete{}, fsm.Extend{}, fsm.Retry{}, fsm.Batch{Ops: []fsm.Command{fsm.Complete{}}}} {
			if err := n.room(cmd); err != nil {
				t.Errorf("%s, %T: %v", c.name, cmd, err)
			}
		}
		n.cancel(errNodeClosed)
	}
}

// When a disk is low, and when it no longer is.
func TestDiskRoom(t *testing.T) {
	t.Parallel()
	var d diskRoom
	if !d.fits(1 << 40) {
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
		if full := d.full(false); overloaded(full, fsm.BoundDisk) != c.low {
			t.Errorf("%d: %v", i, full)
		}
	}
	if d.full(true) != nil || !d.fits(399) || d.fits(400) {
		t.Error("half of what is kept free is not for what goes on")
	}
	if d.note(399, 1000, 800); d.full(true) == nil {
		t.Error("half of what is kept free is used up, and more goes on")
	}
}

// overloaded reports whether err says that the bound is reached.
func overloaded(err error, bound fsm.Bound) bool {
	var over *fsm.Overload
	return errors.Is(err, fsm.ErrOverloaded) && errors.As(err, &over) && over.Bound == bound
}

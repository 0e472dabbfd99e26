package cluster

import (
	"errors"
	"testing"

	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
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
func TestMemoryFull(t *testing.T) {
	t.Parallel()
	const limit = 800
	for _, c := range []struct {
		name     string
		held     replica.Held
		evicts   bool
		full     bool // for submits
		strained bool // for follow-ups
	}{
		{"at the limit", replica.Held{All: 800}, true, false, false},
		{"over it", replica.Held{All: 801}, true, true, false},
		{"over it for ended tasks", replica.Held{All: 801, Ended: 1}, true, false, false},
		{"ended tasks that cannot be evicted", replica.Held{All: 801, Ended: 700}, false, true, false},
		{"follow-ups to the last", replica.Held{All: 900}, true, true, false},
		{"eviction does not keep up", replica.Held{All: 901, Ended: 900}, true, true, true},
		{"over it for what is remembered", replica.Held{All: 801, Remembered: 1}, true, false, false},
		{"remembered and not forgotten", replica.Held{All: 801, Remembered: 700}, false, true, false},
	} {
		if err := memoryFull(c.held, limit, c.evicts, false); overloaded(err, nodes.BoundMemory) != c.full {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := memoryFull(c.held, limit, c.evicts, true); overloaded(err, nodes.BoundMemory) != c.strained {
			t.Errorf("%s, strained: %v", c.name, err)
		}
	}
}

// A node that is over its memory limit refuses what adds tasks, and takes what goes on:
// follow-ups up to an eighth above it, claims and settles always.
func TestNode_room(t *testing.T) {
	t.Parallel()
	submit := command.Submit{Tasks: make([]fsm.NewTask, 1)}
	followed := command.Complete{Submit: make([]fsm.NewTask, 1)}
	for name, c := range map[string]struct {
		part           float64 // of the limit that the state takes
		full, strained bool
	}{"below": {0.9, false, false}, "over": {1.05, true, false}, "far over": {1.2, true, true}} {
		n, err := newNode(Config{NodeID: "n"}.withDefaults(), Parts{})
		if err != nil {
			t.Fatal(err)
		}
		replicatest.Fill(n.fsm, 1, 100, 100)
		n.cfg.MemoryLimit = int64(float64(n.fsm.Held().All) / c.part)
		for _, cmd := range []command.Command{submit, command.SetSchedule{}, command.Batch{Ops: []command.Command{command.Extend{}, submit}}} {
			if err := n.room(cmd); overloaded(err, nodes.BoundMemory) != c.full {
				t.Errorf("%s, %T: %v", name, cmd, err)
			}
		}
		for _, cmd := range []command.Command{followed, command.Batch{Ops: []command.Command{followed}}} {
			if err := n.room(cmd); overloaded(err, nodes.BoundMemory) != c.strained {
				t.Errorf("%s, %T: %v", name, cmd, err)
			}
		}
		for _, cmd := range []command.Command{command.ClaimNext{}, command.Complete{}, command.Extend{}, command.Retry{}, command.Batch{Ops: []command.Command{command.Complete{}}}} {
			if err := n.room(cmd); err != nil {
				t.Errorf("%s, %T: %v", name, cmd, err)
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
		if full := d.full(false); overloaded(full, nodes.BoundDisk) != c.low {
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
func overloaded(err error, bound nodes.Bound) bool {
	var over *nodes.Overload
	return errors.Is(err, nodes.ErrOverloaded) && errors.As(err, &over) && over.Bound == bound
}

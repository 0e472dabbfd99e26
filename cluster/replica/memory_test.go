package replica

import (
	"errors"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// The share of ended tasks: a quarter, less if the rest leaves less, and never nothing.
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

// When memory counts as full for submits and for follow-ups.
func TestMemoryFull(t *testing.T) {
	t.Parallel()
	const limit = 800
	for _, c := range []struct {
		name     string
		held     Held
		full     bool // for submits
		strained bool // for follow-ups
	}{
		{"at the limit", Held{All: 800}, false, false},
		{"over it", Held{All: 801}, true, false},
		{"over it for ended tasks", Held{All: 801, Ended: 1}, false, false},
		{"follow-ups to the last", Held{All: 900}, true, false},
		{"eviction does not keep up", Held{All: 901, Ended: 900}, true, true},
		{"over it for what is remembered", Held{All: 801, Remembered: 1}, false, false},
	} {
		if err := memoryFull(c.held, limit, false); overloaded(err, nodes.BoundMemory) != c.full {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := memoryFull(c.held, limit, true); overloaded(err, nodes.BoundMemory) != c.strained {
			t.Errorf("%s, strained: %v", c.name, err)
		}
	}
}

// A node over its memory limit refuses commands that add tasks, and accepts others:
// follow-ups up to an eighth above it, claims and settles always.
func TestSpace_Room(t *testing.T) {
	t.Parallel()
	submit := command.Submit{Tasks: make([]fsm.NewTask, 1)}
	followed := command.Complete{Submit: make([]fsm.NewTask, 1)}
	for name, c := range map[string]struct {
		part           float64 // of the limit, used by the state
		full, strained bool
	}{"below": {0.9, false, false}, "over": {1.05, true, false}, "far over": {1.2, true, true}} {
		held := Held{All: 10_000}
		s := NewSpace(SpaceConfig{
			MemoryLimit: int64(float64(held.All) / c.part), Held: func() Held { return held },
			VotersLow: func() bool { return false },
		})
		for _, cmd := range []command.Command{submit, command.SetSchedule{}, command.Batch{Ops: []command.Command{command.Extend{}, submit}}} {
			if err := s.Admit(cmd); overloaded(err, nodes.BoundMemory) != c.full {
				t.Errorf("%s, %T: %v", name, cmd, err)
			}
		}
		for _, cmd := range []command.Command{followed, command.Batch{Ops: []command.Command{followed}}} {
			if err := s.Admit(cmd); overloaded(err, nodes.BoundMemory) != c.strained {
				t.Errorf("%s, %T: %v", name, cmd, err)
			}
		}
		for _, cmd := range []command.Command{command.ClaimNext{}, command.Complete{}, command.Extend{}, command.Retry{}, command.Batch{Ops: []command.Command{command.Complete{}}}} {
			if err := s.Admit(cmd); err != nil {
				t.Errorf("%s, %T: %v", name, cmd, err)
			}
		}
	}
}

// While memory is full a fail's error is truncated between characters, also in a batch; the
// argument itself is not changed.
func TestSpace_Shorten(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	held := Held{All: limit}
	s := NewSpace(SpaceConfig{MemoryLimit: limit, Held: func() Held { return held }})
	long := command.Fail{Error: strings.Repeat("ü", 1000)}
	given := command.Batch{Ops: []command.Command{command.Complete{}, long}}
	if got := s.Shorten(given).(command.Batch).Ops[1].(command.Fail).Error; got != long.Error {
		t.Errorf("an error of %d bytes with room left", len(got))
	}
	held.All++
	if got := s.Shorten(given).(command.Batch).Ops[1].(command.Fail).Error; got != long.Error[:shortErrorBytes] {
		t.Errorf("in a batch: %q", got)
	}
	long.Error = "x" + long.Error
	if got := s.Shorten(long).(command.Fail).Error; got != long.Error[:shortErrorBytes-1] {
		t.Errorf("in the middle of a character: %q", got)
	}
	if got := given.Ops[1].(command.Fail).Error; len(got) != 2000 {
		t.Errorf("the one given has %d bytes then", len(got))
	}
}

// overloaded reports whether err says that the bound is reached.
func overloaded(err error, bound nodes.Bound) bool {
	var over *nodes.Overload
	return errors.Is(err, nodes.ErrOverloaded) && errors.As(err, &over) && over.Bound == bound
}

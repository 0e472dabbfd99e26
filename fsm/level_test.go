package fsm

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// The tests of this package know one feature level more than the product has, so that a level
// can be raised.
func TestMain(m *testing.M) {
	record.FeatureLevel++
	os.Exit(m.Run())
}

// A command needs the level of its kind, and a batch the highest of its ops: below that level no
// node is sent it.
//
// It changes the table, so it does not run in parallel.
func TestLevelOf(t *testing.T) {
	row := command.KindCancel.Row()
	row.Level = 2
	t.Cleanup(func() { row.Level = 1 })
	wantLevel(t, command.Cancel{ID: 1}, 2)
	wantLevel(t, command.Batch{Ops: []command.Command{command.Delete{ID: 1}, command.Cancel{ID: 1}}}, 2)
	wantLevel(t, command.Batch{Ops: []command.Command{command.Delete{ID: 1}}}, 1)
}

func wantLevel(t *testing.T, c command.Command, want uint32) {
	t.Helper()
	if got := command.LevelOf(c); got != want {
		t.Errorf("%v needs level %d, want %d", command.KindOf(c), got, want)
	}
}

// The defaults of a SetLevel are a new cluster's: one that has a level keeps what it has.
func TestSetLevel_defaults(t *testing.T) {
	t.Parallel()
	first := FirstDefaults()
	for level, want := range []record.Defaults{first, {}} {
		s := &story{t: t, m: New(), Stamp: record.Stamp{U: 1, T: storyEpoch}}
		if level > 0 {
			s.do(command.SetLevel{Level: uint32(level)})
		}
		s.do(command.SetLevel{Level: 2, Defaults: first})
		if diff := cmp.Diff(want, s.m.Defaults()); diff != "" {
			t.Errorf("raised from level %d: -want +got\n%s", level, diff)
		}
		s.do(command.SetLevel{Level: 2, Defaults: record.Defaults{LeaseMS: 1000}})
		if diff := cmp.Diff(want, s.m.Defaults()); diff != "" {
			t.Errorf("raised from level %d, then to where it is: -want +got\n%s", level, diff)
		}
	}
}

package fsm

import (
	"maps"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// LeftAlone predicts the outcome of the command about the task.
func TestMachine_LeftAlone(t *testing.T) {
	t.Parallel()
	want := []Code{"", CodeKeyTaken, CodeMaxAttemptsReached, NothingToDo, CodeTaskCancelled, CodeTaskCompleted, CodeTaskFailed, CodeTaskNotTerminal}
	seen := make(map[Code]int)
	for seed := uint64(0); seed < seeds(40) || len(seen) < len(want) && seed < 1000; seed++ {
		m := New()
		m.gone.max = smallMemory
		var last testEntry
		for _, e := range randomLog(seed, 200) {
			mustApplyTo(t, m, e)
			last = e
		}
		for id := range m.header.NextID {
			for i, action := range []command.Action{command.ActionRetry, command.ActionCancel, command.ActionRetry, command.ActionDelete} {
				before := m.tasks.Get(id)
				if before == nil {
					continue
				}
				add := int32(i / 2) // the second retry raises the limit
				foretold := m.LeftAlone(before, action, add)
				waited := before.Status == record.StatusScheduled
				cmd := map[command.Action]command.Command{command.ActionRetry: command.Retry{ID: id, AddAttempts: add}, command.ActionCancel: command.Cancel{ID: id}, command.ActionDelete: command.Delete{ID: id}}[action]
				last.Index++
				last.Commands = []command.Command{cmd}
				result := mustApplyTo(t, m, last).Results[0]
				got := result.Code
				if result.Repeated && (action != command.ActionRetry || !waited) {
					got = NothingToDo
				}
				if got != foretold {
					t.Fatalf("seed %d: %#v: %q, foretold was %q", seed, cmd, got, foretold)
				}
				seen[got]++
			}
		}
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("seen: %v, want all of %q", seen, want)
	}
}

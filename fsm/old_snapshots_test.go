package fsm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

const oldSnapshotsDir = "testdata/snapshots"

// TestRestore_OldSnapshots restores snapshots written by servers of each feature level,
// after a node of that level took some tasks through their lives. The text file next to
// each has its contents, checked against that server's answers, and the state hash. Both
// are only ever added to.
func TestRestore_OldSnapshots(t *testing.T) {
	t.Parallel()
	for level := uint32(1); level < record.FeatureLevel; level++ {
		t.Run(fmt.Sprint("level ", level), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(oldSnapshotsDir, fmt.Sprintf("level-%d.bin", level))
			saved, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m := restore(t, saved)
			if m.Level() != level {
				t.Errorf("feature level %d, want %d", m.Level(), level)
			}
			if again := snapshotOf(t, m); !bytes.Equal(again, saved) {
				t.Errorf("it is written again as\n%x, want\n%x", again, saved)
			}
			text := describeMachine(m)
			path = strings.TrimSuffix(path, "bin") + "txt"
			addMissing(t, path, []byte(text))
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
			goOn(t, m)
		})
	}
}

// describeMachine describes everything in a state, and its hash.
func describeMachine(m *Machine) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("index %d, level %d, lease clock %d, hash %x", m.Index(), m.Level(), m.Stamp().U, hashOf(m))
	for id, task := range m.tasks.All() {
		line("task %s, key %q, priority %d, params %s, payload %x, lease %d", describe(task), task.Key, task.Priority, task.Params, task.Payload, task.LeaseMS)
		for _, a := range task.Log {
			line("  attempt by %s token %d, outcome %v %q", a.WorkerID, a.Token, a.Outcome, a.Error)
		}
		line("  %s", describeRare(task))
		for _, e := range m.TaskEvents(id) {
			line("  event %s", describeEvent(e))
		}
	}
	for seq, q := range m.requests.All() {
		line("request %d: %s of %s: %v", seq, q.ID, q.WorkerID, q.Claims)
	}
	for id, g := range m.gone.All() {
		line("gone %d: key %q, %v by %s token %d, outcome %v", id, g.Key, g.Status, g.WorkerID, g.Token, g.Outcome)
	}
	for _, n := range m.Nodes() {
		line("node %s of level %d", n.NodeID, n.Level)
	}
	for _, v := range m.Types("", 0, m.Stamp()) {
		line("type %s", describeType(&v))
	}
	for _, v := range m.Schedules() {
		line("schedule %s", describeSchedule(v))
	}
	return b.String()
}

// goOn raises the level and takes a task through its life: the state is one to
// work on.
func goOn(t *testing.T, m *Machine) {
	t.Helper()
	next := m.header.NextID
	entry := command.AppendEntry(nil, record.Stamp{U: m.Stamp().U + 1, T: m.Stamp().T + 1},
		command.SetLevel{Level: record.FeatureLevel},
		command.Submit{Tasks: []record.NewTask{{Type: "later", Params: []byte("1"), Key: "later-1"}}},
		command.ClaimTask{ID: next, WorkerID: "w9"},
		command.Complete{Hold: command.Hold{ID: next, WorkerID: "w9"}},
		command.Tell{Kind: event.Restored, What: "it goes on"},
	)
	applied, err := m.Apply(m.Index()+1, entry)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range applied.Results {
		if r.Code != "" {
			t.Errorf("command %d: %s", i, r.Code)
		}
	}
	if got := m.Get(next); got == nil || got.Status != record.StatusCompleted {
		t.Errorf("the task is %+v", got)
	}
	mustCheck(t, m)
}

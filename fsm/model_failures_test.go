package fsm

import (
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/errorgroup"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// compareFailures groups the tasks that failed, some at a time.
func compareFailures(t rapid.TB, g *generator, m *Machine, s *model) {
	q := FailuresQuery{Type: pick(g, "", g.taskType()), Limit: pick(g, 1, 3, 1000)}
	failed := s.list(ListQuery{Filter: record.Filter{Status: record.StatusFailed, Type: q.Type}, ByEnd: true})
	want := map[errorgroup.ID]*errorgroup.Group{}
	for _, task := range failed {
		id := errorgroup.Of(task.Type, task.Error)
		group := want[id]
		if group == nil {
			group = &errorgroup.Group{
				ID: id, Type: task.Type, Signature: errorgroup.Signature(task.Error), Example: event.Cut(task.Error, errorgroup.ExampleMax),
				LastAt: task.CompletedAt,
			}
			want[id] = group
		}
		group.Count++
		group.FirstAt = task.CompletedAt
		if group.Count <= errorgroup.IDsMax {
			group.IDs = append(group.IDs, task.ID)
		}
	}
	var groups errorgroup.Groups
	for more := true; more; {
		q.From, more = m.Failures(&groups, q)
	}
	got := map[errorgroup.ID]*errorgroup.Group{}
	for _, group := range groups.Largest(1000) {
		got[group.ID] = group
	}
	if diff := diffOf(want, got); diff != "" || groups.Looked != len(failed) || m.Failed(q.Type) != int64(len(failed)) {
		t.Fatalf("%d failed, %d looked at of type %q, %d in the model (-model +machine):\n%s", m.Failed(q.Type), groups.Looked, q.Type, len(failed), diff)
	}
}

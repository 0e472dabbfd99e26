package fsm

import (
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/record"
)

// compareFailures reads the tasks that failed, some at a time.
func compareFailures(t rapid.TB, g *generator, m *Machine, s *model) {
	type failure struct {
		Type, Error string
		End         End
	}
	q := FailuresQuery{Type: pick(g, "", g.taskType()), Limit: pick(g, 1, 3, 1000)}
	var want, got []failure
	for _, task := range s.list(ListQuery{Filter: record.Filter{Status: record.StatusFailed, Type: q.Type}, ByEnd: true}) {
		want = append(want, failure{task.Type, task.Error, End{At: task.CompletedAt, ID: task.ID}})
	}
	for more := true; more; {
		q.From, more = m.Failures(q, func(taskType, err []byte, end End) { got = append(got, failure{string(taskType), string(err), end}) })
	}
	if diff := diffOf(want, got); diff != "" || m.Failed(q.Type) != int64(len(want)) {
		t.Fatalf("%d failed of type %q, %d in the model (-model +machine):\n%s", m.Failed(q.Type), q.Type, len(want), diff)
	}
}

package clienttest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/kind"
)

// Tasks returns all tasks of the type, whatever their status and including steps, in the order of their submits. An
// ended task is kept for its retention, by default a day of the server's clock. If the tasks cannot be read, the test
// fails at once.
func (s *Server) Tasks(taskType string) []*client.Task {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), awaitMax)
	defer cancel()
	var tasks []*client.Task
	for task, err := range s.client.Tasks(ctx, client.Filter{TaskType: taskType}) {
		if err != nil {
			s.t.Fatalf("clienttest: tasks of the type %s: %v", taskType, err)
			return nil
		}
		tasks = append(tasks, task)
	}
	return tasks
}

// Submitted returns the params of the tasks of the kind, in the order of Tasks. If one does not decode, the test
// fails at once.
func Submitted[P, R any](s *Server, k *kind.Kind[P, R]) []P {
	s.t.Helper()
	var all []P
	for _, task := range s.Tasks(k.Type()) {
		params, err := k.ParamsOf(task)
		if err != nil {
			s.t.Fatalf("clienttest: %v", err)
			return nil
		}
		all = append(all, params)
	}
	return all
}

// WantSubmitted fails the test, without stopping it, unless the tasks of the kind have exactly these params, in this
// order. Params are compared as JSON.
func WantSubmitted[P, R any](s *Server, k *kind.Kind[P, R], want ...P) {
	s.t.Helper()
	got, wanted := lines(s, Submitted(s, k)), lines(s, want)
	if !slices.Equal(got, wanted) {
		s.t.Errorf("clienttest: submitted of the kind %s:\n\t%s\nwant:\n\t%s", k.Type(), listed(got), listed(wanted))
	}
}

// lines returns the JSON of each.
func lines[P any](s *Server, params []P) []string {
	s.t.Helper()
	all := make([]string, len(params))
	for i := range params {
		b, err := json.Marshal(params[i])
		if err != nil {
			s.t.Fatalf("clienttest: %v", err)
		}
		all[i] = string(b)
	}
	return all
}

func listed(lines []string) string {
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, "\n\t")
}

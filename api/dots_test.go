package api

import (
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// TestNames_Dots ensures that nothing can be named . or .., which clients remove from paths, while other names may
// contain dots.
func TestNames_Dots(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for _, c := range []struct {
		target, body string
		code         wire.Code
		field        string
	}{
		{"POST /api/tasks", `{"task_type":"..","params":1}`, wire.CodeInvalidTask, "task_type"},
		{"POST /api/tasks", `{"task_type":".","params":1}`, wire.CodeInvalidTask, "task_type"},
		{"POST /api/tasks", `{"params":1,"idempotency_key":".."}`, wire.CodeInvalidTask, "idempotency_key"},
		{"POST /api/tasks", `{"steps":[{"step":"..","params":1}]}`, wire.CodeInvalidTask, "steps[0].step"},
		{"POST /api/tasks/claim", `{"worker_id":"w","task_types":[".."]}`, wire.CodeInvalidRequest, "task_types[0]"},
		{"PATCH /api/types/%2E%2E", `{"paused":true}`, wire.CodeInvalidRequest, "task_type"},
		{"PUT /api/schedules/%2E", `{"task":{"params":1},"every_ms":60000}`, wire.CodeInvalidRequest, "name"},
		{"PUT /api/schedules/a", `{"task":{"task_type":"..","params":1},"every_ms":60000}`, wire.CodeInvalidTask, "task.task_type"},
		{"GET /api/tasks?task_type=..", ``, wire.CodeInvalidRequest, "task_type"},
		{"POST /api/tasks/1/finalization/claim", `{"processor_id":".."}`, wire.CodeInvalidRequest, "processor_id"},
	} {
		if f := s.call(t, c.target, c.body).refused(t, c.code); f["field"] != c.field {
			t.Errorf("%s %s: the field is %v", c.target, c.body, f["field"])
		}
	}
	for _, name := range []string{"...", "..a", "a..", ".a"} {
		submitOne(t, s, `{"task_type":"`+name+`","params":1,"idempotency_key":"`+name+`"}`)
		s.call(t, "GET /api/types/"+name, "").good(t, 200)
	}
}

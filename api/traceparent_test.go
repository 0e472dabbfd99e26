package api

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

const testTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestServer_Traceparent checks that every task that a request submits has the
// request's trace context, in whatever call, and through a follower.
func TestServer_Traceparent(t *testing.T) {
	t.Parallel()
	follower, leader, _, _ := setupPair(t)
	const trace = "traceparent: " + testTrace
	for name, s := range map[string]*Server{"leader": leader, "follower": follower} {
		if got := s.call(t, "POST /api/tasks", `{"params":1}`, trace).good(t, 201).Task.Traceparent; got != testTrace {
			t.Errorf("%s: a submit: %q", name, got)
		}
	}
	if got := leader.call(t, "POST /api/tasks", `{"params":1}`, "traceparent: nonsense"); strings.Contains(got.body, "traceparent") {
		t.Errorf("an ill-formed one: %s", got.body)
	}
	leader.call(t, "POST /api/tasks", `{"tasks":[{"params":1},{"params":2}]}`, trace).good(t, 200)
	id, token := claimOne(t, leader, "w")
	leader.call(t, "POST /api/tasks/"+id+"/complete", `{"worker_id":"w","claim_token":`+token+`,"submit":[{"params":1}]}`, trace).good(t, 200)
	id, token = claimOne(t, leader, "w")
	leader.call(t, "POST /api/batch", `{"ops":[{"op":"submit","params":1},{"op":"complete","id":`+id+`,"worker_id":"w","claim_token":`+token+`,"submit":[{"params":2}]}]}`, trace).good(t, 200)
	own := strings.Replace(testTrace, "4bf9", "5bf9", 1)
	leader.call(t, "POST /api/tasks", `{"tasks":[{"params":1,"traceparent":"`+own+`","steps":[{"step":"a","params":1}]},{"params":2}]}`, trace).good(t, 200)
	leader.call(t, "POST /api/batch", `{"ops":[{"op":"submit","traceparent":"`+own+`","steps":[{"step":"a","params":1}]}]}`).good(t, 200)
	for _, task := range leader.call(t, "GET /api/tasks", "").good(t, 200).Tasks {
		want := testTrace
		switch task.ID {
		case 3:
			want = ""
		case 9, 10, 12, 13: // have their own
			want = own
		}
		if task.Traceparent != want {
			t.Errorf("task %d has %q, want %q", task.ID, task.Traceparent, want)
		}
	}
}

func TestTraceparent_AllocFree(t *testing.T) {
	s, _ := setup(t)
	r := &request{core: s.core, http: new(fasthttp.RequestCtx)}
	r.http.Request.Header.Set("X-Request-Id", "r")
	tasks := make([]fsm.NewTask, 1)
	if n := testing.AllocsPerRun(100, func() { r.trace(tasks) }); n != 0 {
		t.Errorf("%v allocations without a header", n)
	}
}

package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// typed are a free operator's key and one of each role for the types a and b.
func typed() []Key {
	keys := []Key{testKey("operator", "root")}
	for _, k := range allRoles() {
		keys = append(keys, ofTypes(k, "b", "a"))
	}
	return keys
}

// seed submits task 1 of the type a and task 2 of the type secret, claimed by w.
func seed(t *testing.T, s *Server, node *fakeNode) {
	t.Helper()
	for _, taskType := range []string{"a", "secret"} {
		body := fmt.Sprintf(`{"task_type":%q,"params":"hidden","idempotency_key":"k-%s"}`, taskType, taskType)
		s.call(t, "POST /api/tasks", body, with("root")).good(t, 201)
		s.call(t, "POST /api/tasks/claim", fmt.Sprintf(`{"worker_id":"w","task_types":[%q]}`, taskType), with("root")).good(t, 200)
		s.call(t, "PUT /api/schedules/of-"+taskType, fmt.Sprintf(`{"task":{"task_type":%q,"params":1},"every_ms":60000}`, taskType), with("root")).good(t, 201)
	}
	node.proposed = nil
}

// What a key with task_types may not touch is refused, names the type, and is
// not proposed, at the leader and through another node.
func TestTypes_Refused(t *testing.T) {
	t.Parallel()
	steps := `{"task_type":"a","steps":[{"step":"x","task_type":"secret","params":1}]}`
	for _, c := range []struct{ target, body, key string }{
		{"POST /api/tasks", `{"params":1}`, "producer"},
		{"POST /api/tasks", `{"task_type":"secret","params":1}`, "producer"},
		{"POST /api/tasks", `{"tasks":[{"task_type":"a","params":1},{"task_type":"secret","params":1}]}`, "producer"},
		{"POST /api/tasks", steps, "producer"},
		{"POST /api/tasks/claim", `{"worker_id":"w","task_types":["secret"]}`, "worker"},
		{"POST /api/tasks/claim", `{"worker_id":"w","task_types":["a","secret"],"wait_ms":1000}`, "worker"},
		{"POST /api/tasks/2/claim", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/2/complete", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[{"task_type":"secret","params":1}]}`, "worker"},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[` + steps + `]}`, "worker"},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","claim":{"task_types":["secret"]}}`, "worker"},
		{"POST /api/tasks/2/fail", `{"worker_id":"w","error":"e"}`, "worker"},
		{"POST /api/tasks/2/extend", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/2/release", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/2/finalization/claim", `{"processor_id":"p"}`, "worker"},
		{"POST /api/tasks/2/finalization/extend", `{"processor_id":"p"}`, "worker"},
		{"POST /api/tasks/2/finalization/release", `{"processor_id":"p"}`, "worker"},
		{"POST /api/tasks/2/finalize", `{"processor_id":"p","outcome":"completed"}`, "worker"},
		{"POST /api/tasks/2/retry", ``, "producer"},
		{"POST /api/tasks/2/cancel", ``, "producer"},
		{"PATCH /api/tasks/2", `{"priority":1}`, "producer"},
		{"DELETE /api/tasks/2", ``, "producer"},
		{"POST /api/tasks/actions", `{"action":"cancel","filter":{}}`, "producer"},
		{"POST /api/tasks/actions", `{"action":"cancel","filter":{"task_type":"secret"}}`, "producer"},
		{"POST /api/batch", `{"ops":[{"op":"submit","task_type":"a","params":1},{"op":"cancel","id":2}]}`, "producer"},
		{"POST /api/batch", `{"ops":[{"op":"claim","worker_id":"w","task_types":["secret"]}]}`, "worker"},
		{"POST /api/batch", `{"ops":[{"op":"extend","id":2,"worker_id":"w"}]}`, "worker"},
		{"GET /api/tasks/2", ``, "reader"},
		{"GET /api/tasks/2?wait_ms=1000", ``, "reader"},
		{"GET /api/tasks/2?consistency=stale", ``, "reader"},
		{"GET /api/tasks/by-key/k-secret", ``, "reader"},
		{"GET /api/tasks/2/why", ``, "reader"},
		{"GET /api/tasks/2/events", ``, "reader"},
		{"GET /api/tasks/2/finalization", ``, "reader"},
		{"GET /api/tasks", ``, "reader"},
		{"GET /api/tasks?idempotency_key=k-secret", ``, "reader"},
		{"GET /api/tasks?task_type=secret", ``, "reader"},
		{"GET /api/events", ``, "reader"},
		{"GET /api/events?task_type=secret", ``, "reader"},
		{"GET /api/schedules/of-secret", ``, "reader"},
		{"GET /api/workers", ``, "reader"},
		{"GET /metrics", ``, "reader"},
		{"PATCH /api/types/secret", `{"paused":true}`, "operator"},
		{"PUT /api/schedules/new", `{"task":{"task_type":"secret","params":1},"every_ms":60000}`, "operator"},
		{"PUT /api/schedules/of-secret", `{"task":{"task_type":"a","params":1},"every_ms":60000}`, "operator"},
		{"DELETE /api/schedules/of-secret", ``, "operator"},
		{"GET /api/cluster", ``, "operator"},
		{"POST /api/restore", ``, "operator"},
		{"POST /api/reload", ``, "operator"},
	} {
		leader, follower, node := setupKeys(t, typed()...)
		seed(t, leader, node)
		servers := []*Server{leader, follower}
		if strings.Contains(c.target, "stale") {
			servers = servers[:1] // the other has a state of its own here
		}
		for _, s := range servers {
			got := s.call(t, c.target, c.body, with(c.key))
			f := got.refused(t, wire.CodeForbidden)
			if strings.Contains(got.body, "hidden") || !strings.Contains(f["error"].(string)+f["message"].(string), "type") {
				t.Errorf("%s %s: %s", c.target, c.body, got.body)
			}
			if len(node.proposed) > 0 {
				t.Errorf("%s %s was proposed: %v", c.target, c.body, node.proposed)
			}
		}
	}
}

// What a key with task_types may touch works as ever.
func TestTypes_Allowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, body, key string }{
		{"POST /api/tasks", `{"task_type":"b","params":1}`, "producer"},
		{"POST /api/tasks", `{"task_type":"a","steps":[{"step":"x","task_type":"b","params":1}]}`, "producer"},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[{"task_type":"b","params":1}],"claim":{}}`, "worker"},
		{"POST /api/tasks/1/extend", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/1/cancel", ``, "producer"},
		{"POST /api/tasks/actions", `{"action":"cancel","filter":{"task_type":"a"}}`, "producer"},
		{"POST /api/batch", `{"ops":[{"op":"claim","worker_id":"w","limit":9},{"op":"extend","id":1,"worker_id":"w"}]}`, "worker"},
		{"GET /api/tasks/1", ``, "reader"},
		{"GET /api/tasks/by-key/k-a", ``, "reader"},
		{"GET /api/tasks?task_type=a", ``, "reader"},
		{"GET /api/events?task_type=b", ``, "reader"},
		{"GET /api/tasks/1/events", ``, "reader"},
		{"GET /api/tasks/1/why", ``, "reader"},
		{"GET /api/tasks/1/finalization", ``, "reader"},
		{"GET /api/schedules/of-a", ``, "reader"},
		{"PATCH /api/types/a", `{"paused":true}`, "operator"},
		{"PUT /api/schedules/of-a", `{"task":{"task_type":"b","params":1},"every_ms":60000}`, "operator"},
		{"DELETE /api/schedules/of-a", ``, "operator"},
	} {
		leader, follower, node := setupKeys(t, typed()...)
		seed(t, leader, node)
		for _, s := range []*Server{leader, follower} {
			if got := s.call(t, c.target, c.body, with(c.key)); got.status >= 300 && got.status != 404 && got.status != 409 {
				t.Errorf("%s %s: %d %s", c.target, c.body, got.status, got.body)
			}
		}
	}
}

// A claim of any type is one of the key's types, also in a complete and in a
// batch.
func TestTypes_Narrowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, body string }{
		{"POST /api/tasks/claim", `{"worker_id":"w2"}`},
		{"POST /api/tasks/claim", `{"worker_id":"w2","task_types":[],"wait_ms":1000}`},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","claim":{"limit":5}}`},
		{"POST /api/batch", `{"ops":[{"op":"claim","worker_id":"w2"},{"op":"complete","id":1,"worker_id":"w","claim":{}}]}`},
	} {
		leader, follower, node := setupKeys(t, typed()...)
		seed(t, leader, node)
		leader.call(t, "POST /api/tasks", `{"task_type":"secret","params":1}`, with("root")).good(t, 201)
		for _, s := range []*Server{leader, follower} {
			s.call(t, c.target, c.body, with("worker"))
		}
		claims := 0
		note := func(claim fsm.ClaimNext) {
			claims++
			if strings.Join(claim.Types, " ") != "a b" {
				t.Errorf("%s %s claims of the types %v", c.target, c.body, claim.Types)
			}
		}
		for _, cmd := range node.proposed[1:] {
			visitClaims(cmd, note)
		}
		if claims < 2 {
			t.Errorf("%s %s: %d claims", c.target, c.body, claims)
		}
	}
}

func visitClaims(cmd fsm.Command, note func(fsm.ClaimNext)) {
	switch c := cmd.(type) {
	case fsm.ClaimNext:
		note(c)
	case fsm.Complete:
		note(*c.Claim)
	case fsm.Batch:
		for _, op := range c.Ops {
			visitClaims(op, note)
		}
	}
}

// Lists of types, counts and schedules show the key's types alone.
func TestTypes_Shown(t *testing.T) {
	t.Parallel()
	leader, _, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	for _, target := range []string{"GET /api/types", "GET /api/stats", "GET /api/schedules"} {
		all, own := leader.call(t, target, "", with("root")), leader.call(t, target, "", with("reader"))
		if !strings.Contains(all.body, "secret") || strings.Contains(own.body, "secret") || !strings.Contains(own.body, `"a"`) {
			t.Errorf("%s: %s", target, own.body)
		}
	}
	if got := leader.call(t, "GET /api/stats", "", with("reader")); !strings.Contains(got.body, `"claimed":1`) || strings.Contains(got.body, `"claimed":2`) {
		t.Errorf("stats: %s", got.body)
	}
}

// A taken key does not show a task of another type.
func TestTypes_TakenKey(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	for _, s := range []*Server{leader, follower} {
		got := s.call(t, "POST /api/tasks", `{"task_type":"a","params":1,"idempotency_key":"k-secret"}`, with("producer"))
		got.refused(t, wire.CodeForbidden)
		got2 := s.call(t, "POST /api/batch", `{"ops":[{"op":"submit","task_type":"a","params":1,"idempotency_key":"k-secret"}]}`, with("producer"))
		if strings.Contains(got.body+got2.body, "hidden") || !strings.Contains(got2.body, `"code":"forbidden"`) {
			t.Errorf("%s\n%s", got.body, got2.body)
		}
	}
}

// A task that is not there yet cannot be reached by guessing its id; of one that
// is there no more, a repeat gets its answer.
func TestTypes_NoTask(t *testing.T) {
	t.Parallel()
	leader, _, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	leader.call(t, "POST /api/tasks/3/cancel", "", with("producer")).refused(t, wire.CodeTaskNotFound)
	leader.call(t, "POST /api/batch", `{"ops":[{"op":"submit","task_type":"a","params":1},{"op":"cancel","id":3}]}`, with("producer")).refused(t, wire.CodeTaskNotFound)
	if len(node.proposed) > 0 {
		t.Errorf("proposed: %v", node.proposed)
	}
	leader.call(t, "POST /api/tasks", `{"task_type":"b","params":1,"retention_ms":0}`, with("producer")).good(t, 201)
	token := leader.call(t, "POST /api/tasks/claim", `{"worker_id":"w","task_types":["b"]}`, with("worker")).good(t, 200).Task.ClaimToken
	for range 2 {
		leader.call(t, "POST /api/tasks/3/complete", fmt.Sprintf(`{"worker_id":"w","claim_token":%d}`, *token), with("worker")).good(t, 200)
	}
}

// A node that leads no more may not know a task that there is: it does not say
// that there is none.
func TestTypes_NoTaskHere(t *testing.T) {
	t.Parallel()
	leader, _, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	node.onRead = func(context.Context, uint64) error {
		node.follower = true
		return nil
	}
	leader.call(t, "POST /api/tasks/3/cancel", "", with("producer")).refused(t, wire.CodeNoLeader)
}

package api

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// typed returns an unrestricted operator's key and one key of each role for the types a and b.
func typed() []door.Key {
	keys := []door.Key{testKey("operator", "root")}
	for _, k := range allRoles() {
		keys = append(keys, ofTypes(k, "b", "a"))
	}
	return keys
}

// seed submits task 1 of the type a and task 2 of the type secret, claimed by w.
func seed(t *testing.T, s *Server, node *nodetest.Node) {
	t.Helper()
	for _, taskType := range []string{"a", "secret"} {
		body := fmt.Sprintf(`{"task_type":%q,"params":"hidden","idempotency_key":"k-%s"}`, taskType, taskType)
		s.call(t, "POST /api/tasks", body, with("root")).good(t, 201)
		s.call(t, "POST /api/tasks/claim", fmt.Sprintf(`{"worker_id":"w","task_types":[%q]}`, taskType), with("root")).good(t, 200)
		s.call(t, "PUT /api/schedules/of-"+taskType, fmt.Sprintf(`{"task":{"task_type":%q,"params":1},"every_ms":60000}`, taskType), with("root")).good(t, 201)
	}
	node.Proposed = nil
}

// A request for types outside a key's task_types is refused, naming the type, and not proposed, at the leader and
// through another node.
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
		{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[{"task_type":"secret","params":1}]}`, "worker"},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[` + steps + `]}`, "worker"},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","claim":{"task_types":["secret"]}}`, "worker"},
		{"POST /api/tasks/actions", `{"action":"cancel","all":true}`, "producer"},
		{"POST /api/tasks/actions", `{"action":"cancel","filter":{"task_type":"secret"}}`, "producer"},
		{"POST /api/batch", `{"ops":[{"op":"claim","worker_id":"w","task_types":["secret"]}]}`, "worker"},
		{"GET /api/tasks/by-key/k-secret?task_type=secret", ``, "reader"},
		{"GET /api/tasks", ``, "reader"},
		{"GET /api/tasks?idempotency_key=k-secret", ``, "reader"},
		{"GET /api/tasks?task_type=secret", ``, "reader"},
		{"GET /api/events", ``, "reader"},
		{"GET /api/history", ``, "reader"},
		{"GET /api/history?task_type=secret", ``, "reader"},
		{"GET /api/failures", ``, "reader"},
		{"GET /api/failures?task_type=secret", ``, "reader"},
		{"GET /api/events?task_type=secret", ``, "reader"},
		{"GET /api/workers", ``, "reader"},
		{"GET /metrics", ``, "reader"},
		{"PATCH /api/types/secret", `{"paused":true}`, "operator"},
		{"PATCH /api/types/a", `{"dead_letter":{"task_type":"secret"}}`, "operator"},
		{"PUT /api/schedules/new", `{"task":{"task_type":"secret","params":1},"every_ms":60000}`, "operator"},
		{"PUT /api/schedules/new", `{"task":` + steps + `,"every_ms":60000}`, "operator"},
		{"PUT /api/schedules/of-secret", `{"task":{"task_type":"a","params":1},"every_ms":60000}`, "operator"},
		{"GET /api/cluster", ``, "operator"},
		{"POST /api/restore", ``, "operator"},
		{"POST /api/reload", ``, "operator"},
	} {
		leader, follower, node := setupKeys(t, typed()...)
		seed(t, leader, node)
		servers := []*Server{leader, follower}
		if strings.Contains(c.target, "stale") {
			servers = servers[:1] // the other one has its own state here
		}
		for _, s := range servers {
			got := s.call(t, c.target, c.body, with(c.key))
			f := got.refused(t, wire.CodeForbidden)
			if strings.Contains(got.body, "hidden") || !strings.Contains(f["error"].(string)+f["message"].(string), "type") {
				t.Errorf("%s %s: %s", c.target, c.body, got.body)
			}
			if f["field"] != "task_type" && c.target == "POST /api/tasks" { // the outbox's relay recognizes it by this
				t.Errorf("%s %s: the field is %v", c.target, c.body, f["field"])
			}
			if len(node.Proposed) > 0 {
				t.Errorf("%s %s was proposed: %v", c.target, c.body, node.Proposed)
			}
		}
	}
}

// What a key with task_types may touch works as usual.
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
		{"PATCH /api/types/a", `{"paused":true,"dead_letter":{"task_type":"b"}}`, "operator"},
		{"PUT /api/schedules/of-a", `{"task":{"task_type":"b","params":1},"every_ms":60000}`, "operator"},
		{"PUT /api/schedules/of-a", `{"task":{"task_type":"b","steps":[{"step":"x","task_type":"a","params":1}]},"every_ms":60000}`, "operator"},
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

// A claim of any type is restricted to the key's types, also in a complete and in a batch.
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
		note := func(claim command.ClaimNext) {
			claims++
			if strings.Join(claim.Types, " ") != "a b" {
				t.Errorf("%s %s claims of the types %v", c.target, c.body, claim.Types)
			}
		}
		for _, cmd := range node.Proposed[1:] {
			visitClaims(cmd, note)
		}
		if claims < 2 {
			t.Errorf("%s %s: %d claims", c.target, c.body, claims)
		}
	}
}

func visitClaims(cmd command.Command, note func(command.ClaimNext)) {
	switch c := cmd.(type) {
	case command.ClaimNext:
		note(c)
	case command.Complete:
		note(*c.Claim)
	case command.Batch:
		for _, op := range c.Ops {
			visitClaims(op, note)
		}
	}
}

// Lists of types, counts and schedules show only the key's types.
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
	if got := leader.call(t, "GET /api/types?limit=1", "", with("reader")); !strings.Contains(got.body, `"total":1,"matched":1,"next":null,"all":{"counts":{"pending":0,"scheduled":0,"blocked":0,"claimed":1,`) {
		t.Errorf("types: %s", got.body)
	}
	if got := leader.call(t, "GET /api/stats", "", with("reader")); !strings.Contains(got.body, `"claimed":1`) || strings.Contains(got.body, `"claimed":2`) {
		t.Errorf("stats: %s", got.body)
	}
}

// Every call about one task gives the same answer for a task of another type, a removed one and one that never
// existed, and nothing is proposed.
func TestTypes_NeverThere(t *testing.T) {
	t.Parallel()
	const never = 99
	for _, c := range []struct{ target, body, key string }{
		{"POST /api/tasks/ID/claim", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/ID/complete", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/ID/fail", `{"worker_id":"w","error":"e"}`, "worker"},
		{"POST /api/tasks/ID/extend", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/ID/release", `{"worker_id":"w"}`, "worker"},
		{"POST /api/tasks/ID/finalization/claim", `{"processor_id":"p"}`, "worker"},
		{"POST /api/tasks/ID/finalization/extend", `{"processor_id":"p"}`, "worker"},
		{"POST /api/tasks/ID/finalization/release", `{"processor_id":"p"}`, "worker"},
		{"POST /api/tasks/ID/finalize", `{"processor_id":"p","outcome":"completed"}`, "worker"},
		{"POST /api/tasks/ID/retry", ``, "producer"},
		{"POST /api/tasks/ID/cancel", ``, "producer"},
		{"PATCH /api/tasks/ID", `{"priority":1}`, "producer"},
		{"DELETE /api/tasks/ID", ``, "producer"},
		{"POST /api/batch", `{"ops":[{"op":"submit","task_type":"a","params":1},{"op":"cancel","id":ID}]}`, "producer"},
		{"POST /api/batch", `{"ops":[{"op":"extend","id":ID,"worker_id":"w"}],"atomic":true}`, "worker"},
		{"GET /api/tasks/ID", ``, "reader"},
		{"GET /api/tasks/ID?wait_ms=1000", ``, "reader"},
		{"GET /api/tasks/ID/why", ``, "reader"},
		{"GET /api/tasks/ID/events", ``, "reader"},
		{"GET /api/tasks/ID/finalization", ``, "reader"},
	} {
		leader, follower, node := setupKeys(t, typed()...)
		seed(t, leader, node)
		leader.call(t, "POST /api/tasks", `{"task_type":"secret","params":1,"retention_ms":0,"idempotency_key":"k-gone"}`, with("root")).good(t, 201)
		leader.call(t, "POST /api/tasks/3/cancel", "", with("root")).good(t, 200)
		node.Proposed = nil
		for _, s := range []*Server{leader, follower} {
			var answers []string
			for _, id := range []int{2, 3, never} {
				ask := strings.NewReplacer("ID", fmt.Sprint(id))
				got := s.call(t, ask.Replace(c.target), ask.Replace(c.body), with(c.key))
				got.refused(t, wire.CodeTaskNotFound)
				answers = append(answers, withoutRequestID(got.body))
			}
			if answers[0] != answers[2] || answers[1] != answers[2] {
				t.Errorf("%s %s: another's\n%s, one that was removed\n%s, none\n%s", c.target, c.body, answers[0], answers[1], answers[2])
			}
		}
		if len(node.Proposed) > 0 {
			t.Errorf("%s %s was proposed: %v", c.target, c.body, node.Proposed)
		}
	}
}

var requestIDPattern = regexp.MustCompile(`"request_id":"[^"]*"`)

func withoutRequestID(body string) string { return requestIDPattern.ReplaceAllString(body, "") }

// The same holds for idempotency keys and names of schedules that only another type has.
func TestTypes_NamesOfOthers(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	leader.call(t, "POST /api/tasks", `{"task_type":"secret","params":1,"retention_ms":0,"idempotency_key":"k-gone"}`, with("root")).good(t, 201)
	leader.call(t, "POST /api/tasks/3/cancel", "", with("root")).good(t, 200)
	for _, s := range []*Server{leader, follower} {
		for _, key := range []string{"k-secret", "k-gone", "k-none"} {
			s.call(t, "GET /api/tasks/by-key/"+key, "", with("reader")).refused(t, wire.CodeTaskNotFound)
		}
		s.call(t, "GET /api/schedules/of-secret", "", with("operator")).refused(t, wire.CodeScheduleNotFound)
	}
	got := leader.call(t, "PUT /api/schedules/of-secret", `{"task":{"task_type":"a","params":1},"every_ms":60000}`, with("operator"))
	if got.refused(t, wire.CodeForbidden); strings.Contains(got.body, "secret") {
		t.Errorf("a schedule's name: %s", got.body)
	}
	leader.call(t, "DELETE /api/schedules/of-secret", "", with("operator")).refused(t, wire.CodeScheduleNotFound)
}

// Keys with task_types cannot collide with tasks of other types by an idempotency_key, not even with removed ones;
// keys for all types work as before.
func TestTypes_TakenKey(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	leader.call(t, "POST /api/tasks", `{"task_type":"secret","params":1,"retention_ms":0,"idempotency_key":"k-gone"}`, with("root")).good(t, 201)
	leader.call(t, "POST /api/tasks/3/cancel", "", with("root")).good(t, 200)
	for i, key := range []string{"k-secret", "k-gone"} {
		submit := func(taskType, name string) answer {
			return leader.call(t, "POST /api/tasks", fmt.Sprintf(`{"task_type":%q,"params":1,"idempotency_key":%q}`, taskType, key), with(name))
		}
		first := submit("a", "producer").good(t, 201).Task
		if again := submit("a", "producer").good(t, 200).Task; again.ID != first.ID {
			t.Errorf("%s: repeated, task %d, want %d", key, again.ID, first.ID)
		}
		got := follower.call(t, "POST /api/batch", fmt.Sprintf(`{"ops":[{"op":"submit","task_type":"b","params":1,"idempotency_key":%q}]}`, key), with("producer"))
		if !strings.Contains(got.body, `"created":true`) {
			t.Errorf("%s: %s", key, got.body)
		}
		if holder := submit("secret", "root").good(t, 200).Task; holder.ID != uint64(2+i) {
			t.Errorf("%s: a key for all types meets task %d, want %d", key, holder.ID, 2+i)
		}
		leader.call(t, "GET /api/tasks/by-key/"+key, "", with("reader")).refused(t, wire.CodeInvalidRequest)
		for _, name := range []string{"reader", "root"} {
			if found := leader.call(t, "GET /api/tasks/by-key/"+key+"?task_type=a", "", with(name)).good(t, 200).Task; found.ID != first.ID {
				t.Errorf("%s of the type a by %s is task %d, want %d", key, name, found.ID, first.ID)
			}
		}
	}
}

// If a task that was submitted by a key for all types cannot be retried because its idempotency key is taken, the
// refusal does not reveal the other task.
func TestTypes_KeyTakenByAnother(t *testing.T) {
	t.Parallel()
	leader, _, _ := setupKeys(t, typed()...)
	submit := `{"task_type":%q,"params":1,"idempotency_key":"k","unique":"active"}`
	leader.call(t, "POST /api/tasks", fmt.Sprintf(submit, "a"), with("root")).good(t, 201)
	leader.call(t, "POST /api/tasks/1/cancel", "", with("root")).good(t, 200)
	leader.call(t, "POST /api/tasks", fmt.Sprintf(submit, "secret"), with("root")).good(t, 201)
	if f := leader.call(t, "POST /api/tasks/1/retry", "", with("producer")).refused(t, wire.CodeKeyTaken); f["task_id"] != nil || f["status"] != nil {
		t.Errorf("it tells of the other: %v", f)
	}
	if f := leader.call(t, "POST /api/tasks/1/retry", "", with("root")).refused(t, wire.CodeKeyTaken); f["task_id"] == nil {
		t.Errorf("it does not tell of the other: %v", f)
	}
}

// A claim_request_id belongs to the key's types; keys of other types can use the same one.
func TestTypes_ClaimRequestID(t *testing.T) {
	t.Parallel()
	other := ofTypes(testKey("worker", "other"), "secret")
	leader, _, _ := setupKeys(t, append(typed(), other)...)
	for _, taskType := range []string{"a", "secret"} {
		leader.call(t, "POST /api/tasks", fmt.Sprintf(`{"task_type":%q,"params":1}`, taskType), with("root")).good(t, 201)
	}
	claim := `{"worker_id":"w","claim_request_id":"r"}`
	for range 2 {
		if got := leader.call(t, "POST /api/tasks/claim", claim, with("worker")).good(t, 200).Task; got.ID != 1 {
			t.Errorf("task %d, want 1", got.ID)
		}
		if got := leader.call(t, "POST /api/tasks/claim", claim, with("other")).good(t, 200).Task; got.ID != 2 {
			t.Errorf("task %d, want 2", got.ID)
		}
	}
	leader.call(t, "POST /api/tasks/1/claim", claim, with("worker")).refused(t, wire.CodeInvalidRequest)
	leader.call(t, "POST /api/tasks/2/claim", claim, with("worker")).refused(t, wire.CodeTaskNotFound)
	// So does that of a batch.
	for key, task := range map[string]string{"worker": `"task":{"id":1,`, "other": `"task":{"id":2,`} {
		batch := leader.call(t, "POST /api/batch", `{"claim_request_id":"r","ops":[{"op":"claim","worker_id":"w"}]}`, with(key))
		if batch.good(t, 200); !strings.Contains(batch.body, task) || !strings.Contains(batch.body, `"repeated":true`) {
			t.Errorf("the batch of %s got %s, want %s again", key, batch.body, task)
		}
	}
}

// A key must not act on a task that is connected with tasks of types that it does not have: a parent with its steps,
// or what a repeated complete shows.
func TestTypes_Together(t *testing.T) {
	t.Parallel()
	leader, _, node := setupKeys(t, typed()...)
	leader.call(t, "POST /api/tasks", `{"task_type":"a","idempotency_key":"p","steps":[{"step":"x","task_type":"secret","params":"hidden"}]}`, with("root")).good(t, 201)
	leader.call(t, "POST /api/tasks", `{"task_type":"a","params":1}`, with("root")).good(t, 201)
	leader.call(t, "POST /api/tasks/3/claim", `{"worker_id":"w"}`, with("root")).good(t, 200)
	complete := `{"worker_id":"w","submit":[{"task_type":"a","params":1}],"claim":{"task_types":["secret"]}}`
	repeat := `{"worker_id":"w","submit":[{"task_type":"a","params":1}],"claim":{"task_types":["a"]}}`
	leader.call(t, "POST /api/tasks/3/complete", complete, with("root")).good(t, 200)
	node.Proposed = nil
	for _, c := range []struct{ target, body, key string }{
		{"POST /api/tasks/1/cancel", "", "producer"},
		{"POST /api/tasks/1/retry", "", "producer"},
		{"PATCH /api/tasks/1", `{"priority":1}`, "producer"},
		{"DELETE /api/tasks/1", "", "producer"},
		{"POST /api/tasks/1/finalize", `{"processor_id":"p","outcome":"completed"}`, "worker"},
		{"POST /api/batch", `{"ops":[{"op":"cancel","id":1}]}`, "producer"},
		{"GET /api/tasks/1", "", "reader"},
		{"GET /api/tasks/by-key/p", "", "reader"},
		{"GET /api/tasks/1/why", "", "reader"},
		{"GET /api/tasks/1/events", "", "reader"},
		{"GET /api/tasks/1/finalization", "", "reader"},
		{"POST /api/tasks/3/complete", repeat, "worker"},
	} {
		got := leader.call(t, c.target, c.body, with(c.key))
		got.refused(t, wire.CodeForbidden)
		if strings.Contains(got.body, "secret") || strings.Contains(got.body, "hidden") {
			t.Errorf("%s %s: %s", c.target, c.body, got.body)
		}
	}
	if len(node.Proposed) > 0 {
		t.Errorf("proposed: %v", node.Proposed)
	}
	got := leader.call(t, "POST /api/tasks/actions", `{"action":"cancel","filter":{"task_type":"a"},"dry_run":true}`, with("producer"))
	if got.body != `{"success":true,"matched":3,"done":0,"can":1,"cannot":{"forbidden":1,"task_completed":1}}` {
		t.Errorf("a dry run of all tasks of the type: %s", got.body)
	}
	got = leader.call(t, "POST /api/tasks/actions", `{"action":"cancel","filter":{"task_type":"a"}}`, with("producer"))
	if got.body != `{"success":true,"matched":3,"done":1}` {
		t.Errorf("an action on all tasks of the type: %s", got.body)
	}
}

// A task that does not exist yet cannot be reached by guessing its id. A repeat about a removed task gets its answer.
func TestTypes_NoTask(t *testing.T) {
	t.Parallel()
	leader, _, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	leader.call(t, "POST /api/tasks/3/cancel", "", with("producer")).refused(t, wire.CodeTaskNotFound)
	leader.call(t, "POST /api/batch", `{"ops":[{"op":"submit","task_type":"a","params":1},{"op":"cancel","id":3}]}`, with("producer")).refused(t, wire.CodeTaskNotFound)
	if len(node.Proposed) > 0 {
		t.Errorf("proposed: %v", node.Proposed)
	}
	leader.call(t, "POST /api/tasks", `{"task_type":"b","params":1,"retention_ms":0}`, with("producer")).good(t, 201)
	token := leader.call(t, "POST /api/tasks/claim", `{"worker_id":"w","task_types":["b"]}`, with("worker")).good(t, 200).Task.ClaimToken
	for range 2 {
		leader.call(t, "POST /api/tasks/3/complete", fmt.Sprintf(`{"worker_id":"w","claim_token":%d}`, *token), with("worker")).good(t, 200)
	}
}

// A node that no longer leads may not know an existing task, so it does not say that the task does not exist.
func TestTypes_NoTaskHere(t *testing.T) {
	t.Parallel()
	leader, _, node := setupKeys(t, typed()...)
	seed(t, leader, node)
	node.OnRead = func(context.Context, uint64) error {
		node.Follower = true
		return nil
	}
	leader.call(t, "POST /api/tasks/3/cancel", "", with("producer")).refused(t, wire.CodeNoLeader)
}

// TestTypes_BatchDone ensures that an op of a batch that was done is answered as done, whatever its follow-ups found
// under their idempotency keys, like its own call.
func TestTypes_BatchDone(t *testing.T) {
	t.Parallel()
	const op = `"worker_id":"w","submit":[{"task_type":"a","params":1,"idempotency_key":"k-secret"}]`
	for _, atomic := range []string{"false", "true"} {
		for _, call := range []struct{ target, body string }{
			{"POST /api/tasks/1/complete", `{` + op + `}`},
			{"POST /api/batch", `{"atomic":` + atomic + `,"ops":[{"op":"complete","id":1,` + op + `}]}`},
		} {
			leader, follower, node := setupKeys(t, typed()...)
			seed(t, leader, node)
			got := follower.call(t, call.target, call.body, with("worker"))
			if got.status != 200 || strings.Contains(got.body, "forbidden") || !strings.Contains(got.body, `"completed"`) {
				t.Errorf("%s: %d %s", call.target, got.status, got.body)
			}
			if task := node.Machine.Get(1); task.Status != fsm.StatusCompleted {
				t.Errorf("%s: %s", call.target, task.Status)
			}
		}
	}
}

package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// allCalls returns all calls, including OPTIONS.
func allCalls(t *testing.T) []*call {
	t.Helper()
	s, _ := setup(t)
	return s.core.calls.all
}

// targetOf returns a target that leads to a call.
func targetOf(c *call) string {
	if c.has(preflight) {
		return "OPTIONS /api/tasks"
	}
	before, after, _ := strings.Cut(c.pattern, "{")
	_, after, _ = strings.Cut(after, "}")
	if before == c.pattern {
		return before
	}
	return before + "1" + after
}

// called returns the call of that name.
func called(t *testing.T, name string) *call {
	t.Helper()
	all := allCalls(t)
	i := slices.IndexFunc(all, func(c *call) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no call is named %s", name)
	}
	return all[i]
}

// contractRoles says which roles may make which calls by the contract. anyone needs no key.
var contractRoles = map[string]string{
	"anyone":   "options get_health get_readiness get_openapi get_root get_page get_page_without_slash get_session log_in log_out",
	"all":      "get_task get_task_by_key list_tasks list_failures explain_task get_finalization list_task_events follow_events list_types get_type list_shares get_defaults list_workers list_schedules get_schedule list_slots get_stats get_history get_metrics",
	"producer": "submit_tasks change_task cancel_task signal_task retry_task delete_task act_on_tasks",
	"worker":   "claim_tasks claim_task complete_task fail_task extend_task release_task add_steps claim_finalization extend_finalization release_finalization finalize_task",
	"both":     "run_batch",
	"operator": "change_type set_share delete_share change_defaults set_schedule delete_schedule get_cluster get_hashes join_node remove_node promote_node demote_node transfer_leadership upgrade_cluster set_join_token revoke_join_token list_join_tokens " +
		"take_snapshot save_snapshot restore_snapshot reload_files list_keys",
}

// mayByContract reports whether the contract permits the role to make the call.
func mayByContract(t *testing.T, c *call, roleName string) bool {
	t.Helper()
	for who, calls := range contractRoles {
		if !slices.Contains(strings.Fields(calls), c.String()) {
			continue
		}
		switch who {
		case "anyone", "all":
			return true
		case "both":
			return roleName != "reader"
		}
		return roleName == who || roleName == "operator"
	}
	t.Fatalf("the contract's roles do not have the call %s", c.String())
	return false
}

// TestRoles_EveryCall tries every call with a key of each role, and without one, where it is answered and through
// another node.
func TestRoles_EveryCall(t *testing.T) {
	t.Parallel()
	for _, roleName := range []string{"", "reader", "producer", "worker", "operator"} {
		leader, follower, node := setupKeys(t, allRoles()...)
		for _, c := range allCalls(t) {
			target := targetOf(c)
			if c.roles == 0 {
				t.Fatalf("%s has no roles", c.String())
			}
			for _, s := range []*Server{leader, follower} {
				var headers []string
				if roleName != "" {
					headers = append(headers, with(roleName))
				}
				before := len(node.Proposed)
				got := s.call(t, target, roleBody(target, roleName), headers...)
				switch {
				case roleName == "" && !c.roles.Has(door.RoleNone):
					got.refused(t, wire.CodeUnauthorized)
				case roleName == "" || mayByContract(t, c, roleName):
					if got.status == http.StatusUnauthorized || got.status == http.StatusForbidden {
						t.Errorf("%s with the role %s: %d %s", target, roleName, got.status, got.body)
					}
					continue
				default:
					f := got.refused(t, wire.CodeForbidden)
					needed, _ := f["role"].(string)
					first, _, _ := strings.Cut(needed, " or ")
					if needed == "" || !strings.Contains(f["error"].(string), needed) || !mayByContract(t, c, first) {
						t.Errorf("%s with the role %s names the role %q: %s", target, roleName, needed, got.body)
					}
				}
				if len(node.Proposed) != before {
					t.Errorf("%s with the role %q was proposed", target, roleName)
				}
			}
		}
	}
}

// roleBody returns a valid body for the target; for a batch with an op that the role permits.
func roleBody(target, roleName string) string {
	if target == "POST /api/batch" && roleName == "worker" {
		return `{"ops":[{"op":"claim","worker_id":"w"}]}`
	}
	if target == "POST /api/batch" {
		return `{"ops":[{"op":"submit","params":1}]}`
	}
	return goodBodies[target]
}

// TestRoles_Known checks that the table of the contract has every call once, and no others.
func TestRoles_Known(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	all := allCalls(t)
	for _, names := range contractRoles {
		for _, name := range strings.Fields(names) {
			if seen[name] || !slices.ContainsFunc(all, func(c *call) bool { return c.name == name }) {
				t.Errorf("%s is there twice, or is no call", name)
			}
			seen[name] = true
		}
	}
}

// batchOps has an op of each kind, and the role besides operator that it needs.
var batchOps = map[string]string{
	`{"op":"submit","params":1}`:                                       "producer",
	`{"op":"retry","id":1}`:                                            "producer",
	`{"op":"cancel","id":1}`:                                           "producer",
	`{"op":"delete","id":1}`:                                           "producer",
	`{"op":"claim","worker_id":"w"}`:                                   "worker",
	`{"op":"complete","id":1,"worker_id":"w"}`:                         "worker",
	`{"op":"fail","id":1,"worker_id":"w","error":"e"}`:                 "worker",
	`{"op":"extend","id":1,"worker_id":"w"}`:                           "worker",
	`{"op":"release","id":1,"worker_id":"w"}`:                          "worker",
	`{"op":"complete","id":1,"worker_id":"w","submit":[{"params":1}]}`: "worker",
}

// TestRoles_Batch checks that a batch needs the role of each of its ops.
func TestRoles_Batch(t *testing.T) {
	t.Parallel()
	for op, needs := range batchOps {
		for _, roleName := range []string{"producer", "worker", "operator"} {
			leader, follower, node := setupKeys(t, allRoles()...)
			for _, s := range []*Server{leader, follower} {
				before := len(node.Proposed)
				got := s.call(t, "POST /api/batch", `{"ops":[`+op+`]}`, with(roleName))
				if roleName == needs || roleName == "operator" {
					got.good(t, 200)
					continue
				}
				f := got.refused(t, wire.CodeForbidden)
				if f["role"] != needs || f["field"] != "ops[0].op" {
					t.Errorf("%s with the role %s: %s", op, roleName, got.body)
				}
				if len(node.Proposed) != before {
					t.Errorf("%s with the role %s was proposed", op, roleName)
				}
			}
		}
	}
	leader, follower, _ := setupKeys(t, allRoles()...)
	for _, s := range []*Server{leader, follower} {
		body := `{"ops":[{"op":"submit","params":1},{"op":"claim","worker_id":"w"}]}`
		if f := s.call(t, "POST /api/batch", body, with("producer")).refused(t, wire.CodeForbidden); f["field"] != "ops[1].op" {
			t.Errorf("the second op: %v", f)
		}
		s.call(t, "POST /api/batch", body, with("operator")).good(t, 200)
	}
}

// TestRoles_Leader ensures that the leader uses only its own keys, whatever a forwarding node says about the caller.
func TestRoles_Leader(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withKeys(append(allRoles(), ofTypes(testKey("worker", "typed"), "a"))...))
	known := nodes.Passing{Known: true}
	claims := []string{"X-Claimq-Role: operator", "X-Claimq-Types: secret"}
	for _, c := range []struct {
		code    wire.Code
		pass    nodes.Passing
		headers []string
	}{
		{wire.CodeUnauthorized, known, nil},
		{wire.CodeUnauthorized, known, []string{"X-API-Key: operator"}},
		{wire.CodeUnauthorized, known, []string{"X-API-Key: " + keyHash("operator")}},
		{wire.CodeUnauthorized, known, []string{with("nobody")}},
		{wire.CodeUnauthorized, known, []string{"X-API-Key: a b"}},
		{wire.CodeUnauthorized, known, []string{with("nobody"), "X-Claimq-Key: " + keyText("operator")}},
		{wire.CodeForbidden, known, []string{with("worker")}},
		{wire.CodeForbidden, nodes.Passing{}, []string{with("worker")}},
	} {
		for _, target := range []string{"PATCH /api/types/mail", "POST /api/tasks", "DELETE /api/tasks/1", "POST /api/cluster/remove", "GET /api/cluster"} {
			passed(t, s, c.pass, target, goodBodies[target], append(claims, c.headers...)...).refused(t, c.code)
		}
	}
	for _, op := range []string{`{"op":"submit","params":1}`, `{"op":"extend","id":1,"worker_id":"w"}`} {
		passed(t, s, known, "POST /api/batch", `{"ops":[`+op+`]}`, append(claims, with("reader"))...).refused(t, wire.CodeForbidden)
	}
	passed(t, s, known, "POST /api/tasks/claim", `{"worker_id":"w","task_types":["secret"]}`, append(claims, with("typed"))...).refused(t, wire.CodeForbidden)
	if len(node.Proposed) > 0 {
		t.Errorf("proposed: %v", node.Proposed)
	}
	passed(t, s, known, "PATCH /api/types/mail", `{"paused":true}`, with("operator")).good(t, 200)
	if cmd, ok := node.Proposed[0].(command.SetType); !ok || cmd.By != "operator" {
		t.Errorf("by whom: %+v", node.Proposed[0])
	}
}

// TestKeys_differ ensures that a request that one node accepts and another does not is refused with that reason, that
// a node without keys does not open a cluster that has keys, and that such a node forwards the key that it was sent.
func TestKeys_differ(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		follower, leader []door.Key
		sent             string // "": no key
		want, reason     string // "": it is served
	}{
		{"the leader lacks the key", allRoles(), allRoles()[:3], "operator", "The leader does not know the API key, and the node that passed the request on does: the keys of the nodes differ", "differ"},
		{"the leader has no keys", allRoles(), nil, "operator", "This node leads and has no API keys, and the node that passed the request on has: the keys of the nodes differ", "differ"},
		{"the follower has no keys", nil, allRoles(), "", "Missing API key: the node that passed the request on may have no keys, but the leader has", "missing"},
		{"the follower has no keys, and the key is wrong", nil, allRoles(), "nobody", "Unknown API key", "unknown"},
		{"the follower has no keys, and the key is right", nil, allRoles(), "operator", "", ""},
		{"nobody has keys", nil, nil, "", "", ""},
		{"nobody has keys, and the client sends one", nil, nil, "nobody", "", ""},
	} {
		leader, follower := setupBoth(t, c.leader, c.follower)
		var headers []string
		if c.sent != "" {
			headers = append(headers, with(c.sent))
		}
		got := follower.call(t, "PATCH /api/types/mail", `{"paused":true}`, headers...)
		if c.want == "" {
			got.good(t, 200)
			continue
		}
		if f := got.refused(t, wire.CodeUnauthorized); f["error"] != c.want {
			t.Errorf("%s: %v", c.name, f)
		}
		if text := leader.call(t, "GET /metrics", "", with("reader")).body; !strings.Contains(text, `claimq_auth_failures_total{reason="`+c.reason+`"} 1`) {
			t.Errorf("%s: it is not counted as %s", c.name, c.reason)
		}
	}
}

// TestKeys_counted ensures that a request is counted once: by the node that it reached if that knows its key,
// otherwise by the leader.
func TestKeys_counted(t *testing.T) {
	t.Parallel()
	keys := []door.Key{limited(testKey("reader"), 1)}
	_, follower := setupBoth(t, keys, keys)
	follower.call(t, "GET /api/stats", "", with("reader")).good(t, 200)
	if got := follower.call(t, "GET /api/stats", "", with("reader")); got.status != 429 || got.header["Ratelimit-Limit"] != "1" {
		t.Errorf("over the rate: %+v", got)
	}
	leader, follower := setupBoth(t, keys, nil)
	follower.call(t, "GET /api/stats", "", with("reader")).good(t, 200)
	follower.call(t, "GET /api/stats", "", with("reader")).refused(t, wire.CodeRateLimited)
	leader.call(t, "GET /api/stats", "", with("reader")).refused(t, wire.CodeRateLimited)
}

// TestRoles_Forged checks that clients cannot claim an identity by headers, here or through a follower.
func TestRoles_Forged(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupKeys(t, append(allRoles(), ofTypes(testKey("operator", "typed"), "a"))...)
	forged := []string{"X-Claimq-Role: operator", "X-Claimq-Key: " + keyText("operator"), "X-Claimq-Types: b"}
	for _, s := range []*Server{leader, follower} {
		s.call(t, "POST /api/tasks", `{"params":1}`, forged...).refused(t, wire.CodeUnauthorized)
		s.call(t, "POST /api/tasks", `{"params":1}`, append(forged, with("reader"))...).refused(t, wire.CodeForbidden)
		s.call(t, "POST /api/tasks", `{"params":1,"task_type":"b"}`, append(forged, with("typed"))...).refused(t, wire.CodeForbidden)
		s.call(t, "POST /api/tasks", `{"params":1,"task_type":"a"}`, append(forged, with("typed"))...).good(t, 201)
	}
}

// TestRoles_Told checks that an operator's action is recorded with the name of the key, also through another node.
func TestRoles_Told(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupKeys(t, allRoles()...)
	leader.call(t, "PATCH /api/types/a", `{"paused":true}`, with("operator")).good(t, 200)
	follower.call(t, "PATCH /api/types/b", `{"paused":true}`, with("operator")).good(t, 200)
	got := leader.call(t, "GET /api/events?event=type_changed", "", with("reader"))
	if strings.Count(got.body, "by operator") != 2 {
		t.Errorf("the trail: %s", got.body)
	}
}

// TestRoles_Described checks that the description of each call names its roles, and has the answers due to keys.
func TestRoles_Described(t *testing.T) {
	t.Parallel()
	text, err := describe(openAPISource, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for _, path := range document.Paths {
		for method, text := range path {
			if method == "parameters" {
				continue
			}
			var op struct {
				ID        string   `json:"operationId"`
				Roles     []string `json:"x-roles"`
				Security  *[]any   `json:"security"`
				Responses map[string]any
			}
			if err := json.Unmarshal(text, &op); err != nil {
				t.Fatal(err)
			}
			c := called(t, op.ID)
			var want []string
			for r := door.RoleReader; r <= door.RoleOperator; r++ {
				if c.roles.Has(r) {
					want = append(want, door.RoleNames[r])
				}
			}
			if !slices.Equal(op.Roles, want) {
				t.Errorf("%s has the x-roles %v, want %v", op.ID, op.Roles, want)
			}
			if op.ID == "log_in" { // the key is in its body
				continue
			}
			keyed := len(want) > 0
			if (op.Responses["401"] != nil) != keyed || (op.Security == nil) != keyed {
				t.Errorf("%s needs a key: %v; its 401: %v, security %v", op.ID, keyed, op.Responses["401"], op.Security)
			}
			if limited := keyed && !c.has(rateFree); (op.Responses["429"] != nil) != limited {
				t.Errorf("%s is counted: %v; its 429: %v", op.ID, limited, op.Responses["429"])
			}
			if op.Responses["403"] == nil {
				t.Errorf("%s has no 403", op.ID)
			}
		}
	}
}

// A key with several roles may do what any of them may, on every call, and no more.
func TestRoles_Several(t *testing.T) {
	t.Parallel()
	for _, c := range allCalls(t) {
		leader, follower, _ := setupKeys(t, ofRoles(testKey("both"), "producer", "worker"))
		may := mayByContract(t, c, "producer") || mayByContract(t, c, "worker")
		for _, s := range []*Server{leader, follower} {
			got := s.call(t, targetOf(c), roleBody(targetOf(c), "operator"), with("both"))
			if refused := got.status == http.StatusUnauthorized || got.status == http.StatusForbidden; refused == may {
				t.Errorf("%s: %d %s", targetOf(c), got.status, got.body)
			}
			if !may && !strings.Contains(got.body, "this key has the roles producer and worker") {
				t.Errorf("%s: %s", targetOf(c), got.body)
			}
		}
	}
	_, follower, _ := setupKeys(t, ofRoles(testKey("both"), "reader", "producer"))
	f := follower.call(t, "POST /api/batch", `{"ops":[{"op":"submit","params":1},{"op":"claim","worker_id":"w","limit":1}]}`, with("both")).refused(t, wire.CodeForbidden)
	if f["field"] != "ops[1].op" || f["role"] != "worker" {
		t.Errorf("a batch: %v", f)
	}
	leader, _, _ := setupKeys(t, ofRoles(testKey("all"), "reader", "operator"))
	if name, ok := leader.Operator(keyText("all")); !ok || name != "all" {
		t.Errorf("an operator beside another role: %q %v", name, ok)
	}
}

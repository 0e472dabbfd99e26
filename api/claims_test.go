package api

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// TestServer_NoTasks checks that the 404 of a claim repeats the filters as sent.
func TestServer_NoTasks(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for body, filters := range map[string]string{
		`{"worker_id":"w"}`: `{}`,
		`{"worker_id":"w","lease_ms":100,"claim_request_id":"r"}`:    `{}`,
		`{"worker_id":"w","task_types":null,"sort_by":null}`:         `{}`,
		`{"worker_id":"w","task_types":[]}`:                          `{"task_types":[]}`,
		`{"worker_id":"w","task_types" : [ "b", "a","b" ]}`:          `{"task_types":[ "b", "a","b" ]}`,
		`{"sort_by":"created_at","worker_id":"w"}`:                   `{"sort_by":"created_at"}`,
		`{"worker_id":"w","sort_order":"DESC"}`:                      `{"sort_order":"DESC"}`,
		`{"worker_id":"w","sort_order":"Asc","task_types":["a"]}`:    `{"task_types":["a"],"sort_order":"Asc"}`,
		`{"worker_id":"w","sort_by":"priority","task_types":["a"]} `: `{"task_types":["a"],"sort_by":"priority"}`,
	} {
		got := s.call(t, "POST /api/tasks/claim", body, "X-Request-ID: r-1")
		want := `{"success":false,"error":"No pending tasks available","code":"no_pending_tasks","message":"No pending tasks available","request_id":"r-1","filters":` + filters + `}`
		if got.status != 404 || got.body != want {
			t.Errorf("%s: %d\n got %s\nwant %s", body, got.status, got.body, want)
		}
		if _, ok := got.header["X-Claimq-Index"]; !ok {
			t.Errorf("%s: no X-Claimq-Index", body)
		}
	}
}

// TestServer_ClaimOrder checks which tasks each order claims first.
func TestServer_ClaimOrder(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"limit":9,"worker_id":"w"}`:                                                            "2 4 1 3",
		`{"limit":9,"worker_id":"w","sort_order":"desc"}`:                                        "2 4 1 3",
		`{"limit":9,"worker_id":"w","sort_order":"asc","task_types":["a","b"]}`:                  "3 1 2 4",
		`{"limit":9,"worker_id":"w","sort_by":"created_at"}`:                                     "1 2 3 4",
		`{"limit":9,"worker_id":"w","sort_by":"created_at","sort_order":"ASC"}`:                  "1 2 3 4",
		`{"limit":9,"worker_id":"w","sort_by":"created_at","sort_order":"desc"}`:                 "4 3 2 1",
		`{"limit":9,"worker_id":"w","task_types":["b"]}`:                                         "2 4",
		`{"limit":2,"worker_id":"w"}`:                                                            "2 4",
		`{"limit":9,"worker_id":"w","task_types":["c"]}`:                                         "",
		`{"limit":1,"worker_id":"w","task_types":["a","a"],"sort_by":"` + `\u0070riority` + `"}`: "1",
	} {
		s, _ := setup(t)
		for _, task := range []string{`"a","priority":0`, `"b","priority":5`, `"a","priority":-1`, `"b","priority":5`} {
			submitOne(t, s, `{"params":0,"task_type":`+task+`}`)
		}
		got := s.call(t, "POST /api/tasks/claim", body)
		a := got.good(t, 200)
		if ids(a.Tasks) != want {
			t.Errorf("%s: took %s, want %s", body, ids(a.Tasks), want)
		}
		if !strings.Contains(got.body, `"tasks":[`) {
			t.Errorf("%s: no tasks in %s", body, got.body)
		}
	}
}

// TestServer_ClaimRepeated checks that a repeated claim_request_id gets the same tasks and tokens, each with the
// state of its claim.
func TestServer_ClaimRepeated(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for range 3 {
		submitOne(t, s, `{"params":0}`)
	}
	const body = `{"worker_id":"w","limit":2,"claim_request_id":"r","lease_ms":10000}`
	first := s.call(t, "POST /api/tasks/claim", body).good(t, 200)
	node.Advance(4000)
	s.call(t, "POST /api/tasks/1/release", `{"worker_id":"w","claim_token":1}`).good(t, 200)
	s.call(t, "POST /api/tasks/1/claim", `{"worker_id":"v"}`).good(t, 200)
	again := s.call(t, "POST /api/tasks/claim", body)
	a := again.good(t, 200)
	if first.Repeated || !a.Repeated || ids(a.Tasks) != ids(first.Tasks) {
		t.Fatalf("repeated: %s", again.body)
	}
	ended, live := a.Tasks[0], a.Tasks[1]
	if ended.ClaimState != "ended" || *ended.ClaimToken != 1 || ended.LeaseRemainingMS != nil || ended.LeaseExpiresAt != nil {
		t.Errorf("the ended claim: %s", again.body)
	}
	if live.ClaimState != "live" || *live.ClaimToken != 2 || *live.LeaseRemainingMS != 6000 {
		t.Errorf("the live claim: %s", again.body)
	}
	s.call(t, "POST /api/tasks/1/complete", `{"worker_id":"v"}`).good(t, 200)
	s.call(t, "DELETE /api/tasks/1", "").good(t, 200)
	again = s.call(t, "POST /api/tasks/claim", body)
	if !strings.Contains(again.body, `"tasks":[{"id":1,"claim_token":1,"claim_state":"ended"},{"id":2,"task_type":`) {
		t.Errorf("a deleted task: %s", again.body)
	}
	f := s.call(t, "POST /api/tasks/claim", `{"worker_id":"x","limit":2,"claim_request_id":"r"}`).refused(t, wire.CodeInvalidRequest)
	if f["field"] != "claim_request_id" || f["error"] != "The claim_request_id was used before for another request" {
		t.Errorf("another worker: %v", f)
	}
}

func TestServer_ClaimByID(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":0}`)
	a := s.call(t, "POST /api/tasks/1/claim", `{"worker_id":"w","lease_ms":1000,"claim_request_id":"r"}`).good(t, 200)
	if a.Task.Attempts != 1 || a.Repeated || a.Message != "Task claimed successfully" {
		t.Errorf("first: %+v", a)
	}
	node.Advance(600)
	a = s.call(t, "POST /api/tasks/1/claim", `{"worker_id":"w","lease_ms":1000}`).good(t, 200)
	if !a.Repeated || a.Task.Attempts != 1 || *a.Task.ClaimToken != 1 || *a.Task.LeaseRemainingMS != 1000 {
		t.Errorf("same worker again: %+v", a.Task)
	}
	got := s.call(t, "POST /api/tasks/1/claim", `{"worker_id":"v"}`, "X-Request-ID: r-1")
	want := `{"success":false,"error":"Task already claimed by another worker","code":"task_already_claimed","message":"Race condition detected, please retry","request_id":"r-1","task_id":1,"status":"claimed","worker_id":"w"}`
	if got.status != 409 || got.body != want || got.header["X-Claimq-Index"] == "" {
		t.Errorf("another worker: %d\n got %s\nwant %s", got.status, got.body, want)
	}
}

// TestServer_LeaseOverdue checks that an overdue lease has 0 left, not a negative time.
func TestServer_LeaseOverdue(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":0}`)
	s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","lease_ms":100}`).good(t, 200)
	node.Advance(250)
	task := s.call(t, "GET /api/tasks/1", "").good(t, 200).Task
	if *task.LeaseRemainingMS != 0 || task.LeaseExpiresAt.UnixMilli() != nodetest.Start+100 {
		t.Errorf("left %d, ends %s", *task.LeaseRemainingMS, task.LeaseExpiresAt)
	}
}

// TestServer_Commands checks each field of the commands that reach the state machine.
func TestServer_Commands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target, body string
		want         command.Command
	}{
		{
			"POST /api/tasks", `{"params":null,"payload":"AA==","task_type":null,"max_attempts":null,"idempotency_key":null,"priority":null,"lease_ms":null,"tasks":null}`,
			command.Submit{Tasks: []fsm.NewTask{{Type: "default", Payload: []byte{0}, MaxAttempts: fsm.DefaultAttempts}}},
		},
		{"POST /api/tasks", `{"params":{},"task_type":"A.b:c_d-0","max_attempts":0,"idempotency_key":"é","priority":2147483647,"lease_ms":86400000,"tasks":[{}]}`, nil},
		{
			"POST /api/tasks", `{"params":{},"task_type":"A.b:c_d-0","max_attempts":0,"idempotency_key":"\u00e9","priority":2147483647,"lease_ms":86400000}`,
			command.Submit{Tasks: []fsm.NewTask{{Type: "A.b:c_d-0", Params: []byte("{}"), Key: "é", Priority: 2147483647, LeaseMS: 86400000}}},
		},
		{"POST /api/tasks/claim", `{"worker_id":"w"}`, command.ClaimNext{WorkerID: "w", Limit: 1}},
		{
			"POST /api/tasks/claim", `{"worker_id":"w","task_types":["b","a","b"],"sort_order":"asc","limit":1000,"lease_ms":100,"claim_request_id":"r r"}`,
			command.ClaimNext{WorkerID: "w", Types: []string{"a", "b"}, Ascending: true, Limit: 1000, LeaseMS: 100, RequestID: "r r"},
		},
		{"POST /api/tasks/claim", `{"worker_id":"w","sort_by":"created_at"}`, command.ClaimNext{WorkerID: "w", Limit: 1, SortBy: command.SortCreatedAt, Ascending: true}},
		{"POST /api/tasks/7/claim", `{"worker_id":"w","lease_ms":5000,"claim_request_id":"r"}`, command.ClaimTask{ID: 7, WorkerID: "w", LeaseMS: 5000, RequestID: "r"}},
		{"POST /api/tasks/9007199254740991/complete", `{"worker_id":"w","claim_token":9007199254740991,"result":null}`, command.Complete{Hold: command.Hold{ID: 1<<53 - 1, WorkerID: "w", Token: 1<<53 - 1}}},
		{"POST /api/tasks/7/complete", `{"worker_id":"w","result":"x"}`, command.Complete{Hold: command.Hold{ID: 7, WorkerID: "w"}, Result: []byte(`"x"`)}},
		{"POST /api/tasks/7/complete", `{"worker_id":"w","result_payload":""}`, command.Complete{Hold: command.Hold{ID: 7, WorkerID: "w"}}},
		{"POST /api/tasks/7/complete", `{"worker_id":"w","result_payload":"/+8="}`, command.Complete{Hold: command.Hold{ID: 7, WorkerID: "w"}, ResultPayload: []byte{0xff, 0xef}}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","claim_token":3,"error":"a\n\"é"}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w", Token: 3}, Error: "a\n\"é"}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","error":"` + strings.Repeat("é", 8192) + `é"}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}, Error: strings.Repeat("é", 8192)}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","error":"x` + strings.Repeat("é", 8192) + `"}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}, Error: "x" + strings.Repeat("é", 8191)}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","error":""}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}}},
		{"POST /api/tasks/7/extend", `{"worker_id":"w","lease_ms":100}`, command.Extend{Hold: command.Hold{ID: 7, WorkerID: "w"}, LeaseMS: 100}},
		{"POST /api/tasks/7/release", `{"worker_id":"w","claim_token":1}`, command.Release{Hold: command.Hold{ID: 7, WorkerID: "w", Token: 1}}},
		{"POST /api/tasks/7/retry", ``, command.Retry{ID: 7}},
		{"POST /api/tasks/7/retry", ` {"claim_token":5,"add_attempts":2} `, command.Retry{ID: 7, Token: 5, AddAttempts: 2}},
		{"DELETE /api/tasks/7", ``, command.Delete{ID: 7}},
	} {
		s, node := setup(t)
		got := s.call(t, c.target, c.body, "Content-Type: application/x-www-form-urlencoded")
		if c.want == nil {
			if len(node.Proposed) != 0 || got.status != 400 {
				t.Errorf("%s %.100s: %d, proposed %v", c.target, c.body, got.status, node.Proposed)
			}
			continue
		}
		if len(node.Proposed) != 1 {
			t.Errorf("%s %.100s: nothing proposed: %s", c.target, c.body, got.body)
			continue
		}
		if diff := cmp.Diff(c.want, node.Proposed[0]); diff != "" {
			t.Errorf("%s %.100s: command (-want +got):\n%s", c.target, c.body, diff)
		}
	}
}

// TestServer_Repeats checks that repeats of calls that were done are marked as repeated.
func TestServer_Repeats(t *testing.T) {
	t.Parallel()
	for verb, body := range map[string]string{
		"complete": `{"worker_id":"w","claim_token":1,"result":1}`,
		"fail":     `{"worker_id":"w","claim_token":1,"error":"e"}`,
		"release":  `{"worker_id":"w","claim_token":1}`,
	} {
		s, _ := setup(t)
		submitOne(t, s, `{"params":0}`)
		claimOne(t, s, "w")
		first := s.call(t, "POST /api/tasks/1/"+verb, body).good(t, 200)
		again := s.call(t, "POST /api/tasks/1/"+verb, body).good(t, 200)
		if first.Repeated || !again.Repeated || again.Task.ID != 1 {
			t.Errorf("%s: repeated %v, then %v", verb, first.Repeated, again.Repeated)
		}
	}
	s, _ := setup(t)
	submitOne(t, s, `{"params":0}`)
	if a := s.call(t, "POST /api/tasks/1/retry", "").good(t, 200); !a.Repeated {
		t.Errorf("retry of a pending task: %+v", a)
	}
}

func TestServer_Stats(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":0,"task_type":"a"}`)
	submitOne(t, s, `{"params":0,"task_type":"b"}`)
	claimOne(t, s, "w")
	node.Advance(2500)
	got := s.call(t, "GET /api/stats", "")
	zero := func(pending, claimed int) string {
		return `{"pending":` + strconv.Itoa(pending) + `,"scheduled":0,"blocked":0,"claimed":` + strconv.Itoa(claimed) + `,"running":0,"completed":0,"failed":0,"cancelled":0}`
	}
	bytes := strconv.FormatInt(node.Machine.Bytes(), 10)
	want := `{"success":true,"index":3,"counts":` + zero(1, 1) + `,"types":{"a":` + zero(0, 1) + `,"b":` + zero(1, 0) + `},"types_left_out":0,"bytes":` + bytes + `,"oldest_pending_age_ms":2500}`
	if got.status != 200 || got.body != want || got.header["X-Claimq-Index"] != "3" {
		t.Errorf("%d\n got %s\nwant %s", got.status, got.body, want)
	}
}

func TestServer_Cluster(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	ahead := int64(-4)
	node.View = nodes.ClusterView{Leader: "n1", Term: 3, FeatureLevel: 1, Nodes: []nodes.NodeView{{
		NodeRecord: fsm.NodeRecord{UUID: "u", NodeID: "n1", PeerAddr: "p:1", HTTPAddr: "http://h:2", Version: "v"},
		Suffrage:   "voter", State: "leader", LastContactMS: 0, ClockAheadMS: &ahead, AppliedIndex: 9, Healthy: true,
		Room:  &nodes.NodeRoom{State: 10, StateMax: 40, DiskFree: 20, DiskMin: 5},
		Zones: &nodes.Zones{Version: "2026f", Sum: "0a"},
	}}}
	want := `{"success":true,"leader":"n1","term":3,"feature_level":1,"nodes":[{"node_id":"n1","uuid":"u","peer_addr":"p:1","http_addr":"http://h:2",` +
		`"suffrage":"voter","state":"leader","last_contact_ms":0,"clock_ahead_ms":-4,"applied_index":9,"version":"v","healthy":true,"problem":"","room":{"state_bytes":10,"state_limit_bytes":40,"disk_free_bytes":20,"disk_free_min_bytes":5},"time_zones":{"version":"2026f","sum":"0a"}}]}`
	if got := s.call(t, "GET /api/cluster", ""); got.status != 200 || got.body != want {
		t.Errorf("%d\n got %s\nwant %s", got.status, got.body, want)
	}
	node.View.Restoring = &fsm.Restoring{Begin: 7, Taken: 100, Bytes: 2000}
	if got := s.call(t, "GET /api/cluster", ""); !strings.HasSuffix(got.body, `"restore":{"index":7,"taken":100,"bytes":2000}}`) {
		t.Errorf("while a backup is restored: %s", got.body)
	}
	// Without a leader a node still returns its view.
	node.Follower, node.View.Leader = true, ""
	if got := s.call(t, "GET /api/cluster", ""); got.status != 200 || !strings.Contains(got.body, `"leader":""`) {
		t.Errorf("without a leader: %d %s", got.status, got.body)
	}
}

// Row "/remove": a member can be removed, unless that would harm the cluster or the name is invalid.
func TestRemoveNode(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	if got := s.call(t, "POST /api/cluster/remove", `{"node_id":"n3"}`); got.status != 200 || got.body != `{"success":true}` {
		t.Errorf("remove n3: %d %s", got.status, got.body)
	}
	if len(node.Removed) != 1 || node.Removed[0] != "n3" {
		t.Errorf("removed %v", node.Removed)
	}
	s.call(t, "POST /api/cluster/remove", `{"node_id":"n1"}`).refused(t, wire.CodeMembershipRefused)
	for _, body := range []string{`{}`, `{"node_id":null}`, `{"node_id":7}`, `{"node":"n3"}`, ``} {
		s.call(t, "POST /api/cluster/remove", body).refused(t, wire.CodeInvalidRequest)
	}
	if len(node.Removed) != 1 {
		t.Errorf("removed %v", node.Removed)
	}
}

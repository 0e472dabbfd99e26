package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// step is one call of a story, with the whole answer.
type step struct {
	target, body string
	advance      int64 // of the clocks, before the call
	status       int
	want         string
	part         string // in place of want: is in the answer
}

func follow(t *testing.T, s *Server, node *nodetest.Node, steps []step) {
	t.Helper()
	for _, st := range steps {
		node.Advance(st.advance)
		got := s.call(t, st.target, st.body, "X-Request-ID: r-1")
		if got.status != st.status {
			t.Fatalf("%s %s: status %d, want %d: %s", st.target, st.body, got.status, st.status, got.body)
		}
		if st.part != "" && strings.Contains(got.body, st.part) {
			st.want = got.body
		}
		if diff := cmp.Diff(st.want, got.body); diff != "" {
			t.Errorf("%s %s: answer (-want +got):\n%s", st.target, st.body, diff)
		}
		if got.header["X-Claimq-Index"] == "" {
			t.Errorf("%s: no X-Claimq-Index", st.target)
		}
	}
}

// Parts of many answers.
const (
	noon      = `"2026-03-01T12:00:00.000Z"`
	unclaimed = `"worker_id":null,"claim_token":null,"claimed_at":null,"lease_expires_at":null,"lease_remaining_ms":null,`
	since     = `"created_at":` + noon + `,"updated_at":` + noon + `,"completed_at":null,`
)

// TestServer_EveryField shows each field of a task, in the contract's order.
func TestServer_EveryField(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	head := `{"id":1,"task_type":"t","params":1,"priority":2,"max_attempts":5,"attempts":0,"idempotency_key":"k","unique":"active",`
	tail := `"run_at":"2026-03-01T12:00:05.000Z","expires_at":"2026-03-02T00:00:00.000Z","lease_ms":2000,` +
		`"backoff":{"initial_ms":1000,"max_ms":60000,"factor":1.5,"jitter":0.000001},"retention_ms":-1,"labels":{"a":"","b\"":"x:y"},"group":"g/1",`
	follow(t, s, node, []step{
		{
			target: "POST /api/tasks", status: 201,
			body: `{"params":1,"task_type":"t","priority":2,"max_attempts":5,"idempotency_key":"k","unique":"active","delay_ms":5000,"expires_at":"2026-03-02T01:00:00+01:00","lease_ms":2000,` +
				`"backoff":{"initial_ms":1000,"max_ms":60000,"factor":1.50,"jitter":0.000001},"retention_ms":-1,"labels":{"b\"":"x:y","a":""},"group":"g/1"}`,
			want: `{"success":true,"task":` + head + `"status":"scheduled",` + tail + unclaimed + since + `"cancel_requested":false},"created":true}`,
		},
		{
			target: "PATCH /api/tasks/1", body: `{"priority":null,"run_at":null,"labels":{"c":"d"}}`, status: 200,
			want: `{"success":true,"task":` + strings.Replace(head, `"priority":2`, `"priority":0`, 1) + `"status":"pending",` +
				strings.Replace(strings.Replace(tail, `"run_at":"2026-03-01T12:00:05.000Z",`, "", 1), `{"a":"","b\"":"x:y"}`, `{"c":"d"}`, 1) + unclaimed + since + `"cancel_requested":false}}`,
		},
	})
	for body, shown := range map[string]string{`0`: `,"retention_ms":0,`, `60000`: `,"retention_ms":60000,`} {
		if got := s.call(t, "POST /api/tasks", `{"params":1,"retention_ms":`+body+`}`); !strings.Contains(got.body, shown) {
			t.Errorf("retention_ms %s: %s", body, got.body)
		}
	}
}

// TestServer_CompleteAndClaim completes with follow-ups and the next claim, and repeats that.
func TestServer_CompleteAndClaim(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1,"idempotency_key":"k"}`)
	claimOne(t, s, "w")
	done := `{"id":1,"task_type":"default","params":1,"priority":0,"max_attempts":3,"attempts":1,"idempotency_key":"k","status":"completed",` +
		`"worker_id":"w","claim_token":1,"claimed_at":` + noon + `,"lease_expires_at":null,"lease_remaining_ms":null,"created_at":` + noon + `,"updated_at":` + noon + `,"completed_at":` + noon + `,"cancel_requested":false}`
	next := `{"id":2,"task_type":"default","params":2,"priority":0,"max_attempts":3,"attempts":1,"status":"claimed",` +
		`"worker_id":"w","claim_token":2,"claimed_at":` + noon + `,"lease_expires_at":"2026-03-01T12:00:30.000Z","lease_remaining_ms":30000,"created_at":` + noon + `,"updated_at":` + noon + `,"completed_at":null,"cancel_requested":false`
	submitted := `"submitted":[{"id":2,"created":true},{"id":1,"created":false,"same_request":false}]`
	body := `{"worker_id":"w","claim_token":1,"submit":[{"params":2},{"params":3,"idempotency_key":"k"}],"claim":{}}`
	follow(t, s, node, []step{
		{target: "POST /api/tasks/1/complete", body: body, status: 200, want: `{"success":true,"task":` + done + `,` + submitted + `,"claimed":{"task":` + next + `}}}`},
		{
			target: "POST /api/tasks/1/complete", body: body, status: 200,
			want: `{"success":true,"task":` + done + `,` + strings.Replace(submitted, `,"same_request":false`, "", 1) + `,"claimed":{"task":` + next + `,"claim_state":"live"}},"repeated":true}`,
		},
	})
	empty := s.call(t, "POST /api/tasks/2/complete", `{"worker_id":"w","claim":{"task_types":["none"]}}`)
	if empty.good(t, 200); !strings.HasSuffix(empty.body, `,"claimed":{"task":null}}`) {
		t.Errorf("nothing to claim: %s", empty.body)
	}
	submitOne(t, s, `{"params":4}`)
	claimOne(t, s, "w")
	many := s.call(t, "POST /api/tasks/3/complete", `{"worker_id":"w","submit":[{"params":5},{"params":6}],"claim":{"limit":3,"worker_id":"v"}}`).good(t, 200)
	if many.Claimed == nil || ids(many.Claimed.Tasks) != "4 5" || *many.Claimed.Tasks[0].WorkerID != "v" || len(many.Submitted) != 2 {
		t.Errorf("claim with limit: %+v", many)
	}
	none := s.call(t, "POST /api/tasks/4/complete", `{"worker_id":"v","claim":{"limit":3}}`)
	if none.good(t, 200); !strings.HasSuffix(none.body, `,"claimed":{"tasks":[]}}`) {
		t.Errorf("claim with limit of nothing: %s", none.body)
	}
	if plain := s.call(t, "POST /api/tasks/5/complete", `{"worker_id":"v"}`); strings.Contains(plain.body, "claimed\":{") || strings.Contains(plain.body, "submitted") {
		t.Errorf("plain: %s", plain.body)
	}
}

// TestServer_CompleteClaimRequestTaken names the claim_request_id of the claim
// within a complete.
func TestServer_CompleteClaimRequestTaken(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitOne(t, s, `{"params":1}`)
	submitOne(t, s, `{"params":2}`)
	s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","claim_request_id":"r"}`).good(t, 200)
	f := s.call(t, "POST /api/tasks/1/complete", `{"worker_id":"w","claim":{"claim_request_id":"r","limit":2}}`).refused(t, wire.CodeInvalidRequest)
	if f["field"] != "claim.claim_request_id" {
		t.Errorf("field %v", f["field"])
	}
	if task := s.call(t, "GET /api/tasks/1", "").good(t, 200).Task; task.Status != "claimed" {
		t.Errorf("the task is %s", task.Status)
	}
}

// TestServer_NeverClaimable ensures that a task that would expire before the end of its delay is refused in every
// call that submits, naming its path, and that a repeat is not.
func TestServer_NeverClaimable(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	const late, fine = `{"params":1,"delay_ms":5000,"expires_at":"2026-03-01T12:00:05Z"}`, `{"params":1,"delay_ms":4999,"expires_at":"2026-03-01T12:00:05Z","idempotency_key":"k"}`
	refused := func(within string) string {
		return `{"success":false,"error":"expires_at is not after the end of delay_ms: the task could never be claimed","code":"invalid_task",` +
			`"message":"Send an expires_at after the end of the delay, or leave it out","request_id":"r-1","field":"` + within + `expires_at"}`
	}
	item := func(within string) string {
		return strings.Replace(strings.TrimPrefix(refused(within), `{"success":false,`), `"request_id":"r-1",`, "", 1)
	}
	made := func(id string) string { return `{"id":` + id + `,"created":true}` }
	steps := `{"params":1,"steps":[{"step":"a","params":1},{"step":"b",` + late[1:] + `]}`
	follow(t, s, node, []step{
		{target: "POST /api/tasks", body: late, status: 400, want: refused("")},
		{target: "POST /api/tasks", body: steps, status: 400, want: refused("steps[1].")},
		{target: "POST /api/tasks", body: `{"tasks":[` + late + `]}`, status: 200, want: `{"success":true,"results":[{` + item("tasks[0].") + `],"failed":1}`},
		{
			target: "POST /api/tasks", body: `{"tasks":[` + fine + `,` + steps + `,{"params":1}]}`, status: 200,
			want: `{"success":true,"results":[` + made("1") + `,{` + item("tasks[1].steps[1].") + `,` + made("2") + `],"failed":1}`,
		},
		{
			target: "POST /api/batch", body: `{"ops":[{"op":"submit",` + late[1:] + `,{"op":"submit",` + fine[1:] + `],"return":"minimal"}`, status: 200, advance: 10_000,
			want: `{"success":true,"results":[` + refused("") + `,{"success":true,"task":{"id":1,"status":"scheduled"},"created":false}],"failed":1}`,
		},
		{
			target: "POST /api/batch", body: `{"atomic":true,"ops":[{"op":"submit","params":1},{"op":"submit",` + late[1:] + `]}`, status: 400,
			want: strings.TrimSuffix(refused(""), "}") + `,"failed_op":1}`,
		},
	})
	s.call(t, "POST /api/tasks/2/claim", `{"worker_id":"w"}`)
	follow(t, s, node, []step{
		{target: "POST /api/tasks/2/complete", body: `{"worker_id":"w","submit":[{"params":1},` + late + `]}`, status: 400, want: refused("submit[1].")},
	})
	if got := s.call(t, "GET /api/tasks/2", "").body; !strings.Contains(got, `"status":"claimed"`) {
		t.Errorf("a complete that was refused left the task as %s", got)
	}
}

func TestServer_CancelAndProgress(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitOne(t, s, `{"params":1}`)
	claimOne(t, s, "w")
	extend := func(body string) (string, wire.Answer) {
		a := s.call(t, "POST /api/tasks/1/extend", `{"worker_id":"w"`+body+`}`)
		return a.body, a.good(t, 200)
	}
	if body, a := extend(`,"progress": {"at": 1}`); !strings.Contains(body, `"progress":{"at": 1},"cancel_requested":false}`) || a.CancelRequested {
		t.Errorf("progress: %s", body)
	}
	if a := s.call(t, "POST /api/tasks/1/cancel", "").good(t, 200); !a.Task.CancelRequested || a.Task.Status != "claimed" {
		t.Errorf("cancel: %+v", a.Task)
	}
	if body, a := extend(""); !strings.HasSuffix(body, `"progress":{"at": 1},"cancel_requested":true},"lease_remaining_ms":30000,"cancel_requested":true}`) || !a.CancelRequested {
		t.Errorf("after the cancel: %s", body)
	}
	if a := s.call(t, "POST /api/tasks/1/release", `{"worker_id":"w"}`).good(t, 200); a.Task.Status != "cancelled" {
		t.Errorf("released: %+v", a.Task)
	}
	if a := s.call(t, "POST /api/tasks/1/cancel", "{}").good(t, 200); !a.Repeated {
		t.Errorf("again: %+v", a)
	}
}

// TestServer_Gone checks what is shown of a task that retention has removed.
func TestServer_Gone(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1,"idempotency_key":"k","retention_ms":0}`)
	claimOne(t, s, "w")
	if a := s.call(t, "POST /api/tasks/1/complete", `{"worker_id":"w","claim_token":1,"result":7}`).good(t, 200); string(a.Task.Result) != "7" {
		t.Errorf("complete: %+v", a.Task)
	}
	gone := `{"id":1,"idempotency_key":"k","status":"completed","worker_id":"w","claim_token":1}`
	follow(t, s, node, []step{
		{target: "POST /api/tasks/1/complete", body: `{"worker_id":"w","claim_token":1}`, status: 200, want: `{"success":true,"task":` + gone + `,"repeated":true}`},
		{target: "POST /api/tasks", body: `{"params":1,"idempotency_key":"k"}`, status: 200, want: `{"success":true,"task":` + gone + `,"created":false}`},
		{target: "POST /api/tasks", body: `{"tasks":[{"params":2,"idempotency_key":"k"}]}`, status: 200, want: `{"success":true,"results":[{"id":1,"created":false,"same_request":false}],"failed":0}`},
		{
			target: "POST /api/tasks/1/fail", body: `{"worker_id":"w","claim_token":1,"error":"e"}`, status: 409,
			want: `{"success":false,"error":"Task is already completed","code":"task_completed","message":"Nothing is left to do: the task has its result","request_id":"r-1","task_id":1,"status":"completed","worker_id":"w"}`,
		},
	})
	s.call(t, "GET /api/tasks/1", "").refused(t, wire.CodeTaskNotFound)
}

// TestServer_GoneWithoutClaim checks a removed task that was never claimed.
func TestServer_GoneWithoutClaim(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
		return nodes.Proposed{Result: fsm.Result{Gone: true, Repeated: true, Task: &fsm.Task{ID: 3, Status: fsm.StatusCancelled}}}, nil
	}
	want := `{"success":true,"task":{"id":3,"status":"cancelled","worker_id":null,"claim_token":null},"repeated":true}`
	if got := s.call(t, "POST /api/tasks/3/cancel", ""); got.body != want {
		t.Errorf("got %s\nwant %s", got.body, want)
	}
}

// TestServer_KeyTaken checks that the refusal names the task that has the key.
func TestServer_KeyTaken(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	body := `{"params":1,"idempotency_key":"k","unique":"active"}`
	submitOne(t, s, body)
	s.call(t, "POST /api/tasks/1/cancel", "").good(t, 200)
	submitOne(t, s, body)
	checkRefusal(t, s.call(t, "POST /api/tasks/1/retry", ""), wire.CodeKeyTaken, "The idempotency_key is taken by another task",
		"Retry this one once the task in task_id no longer has the key", `"task_id":2,"status":"pending","worker_id":null`)
}

// TestServer_Types sets, clears and shows a type's settings.
func TestServer_Types(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1,"task_type":"b"}`)
	counts := func(pending string) string {
		return `"counts":{"pending":` + pending + `,"scheduled":0,"blocked":0,"claimed":0,"running":0,"completed":0,"failed":0,"cancelled":0}`
	}
	still := `"submitted_per_s":0,"completed_per_s":0,"failed_per_s":0,` // the submit was more than a minute ago
	none := `"oldest_wait_ms":0,"oldest_pending_id":null,`
	unset := `"paused":false,"max_claimed":null,"max_claimed_per_key":null,"rate_limit_per_key":null,"fair":false,"rate_limit":null,"delay_ms":null,"dead_letter":null,"lease_ms":null,"max_attempts":null,"backoff":null,"retention_ms":null}`
	a := `{"task_type":"a:1",` + counts("0") + `,"oldest_pending_age_ms":0,` + still + none + `"paused":true,"max_claimed":3,"max_claimed_per_key":2,"rate_limit_per_key":null,"fair":true,"rate_limit":0.016667,"delay_ms":7,"dead_letter":{"task_type":"b","max_attempts":4},"lease_ms":5000,"max_attempts":0,` +
		`"backoff":{"initial_ms":10,"max_ms":3600000,"factor":2,"jitter":0.2},"retention_ms":-1}`
	all := `"all":{` + counts("1") + `,"oldest_pending_age_ms":90000,` + strings.TrimSuffix(still, ",") + `}`
	follow(t, s, node, []step{
		{
			target: "PATCH /api/types/a%3A1", status: 200, want: `{"success":true,"type":` + a + `}`,
			body: `{"paused":true,"max_claimed":3,"max_claimed_per_key":2,"rate_limit_per_key":null,"fair":true,"rate_limit":0.01666666666,"delay_ms":7,"dead_letter":{"task_type":"b","max_attempts":4},"lease_ms":5000,"max_attempts":0,"backoff":{"initial_ms":10},"retention_ms":-1}`,
		},
		{
			target: "GET /api/types", status: 200, advance: 90000,
			want: `{"success":true,"types":[` + a + `,{"task_type":"b",` + counts("1") + `,"oldest_pending_age_ms":90000,` + still + `"oldest_wait_ms":90000,"oldest_pending_id":1,` + unset + `],"total":2,"matched":2,"next":null,` + all + `}`,
		},
		{
			target: "GET /api/types?order=pending&limit=1&name=B", status: 200,
			want: `{"success":true,"types":[{"task_type":"b",` + counts("1") + `,"oldest_pending_age_ms":90000,` + still + `"oldest_wait_ms":90000,"oldest_pending_id":1,` + unset + `],"total":2,"matched":1,"next":null,` + all + `}`,
		},
		{
			target: "GET /api/types?attention=true&order=oldest&limit=1", status: 200,
			want: `{"success":true,"types":[{"task_type":"b",` + counts("1") + `,"oldest_pending_age_ms":90000,` + still + `"oldest_wait_ms":90000,"oldest_pending_id":1,` + unset + `],"total":2,"matched":2,"next":null,` + all + `}`,
		},
		{target: "GET /api/types?attention=false&name=none", status: 200, want: `{"success":true,"types":[],"total":2,"matched":0,"next":null,` + all + `}`},
		{
			target: "PATCH /api/types/a:1", body: `{"max_claimed":null,"max_claimed_per_key":null,"fair":null,"rate_limit":null,"retention_ms":0,"paused":false}`, status: 200,
			want: `{"success":true,"type":` + strings.NewReplacer(`"paused":true,"max_claimed":3,"max_claimed_per_key":2,"rate_limit_per_key":null,"fair":true,"rate_limit":0.016667`, `"paused":false,"max_claimed":null,"max_claimed_per_key":null,"rate_limit_per_key":null,"fair":false,"rate_limit":null`, `"retention_ms":-1`, `"retention_ms":0`).Replace(a) + `}`,
		},
		{
			target: "PATCH /api/types/a:1", body: `{"delay_ms":null,"dead_letter":null,"lease_ms":null,"max_attempts":null,"backoff":null,"retention_ms":null}`, status: 200,
			want: `{"success":true,"type":{"task_type":"a:1",` + counts("0") + `,"oldest_pending_age_ms":0,` + still + none + unset + `}`,
		},
	})
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
		return nodes.Proposed{Result: fsm.Result{Code: fsm.CodeInvalidRequest}}, nil
	}
	checkRefusal(t, s.call(t, "PATCH /api/types/a", `{"paused":true}`), wire.CodeInvalidRequest, "Too many task types have settings",
		"Clear the settings of types that are no longer used, by null in each field", "")
}

// TestServer_Shares sets, lists and removes settings of shares.
func TestServer_Shares(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for _, key := range []string{"ann", "b/é", "b/é", "cleo", "cleo", "cleo"} {
		submitOne(t, s, `{"params":1,"task_type":"b","share_key":"`+key+`"}`)
	}
	share := func(key, pending, claimed, oldest, state, opensAt, settings string) string {
		return `{"share_key":"` + key + `","pending":` + pending + `,"claimed":` + claimed + `,"oldest_wait_ms":` + oldest + `,"state":"` + state + `","opens_at":` + opensAt + `,` + settings + `}`
	}
	unset := `"paused":false,"max_claimed":null,"weight":100,"rate_limit":null`
	ann := share("ann", "1", "0", "0", "paused", "null", `"paused":true,"max_claimed":null,"weight":100,"rate_limit":null`)
	be := share("b/é", "1", "1", "0", "limited", "null", `"paused":false,"max_claimed":1,"weight":300,"rate_limit":null`)
	cleo := share("cleo", "2", "1", "0", "rate_limited", `"2026-03-01T12:00:02.000Z"`, `"paused":false,"max_claimed":null,"weight":100,"rate_limit":0.5`)
	dan := share("dan", "0", "0", "0", "open", "null", `"paused":false,"max_claimed":null,"weight":7,"rate_limit":null`)
	follow(t, s, node, []step{
		{target: "PUT /api/types/b/shares/ann", body: `{"paused":true}`, status: 200, want: `{"success":true,"share":` + ann + `}`},
		{
			target: "PUT /api/types/b/shares/b%2F%C3%A9", body: `{"max_claimed":1,"weight":300}`, status: 200,
			want: `{"success":true,"share":` + share("b/é", "2", "0", "0", "open", "null", `"paused":false,"max_claimed":1,"weight":300,"rate_limit":null`) + `}`,
		},
		{
			target: "PUT /api/types/b/shares/cleo", body: `{"rate_limit":0.5}`, status: 200,
			want: `{"success":true,"share":` + share("cleo", "3", "0", "0", "open", "null", `"paused":false,"max_claimed":null,"weight":100,"rate_limit":0.5`) + `}`,
		},
		{target: "PUT /api/types/b/shares/dan", body: `{"weight":7}`, status: 200, want: `{"success":true,"share":` + dan + `}`},
		{target: "POST /api/tasks/2/claim", body: `{"worker_id":"w"}`, status: 200, part: `"id":2`},
		{target: "POST /api/tasks/4/claim", body: `{"worker_id":"w"}`, status: 200, part: `"id":4`},
		{target: "GET /api/types/b/shares", status: 200, want: `{"success":true,"shares":[` + ann + `,` + be + `,` + cleo + `,` + dan + `],"next":null}`},
		{target: "GET /api/types/b/shares?limit=2", status: 200, want: `{"success":true,"shares":[` + ann + `,` + be + `],"next":"b/é"}`},
		{target: "GET /api/types/b/shares?limit=2&after=b%2F%C3%A9", status: 200, want: `{"success":true,"shares":[` + cleo + `,` + dan + `],"next":null}`},
		{target: "GET /api/types/b/shares?order=pending&limit=2", status: 200, want: `{"success":true,"shares":[` + cleo + `,` + ann + `],"next":null}`},
		{target: "GET /api/types/none/shares", status: 200, want: `{"success":true,"shares":[],"next":null}`},
		{target: "POST /api/tasks/claim", body: `{"worker_id":"w","task_types":["b"]}`, status: 404, part: `no_pending_tasks`},
		{target: "POST /api/tasks/5/claim", body: `{"worker_id":"w"}`, status: 409, part: `"reason":"share_rate_limited"`},
		{target: "POST /api/tasks/3/claim", body: `{"worker_id":"w"}`, status: 409, part: `"reason":"share_limit_reached"`},
		{target: "GET /api/tasks/1/why", status: 200, part: `"reasons":[{"code":"share_paused","message":"The share key ann of the type b is paused","share_key":"ann"}]`},
		{target: "GET /api/tasks/3/why", status: 200, part: `"reasons":[{"code":"share_limit_reached","message":"As many tasks of the share key b/é of the type b are claimed as its max_claimed, or the type's max_claimed_per_key, allows","share_key":"b/é","holders":[{"task_id":2,"worker_id":"w"}]}]`},
		{target: "GET /api/tasks/5/why", status: 200, part: `"reasons":[{"code":"share_rate_limited","message":"The share key cleo of the type b has used its rate_limit, or the type's rate_limit_per_key, up until 2026-03-01T12:00:02.000Z","share_key":"cleo","at":"2026-03-01T12:00:02.000Z"}]`},
		{target: "DELETE /api/types/b/shares/ann", status: 200, want: `{"success":true,"share":` + share("ann", "1", "0", "0", "open", "null", unset) + `}`},
		{target: "DELETE /api/types/b/shares/nobody", status: 200, want: `{"success":true,"share":` + share("nobody", "0", "0", "0", "open", "null", unset) + `}`},
		{target: "GET /api/events?event=share_changed&limit=1", status: 200, part: `"message":"b ann"`},
	})
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
		return nodes.Proposed{Result: fsm.Result{Code: fsm.CodeInvalidRequest}}, nil
	}
	checkRefusal(t, s.call(t, "PUT /api/types/a/shares/ann", `{"paused":true}`), wire.CodeInvalidRequest, "10000 shares have settings already",
		"Delete the settings of shares that are no longer used", "")
}

// TestServer_Upgrade raises the feature level, and checks refusals.
func TestServer_Upgrade(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	level := fmt.Sprint(fsm.FeatureLevel())
	for _, body := range []string{"", "{}"} {
		if got := s.call(t, "POST /api/cluster/upgrade", body); got.status != 200 || got.body != `{"success":true,"feature_level":`+level+`}` {
			t.Errorf("%q: %d %s", body, got.status, got.body)
		}
	}
	node.View = nodes.ClusterView{FeatureLevel: 1, Nodes: []nodes.NodeView{
		{NodeRecord: fsm.NodeRecord{NodeID: "n1", Version: "v2", Level: 9}, State: "leader"},
		{NodeRecord: fsm.NodeRecord{NodeID: "n2", Version: "v1", Level: 4}, State: "unknown"},
	}}
	want := `{"success":true,"feature_level":1,"would_be":` + level + `,"nodes":[{"node_id":"n1","version":"v2","feature_level":9,"answers":true},{"node_id":"n2","version":"v1","feature_level":4,"answers":false}]}`
	if got := s.call(t, "POST /api/cluster/upgrade", `{"dry_run":true}`); got.status != 200 || got.body != want {
		t.Errorf("dry run: %d %s", got.status, got.body)
	}
	node.UpgradeErr = &nodes.MembershipRefused{Reason: "n3 cannot be asked", Advice: "Start it"}
	checkRefusal(t, s.call(t, "POST /api/cluster/upgrade", ""), wire.CodeMembershipRefused, "n3 cannot be asked", "Start it", "")
	node.UpgradeErr = nodes.ErrOutcomeUnknown
	s.call(t, "POST /api/cluster/upgrade", "").refused(t, wire.CodeOutcomeUnknown)
}

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// finalized is a story about a task with two steps, a and b, and a processor: the calls sent to /api/tasks/1/,
// possibly preceded by others.
type finalized struct {
	name   string
	parent string   // fields of the parent besides its steps
	before []string // as METHOD PATH BODY
	call   string   // "" = finalization/claim
	body   string   // "" = {"processor_id":"p"}
	want   string   // in the answer, without success
	reason string   // of the last recorded attempt, "-" = none
}

// Calls in stories. Task 1 has the steps 2 and 3.
const (
	doneA     = `POST /api/tasks/claim {"worker_id":"w"}` + "\n" + `POST /api/tasks/2/complete {"worker_id":"w","result":{"n": 1}}`
	failA     = `POST /api/tasks/claim {"worker_id":"w"}` + "\n" + `POST /api/tasks/2/fail {"worker_id":"w","error":"no","permanent":true}`
	doneB     = `POST /api/tasks/claim {"worker_id":"w"}` + "\n" + `POST /api/tasks/3/complete {"worker_id":"w"}`
	heldByP   = `POST /api/tasks/1/finalization/claim {"processor_id":"p"}`
	heldByQ   = `POST /api/tasks/1/finalization/claim {"processor_id":"q.1","timeout_seconds":10}`
	endedByP  = `POST /api/tasks/1/finalize {"processor_id":"p","outcome":"completed","result":[1]}`
	endedByQ  = `POST /api/tasks/1/finalize {"processor_id":"q.1","outcome":"failed","error":"bad"}`
	cancelled = `POST /api/tasks/1/cancel {}`
	later     = "later "    // 10 s: q's claim has ended
	overdue   = "overdue "  // and its margin
	rested    = "rested "   // 10 days
	forgotten = "forgotten" // 20 days
)

func finalizationStories() []finalized {
	const yes = `"claimed":true,"already_claimed_by":"p","task_state":"%s","message":"%s","claim_token":%d`
	no := func(by, state, message string) string {
		if by != "null" {
			by = `"` + by + `"`
		}
		return `"claimed":false,"already_claimed_by":` + by + `,"task_state":"` + state + `","message":"` + message + `","claim_token":null`
	}
	const claimed, extended, held = "Successfully claimed for finalization", "Claim extended", "Task already claimed for finalization"
	const done, unknown, early = "Task already complete", "Task not found", "Task has no completed or failed steps"
	byClaim := `"finalize":"claim",`
	continued := byClaim + `"on_step_failure":"continue",`
	return []finalized{
		{name: "no step has ended", before: nil, want: no("null", "waiting_for_steps", early), reason: "not_ready"},
		{name: "a step was cancelled", parent: continued, before: []string{`POST /api/tasks/2/cancel {}`}, want: no("null", "waiting_for_steps", early), reason: "not_ready"},
		{name: "all steps were cancelled", parent: byClaim, before: []string{`POST /api/tasks/2/cancel {}`}, want: no("null", "evaluating_results", early), reason: "not_ready"},
		{name: "a step has completed", before: []string{doneA}, want: fmt.Sprintf(yes, "waiting_for_steps", claimed, 2), reason: ""},
		{name: "a step has failed", parent: continued, before: []string{failA}, want: fmt.Sprintf(yes, "waiting_for_steps", claimed, 2), reason: ""},
		{name: "all steps have ended", parent: byClaim, before: []string{failA}, want: fmt.Sprintf(yes, "evaluating_results", claimed, 2), reason: ""},
		{name: "the same processor again", before: []string{doneA, heldByP}, want: fmt.Sprintf(yes, "waiting_for_steps", extended, 2), reason: ""},
		{name: "held by another", before: []string{doneA, heldByQ}, want: no("q.1", "waiting_for_steps", held), reason: "already_claimed"},
		{name: "held by another whose time is not quite over", before: []string{doneA, heldByQ, later}, want: no("q.1", "waiting_for_steps", held), reason: "already_claimed"},
		{name: "held by another who died", before: []string{doneA, heldByQ, overdue}, want: fmt.Sprintf(yes, "waiting_for_steps", claimed, 3), reason: ""},
		{name: "released", before: []string{doneA, heldByQ, `POST /api/tasks/1/finalization/release {"processor_id":"q.1"}`}, want: fmt.Sprintf(yes, "waiting_for_steps", claimed, 3), reason: ""},
		{name: "ended by itself", before: []string{doneA, doneB}, want: no("null", "complete", done), reason: "already_complete"},
		{name: "failed by itself", before: []string{failA}, want: no("null", "failed", done), reason: "already_complete"},
		{name: "held when it ended by itself", before: []string{doneA, heldByQ, doneB}, want: no("null", "complete", done), reason: "already_complete"},
		{name: "finalized as completed", parent: byClaim, before: []string{doneA, doneB, endedByP}, want: no("null", "complete", done), reason: "already_complete"},
		{name: "finalized as failed", parent: byClaim, before: []string{doneA, doneB, endedByQ}, want: no("null", "failed", done), reason: "already_complete"},
		{name: "cancelled", before: []string{doneA, heldByQ, cancelled}, want: no("null", "cancelled", done), reason: "already_complete"},
		{name: "removed since it ended", before: []string{doneA, doneB, rested}, want: no("null", "complete", done), reason: "-"},
		{name: "removed long ago", before: []string{doneA, doneB, rested, forgotten}, want: no("null", "not_found", unknown), reason: "-"},
		{name: "deleted", before: []string{doneA, doneB, `DELETE /api/tasks/1 `}, want: no("null", "not_found", unknown), reason: "-"},
		{name: "a step itself", before: []string{doneA}, call: "../2/finalization/claim", want: no("null", "completed", early), reason: "-"},
		{name: "a task that is not there", call: "../9/finalization/claim", want: no("null", "not_found", unknown), reason: "-"},

		{name: "extend by the holder", before: []string{doneA, heldByP}, call: "finalization/extend", want: `"extended":true`},
		{name: "extend by another", before: []string{doneA, heldByQ}, call: "finalization/extend", want: `"extended":false`},
		{name: "extend too late", before: []string{doneA, heldByQ, overdue}, call: "finalization/extend", body: `{"processor_id":"q.1","timeout_seconds":60}`, want: `"extended":false`},
		{name: "extend without a claim", before: []string{doneA}, call: "finalization/extend", want: `"extended":false`},
		{name: "extend after the end", parent: byClaim, before: []string{doneA, doneB, heldByP, endedByP}, call: "finalization/extend", want: `"extended":false`},
		{name: "extend of no task", call: "../9/finalization/extend", want: `"extended":false`},
		{name: "extend of a task without steps", call: "../2/finalization/extend", want: `"extended":false`},
		{name: "release by the holder", before: []string{doneA, heldByP}, call: "finalization/release", want: `"released":true`},
		{name: "release twice", before: []string{doneA, heldByP, `POST /api/tasks/1/finalization/release {"processor_id":"p"}`}, call: "finalization/release", want: `"released":false`},
		{name: "release by another", before: []string{doneA, heldByQ}, call: "finalization/release", want: `"released":false`},
		{name: "release too late", before: []string{doneA, heldByQ, overdue}, call: "finalization/release", body: `{"processor_id":"q.1"}`, want: `"released":false`},
		{name: "release by who finalized it", parent: byClaim, before: []string{doneA, doneB, endedByP}, call: "finalization/release", want: `"released":true`},
		{name: "release by who did not", parent: byClaim, before: []string{doneA, doneB, endedByQ}, call: "finalization/release", want: `"released":false`},
		{name: "release of what ended by itself", before: []string{doneA, heldByP, doneB}, call: "finalization/release", want: `"released":false`},
		{name: "release of no task", call: "../9/finalization/release", want: `"released":false`},
		{name: "release of a task without steps", call: "../2/finalization/release", want: `"released":false`},
	}
}

// tell performs the calls of a story.
func tell(t *testing.T, s *Server, node *nodetest.Node, before []string) {
	t.Helper()
	for _, b := range before {
		for call := range strings.SplitSeq(b, "\n") {
			switch call {
			case later:
				node.Advance(10_000)
				continue
			case overdue:
				node.Advance(10_007)
				continue
			case rested, forgotten:
				node.Advance(86_400_000)
				if _, err := node.Apply(command.Tick{}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			method, rest, _ := strings.Cut(call, " ")
			path, body, _ := strings.Cut(rest, " ")
			if a := s.call(t, method+" "+path, body); a.status >= 300 || strings.Contains(a.body, `"claimed":false`) {
				t.Fatalf("%s: %s", call, a.body)
			}
		}
	}
}

// twoSteps submits a task with two steps; fields are further ones, ending with a comma.
func twoSteps(t *testing.T, s *Server, fields string) {
	t.Helper()
	if id := submitOne(t, s, `{`+fields+`"steps":[{"step":"a","params":1},{"step":"b","params":2}]}`); id != 1 {
		t.Fatalf("it has the id %d", id)
	}
}

// TestServer_Finalization checks every message, state and reason of a claim, and the results of extends and releases,
// on the leader and through a follower.
func TestServer_Finalization(t *testing.T) {
	t.Parallel()
	for _, c := range finalizationStories() {
		for _, through := range []string{"the leader", "a follower"} {
			t.Run(c.name+" through "+through, func(t *testing.T) {
				t.Parallel()
				follower, s, _, node := setupPair(t)
				twoSteps(t, s, c.parent)
				tell(t, s, node, c.before)
				if through == "the leader" {
					follower = s
				}
				call, body := c.call, c.body
				if call == "" {
					call = "finalization/claim"
				}
				if body == "" {
					body = `{"processor_id":"p"}`
				}
				target := "/api/tasks/1/" + call
				if rest, ok := strings.CutPrefix(call, "../"); ok {
					target = "/api/tasks/" + rest
				}
				got := follower.call(t, "POST "+target, body)
				if want := `{"success":true,` + c.want + `}`; got.status != 200 || got.body != want {
					t.Errorf("%d\n got %s\nwant %s", got.status, got.body, want)
				}
				if got.header["X-Claimq-Index"] != fmt.Sprint(node.Machine.Index()) {
					t.Errorf("X-Claimq-Index %q", got.header["X-Claimq-Index"])
				}
				if strings.HasSuffix(target, "/claim") {
					checkAttempt(t, follower, target, got.body, c.reason)
				}
			})
		}
	}
}

// checkAttempt checks the recorded attempt of a claim that was answered with body.
func checkAttempt(t *testing.T, s *Server, target, body, reason string) {
	t.Helper()
	a := s.call(t, "GET "+strings.TrimSuffix(target, "/claim"), "")
	if a.status == 404 && reason == "-" {
		return
	}
	var v wire.Finalization
	var claim wire.FinalizationClaimed
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != 200 {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	if err := json.Unmarshal([]byte(body), &claim); err != nil {
		t.Fatal(err)
	}
	if reason == "-" {
		if want := `{"success":true,"attempts":[],"claimed_by":null,"claim_expires_at":null}`; a.body != want {
			t.Errorf("of a task without steps: %s", a.body)
		}
		return
	}
	last := v.Attempts[len(v.Attempts)-1]
	want := wire.FinalizationAttempt{
		ProcessorID: "p", Claimed: claim.Claimed, AlreadyClaimedBy: claim.AlreadyClaimedBy, TaskState: claim.TaskState, Message: claim.Message, AttemptedAt: last.AttemptedAt,
	}
	if reason != "" {
		want.Reason = &reason
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("the attempt (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(claim.AlreadyClaimedBy, v.ClaimedBy); diff != "" {
		t.Errorf("claimed_by (-want +got):\n%s", diff)
	}
	if (v.ClaimedBy == nil) != (v.ClaimExpiresAt == nil) {
		t.Errorf("claim_expires_at: %s", a.body)
	}
}

// TestServer_FinalizationTimes checks when a claim ends and what extends it.
func TestServer_FinalizationTimes(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	twoSteps(t, s, "")
	tell(t, s, node, []string{doneA})
	const path, attempts = "/api/tasks/1/finalization", `{"success":true,"attempts":[{"processor_id":"p","claimed":true,"already_claimed_by":"p","reason":null,"task_state":"waiting_for_steps","message":"Successfully claimed for finalization","attempted_at":` + noon + `}],`
	until := func(at string) string {
		return attempts + `"claimed_by":"p","claim_expires_at":"2026-03-01T12:00:` + at + `Z"}`
	}
	yes := func(done string) string { return `{"success":true,"` + done + `":true}` }
	follow(t, s, node, []step{
		{target: "GET " + path, status: 200, want: `{"success":true,"attempts":[],"claimed_by":null,"claim_expires_at":null}`},
		{
			target: "POST " + path + "/claim", body: `{"processor_id":"p","timeout_seconds":20}`, status: 200,
			want: `{"success":true,"claimed":true,"already_claimed_by":"p","task_state":"waiting_for_steps","message":"Successfully claimed for finalization","claim_token":2}`,
		},
		{target: "GET " + path, status: 200, want: until("20.000"), advance: 5_000},
		{target: "POST " + path + "/extend", body: `{"processor_id":"p","timeout_seconds":40}`, status: 200, want: yes("extended")},
		{target: "GET " + path, status: 200, want: until("45.000")},
		{target: "POST " + path + "/extend", body: `{"processor_id":"p"}`, status: 200, want: yes("extended"), advance: 1_000},
		{target: "GET " + path, status: 200, want: until("46.000")}, // for the length of its last extend
		{target: "POST " + path + "/extend", body: `{"processor_id":"p","timeout_seconds":1}`, status: 200, want: yes("extended")},
		{target: "GET " + path, status: 200, want: until("46.020")}, // not shortened: it now uses part of the margin of 40 s
		{target: "POST " + path + "/release", body: `{"processor_id":"p"}`, status: 200, want: yes("released")},
		{target: "GET " + path, status: 200, want: attempts + `"claimed_by":null,"claim_expires_at":null}`},
	})
}

// TestServer_Finalize ends tasks, and checks refusals.
func TestServer_Finalize(t *testing.T) {
	t.Parallel()
	const byClaim, failedBy = `"finalize":"claim",`, `{"processor_id":"p","outcome":"failed","error":"e"}`
	const completedBy = `{"processor_id":"p","outcome":"completed","result":{"n": 1}}`
	done := func(action string, already bool) string {
		return fmt.Sprintf(`{"success":true,"action":"%s","already_finalized":%v,"task":{"id":1,"task_type":"default",`, action, already)
	}
	const stepsShown = `"steps":[{"step":"a","id":2,"task_type":"default","status":"completed","depends_on":[]},{"step":"b","id":3,"task_type":"default","status":"completed","depends_on":[]}],"finalize":"claim"`
	for _, c := range []struct {
		name, parent string
		before       []string
		path, body   string
		status       int
		parts        []string // parts of the answer
	}{
		{"completed", byClaim, []string{doneA, doneB}, "", completedBy, 200, []string{done("completed", false), `"status":"completed"`, `"worker_id":"p","claim_token":null`, `"result":{"n": 1}`, stepsShown}},
		{"completed without a result", byClaim, []string{doneA, doneB}, "", `{"processor_id":"p","outcome":"completed"}`, 200, []string{done("completed", false), `"status":"completed"`}},
		{"failed", byClaim, []string{doneA, doneB}, "", failedBy, 200, []string{done("failed", false), `"status":"failed"`, `"error":"e"`, stepsShown}},
		{"failed without an error", byClaim, []string{doneA, doneB}, "", `{"processor_id":"p","outcome":"failed"}`, 200, []string{done("failed", false), `"status":"failed"`}},
		{"with its claim", byClaim, []string{doneA, doneB, heldByP}, "", `{"processor_id":"p","outcome":"completed","claim_token":3}`, 200, []string{done("completed", false), `"worker_id":"p","claim_token":3`}},
		{"without its token", byClaim, []string{doneA, doneB, heldByP}, "", completedBy, 200, []string{done("completed", false), `"worker_id":"p","claim_token":3`}},
		{"all steps cancelled", byClaim, []string{`POST /api/tasks/2/cancel {}`}, "", failedBy, 200, []string{done("failed", false)}},
		{"twice", byClaim, []string{doneA, doneB, endedByP}, "", failedBy, 200, []string{done("completed", true), `"result":[1]`, `"worker_id":"p"`}},
		{"after another", byClaim, []string{doneA, doneB, endedByQ}, "", completedBy, 200, []string{done("failed", true), `"error":"bad"`, `"worker_id":"q.1"`}},
		{"after another, with a stale token", byClaim, []string{doneA, doneB, endedByQ}, "", `{"processor_id":"p","outcome":"completed","claim_token":9}`, 200, []string{done("failed", true)}},
		{"after it ended by itself", "", []string{doneA, doneB}, "", failedBy, 200, []string{done("completed", true), `"result":{"a":{"n": 1},"b":null}`, `"worker_id":null`}},
		{"after it was cancelled", byClaim, []string{cancelled}, "", completedBy, 200, []string{done("cancelled", true)}},
		{"after it was removed", "", []string{doneA, doneB, rested}, "", completedBy, 200, []string{`{"success":true,"action":"completed","already_finalized":true,"task":{"id":1,"status":"completed","worker_id":null,"claim_token":null}}`}},
		{"after another's claim has ended", byClaim, []string{doneA, doneB, heldByQ, overdue}, "", completedBy, 200, []string{done("completed", false), `"claim_token":null`}},

		{"held by another", byClaim, []string{doneA, doneB, heldByQ}, "", completedBy, 409, []string{
			`"error":"Task already claimed for finalization","code":"task_already_claimed","message":"Leave it to the processor in worker_id, or wait until its claim has ended"`, `"task_id":1,"status":"running","worker_id":"q.1"`,
		}},
		{"steps not ended", byClaim, []string{doneA}, "", completedBy, 409, []string{
			`"error":"The task has steps that have not ended","code":"steps_unfinished","message":"Wait until all of its steps have ended, then finalize it"`, `"task_id":1,"status":"running","worker_id":null`,
		}},
		{"steps not ended, with its claim", byClaim, []string{doneA, heldByP}, "", completedBy, 409, []string{`"code":"steps_unfinished"`, `"worker_id":"p"`}},
		{"an old token", byClaim, []string{doneA, doneB, heldByP}, "", `{"processor_id":"p","outcome":"completed","claim_token":2}`, 409, []string{`"error":"Claim is no longer valid","code":"stale_claim"`, `"worker_id":"p"`}},
		{"a token without a claim", byClaim, []string{doneA, doneB}, "", `{"processor_id":"p","outcome":"completed","claim_token":1}`, 409, []string{`"code":"stale_claim"`, `"worker_id":null`}},
		{"a token of a claim whose time is over", byClaim, []string{doneA, doneB, heldByQ, overdue}, "", `{"processor_id":"q.1","outcome":"completed","claim_token":3}`, 409, []string{`"code":"stale_claim"`}},
		{"another's claim before the token", byClaim, []string{doneA, doneB, heldByQ}, "", `{"processor_id":"p","outcome":"completed","claim_token":9}`, 409, []string{`"code":"task_already_claimed"`}},
		{"the token before the steps", byClaim, []string{doneA}, "", `{"processor_id":"p","outcome":"completed","claim_token":9}`, 409, []string{`"code":"stale_claim"`}},
		{"another's claim before the steps", byClaim, []string{doneA, heldByQ}, "", completedBy, 409, []string{`"code":"task_already_claimed"`}},
		{"a step", "", nil, "/api/tasks/2/finalize", completedBy, 409, []string{
			`"error":"Task has no steps","code":"task_not_claimable","message":"Settle it as any task: only a task with steps is finalized"`, `"task_id":2,"status":"pending","worker_id":null,"reason":"no_steps"`,
		}},
		{"no task", "", nil, "/api/tasks/9/finalize", completedBy, 404, []string{`"error":"Task not found","code":"task_not_found"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			follower, s, _, node := setupPair(t)
			twoSteps(t, s, c.parent)
			tell(t, s, node, c.before)
			path := c.path
			if path == "" {
				path = "/api/tasks/1/finalize"
			}
			got := follower.call(t, "POST "+path, c.body)
			if got.status != c.status || got.header["X-Claimq-Index"] != fmt.Sprint(node.Machine.Index()) {
				t.Fatalf("status %d, index %q: %s", got.status, got.header["X-Claimq-Index"], got.body)
			}
			for _, part := range c.parts {
				if !strings.Contains(got.body, part) {
					t.Errorf("%s\n is not in %s", part, got.body)
				}
			}
			if again := s.call(t, "POST "+path, c.body); c.status == 200 && !strings.Contains(again.body, `"already_finalized":true`) {
				t.Errorf("again: %s", again.body)
			}
		})
	}
}

// TestServer_FinalizeEvents checks that the trail can be filtered by a processor whose id is not valid for workers.
func TestServer_FinalizeEvents(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	twoSteps(t, s, `"finalize":"claim",`)
	tell(t, s, node, []string{doneA, doneB, heldByQ, endedByQ})
	var page wire.Events
	got := s.call(t, "GET /api/events?worker_id=q.1", "")
	if err := json.Unmarshal([]byte(got.body), &page); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range page.Events {
		kinds = append(kinds, fmt.Sprintf("%s %d %s", e.Event, *e.ClaimToken, e.Message))
		if e.Attempt != nil { // a parent is never claimed
			t.Errorf("%s is of attempt %d", e.Event, *e.Attempt)
		}
	}
	if diff := cmp.Diff([]string{"finalization_claimed 3 ", "finalized 3 failed", "failed 3 bad"}, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := ids(s.call(t, "GET /api/tasks?worker_id=q.1", "").good(t, 200).Tasks); got != "1" {
		t.Errorf("tasks of the processor: %s", got)
	}
	if got := s.acted(t, `{"action":"delete","filter":{"worker_id":"q.1"}}`); got != `"matched":1,"done":1` {
		t.Errorf("action: %s", got)
	}
}

// TestServer_Level checks the answer of a cluster whose feature level is too low.
func TestServer_Level(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
		return nodes.Proposed{}, nodes.ErrLevel
	}
	for _, target := range []string{"POST /api/tasks/1/finalization/claim", "POST /api/tasks/1/finalize", "POST /api/tasks"} {
		body := goodBodies[target]
		if target == "POST /api/tasks" {
			body = `{"params":1}`
		}
		checkRefusal(t, s.call(t, target, body), wire.CodeInvalidRequest, "The cluster's feature level is too low for this request", "Once all nodes run the new version, run claimq cluster upgrade --finalize", "")
	}
}

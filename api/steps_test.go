package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// plainStep is a step as submitted with only params 1.
func plainStep(name string, dependsOn ...uint16) fsm.NewStep {
	return fsm.NewStep{Name: name, DependsOn: dependsOn, Task: fsm.NewTask{Type: "default", Params: []byte("1"), MaxAttempts: fsm.DefaultAttempts}}
}

// TestServer_StepCommands checks the commands of submits with steps.
func TestServer_StepCommands(t *testing.T) {
	t.Parallel()
	parent := func(p fsm.NewParent) fsm.NewTask {
		return fsm.NewTask{Type: "default", MaxAttempts: fsm.DefaultAttempts, Parent: &p}
	}
	long := strings.Repeat("A0_.:-z9", 16)
	plain := parent(fsm.NewParent{Steps: []fsm.NewStep{plainStep("a")}})
	type read struct {
		body string
		want fsm.NewTask
	}
	for _, c := range []read{
		{`"steps":[{"step":"a","params":1}]`, plain},
		{`"finalize":null,"on_step_failure":null,"steps":[{"step":"a","params":1,"depends_on":null,"idempotency_key":null,"unique":null,"retention_ms":null,"steps":null,"finalize":null,"on_step_failure":null}]`, plain},
		{`"on_step_failure":"fail","finalize":"auto","steps":[{"depends_on": [ ] ,"params":1,"step":"a"}]`, plain},
		{`"finalize":"claim","steps":[{"step":"a","params":1}]`, parent(fsm.NewParent{ByClaim: true, Steps: []fsm.NewStep{plainStep("a")}})},
		{`"steps":[{"step":"a","params":1}],"on_step_failure":"continue"`, parent(fsm.NewParent{Continue: true, Steps: []fsm.NewStep{plainStep("a")}})},
		{`"steps":[{"step":"` + long + `","params":1}]`, parent(fsm.NewParent{Steps: []fsm.NewStep{plainStep(long)}})},
		// Names of later steps, in any order, with escapes.
		{
			`"steps":[{"step":"a","depends_on":["c" , "\u0062"],"params":1},{"step":"b","params":1},{"depends_on":["b"],"step":"c","params":1}]`,
			parent(fsm.NewParent{Steps: []fsm.NewStep{plainStep("a", 1, 2), plainStep("b"), plainStep("c", 1)}}),
		},
		// Fields that a parent may have although they have no effect.
		{
			`"steps":[{"step":"a","params":1}],"task_type":"t","payload":"AA==","priority":3,"max_attempts":7,"lease_ms":100,"backoff":{"initial_ms":1},"idempotency_key":"k","unique":"active","labels":{"a":"b"},"retention_ms":0,` +
				`"run_at":null,"delay_ms":null,"expires_at":null,"group":null`,
			fsm.NewTask{
				Type: "t", Payload: []byte{0}, Priority: 3, MaxAttempts: 7, LeaseMS: 100, Backoff: &fsm.Backoff{InitialMS: 1, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000},
				Key: "k", UniqueActive: true, Labels: []fsm.Label{{Name: "a", Value: "b"}}, RetentionMS: fsm.KeepNone, Parent: &fsm.NewParent{Steps: []fsm.NewStep{plainStep("a")}},
			},
		},
		{
			`"steps":[{"step":"a","task_type":"t","payload":"AA==","priority":-3,"max_attempts":0,"lease_ms":100,"backoff":{"initial_ms":1},"labels":{"a":"b"},"group":"g","delay_ms":5,"expires_at":"2026-03-01T12:00:00Z"},` +
				`{"step":"b","params":1,"run_at":"2026-03-01T12:00:00Z"}]`,
			parent(fsm.NewParent{
				Steps: []fsm.NewStep{
					{Name: "a", Task: fsm.NewTask{
						Type: "t", Payload: []byte{0}, Priority: -3, LeaseMS: 100, Backoff: &fsm.Backoff{InitialMS: 1, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000},
						Labels: []fsm.Label{{Name: "a", Value: "b"}}, Group: "g", DelayMS: 5, ExpiresAt: nodetest.Start,
					}},
					{Name: "b", Task: fsm.NewTask{Type: "default", Params: []byte("1"), MaxAttempts: fsm.DefaultAttempts, RunAt: nodetest.Start}},
				},
			}),
		},
	} {
		body, submit := c.body, command.Submit{Tasks: []fsm.NewTask{c.want}}
		hold := command.Hold{ID: 7, WorkerID: "w"}
		for _, c := range []struct {
			target, body string
			want         command.Command
		}{
			{"POST /api/tasks", `{` + body + `}`, submit},
			{"POST /api/tasks", `{"tasks":[{"bad":1},{` + body + `}]}`, submit},
			{"POST /api/tasks/7/complete", `{"worker_id":"w","submit":[{` + body + `}]}`, command.Complete{Hold: hold, Submit: submit.Tasks}},
			{"POST /api/batch", `{"ops":[{` + body + `,"op":"submit"}]}`, command.Batch{Ops: []command.Command{submit}}},
			{"POST /api/batch", `{"ops":[{"op":"complete","id":7,"worker_id":"w","submit":[{` + body + `}]}]}`, command.Batch{Ops: []command.Command{command.Complete{Hold: hold, Submit: submit.Tasks}}}},
		} {
			if diff := cmp.Diff(c.want, proposedBy(t, c.target, c.body)); diff != "" {
				t.Errorf("%s %.200s: command (-want +got):\n%s", c.target, c.body, diff)
			}
		}
	}
}

// TestServer_FinalizationCommands checks the commands of the calls about a finalization.
func TestServer_FinalizationCommands(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("p", 128)
	for _, c := range []struct {
		target, body string
		want         command.Command
	}{
		{"finalization/claim", `{"processor_id":"A.z:0_-"}`, command.ClaimFinalization{ID: 7, ProcessorID: "A.z:0_-", TimeoutMS: 30_000}},
		{"finalization/claim", `{"timeout_seconds":null,"processor_id":"` + long + `"}`, command.ClaimFinalization{ID: 7, ProcessorID: long, TimeoutMS: 30_000}},
		{"finalization/claim", `{"timeout_seconds":1,"processor_id":"p"}`, command.ClaimFinalization{ID: 7, ProcessorID: "p", TimeoutMS: 1_000}},
		{"finalization/claim", `{"processor_id":"p","timeout_seconds":3600}`, command.ClaimFinalization{ID: 7, ProcessorID: "p", TimeoutMS: 3_600_000}},
		{"finalization/extend", `{"processor_id":"p"}`, command.ExtendFinalization{ID: 7, ProcessorID: "p"}},
		{"finalization/extend", `{"processor_id":"p","timeout_seconds":null}`, command.ExtendFinalization{ID: 7, ProcessorID: "p"}},
		{"finalization/extend", `{"processor_id":"p","timeout_seconds":5}`, command.ExtendFinalization{ID: 7, ProcessorID: "p", TimeoutMS: 5_000}},
		{"finalization/release", `{"processor_id":"p"}`, command.ReleaseFinalization{ID: 7, ProcessorID: "p"}},
		{"finalize", `{"processor_id":"p","outcome":"completed"}`, command.Finalize{ID: 7, ProcessorID: "p"}},
		{"finalize", `{"processor_id":"p","outcome":"completed","result": {"a": 1} ,"claim_token":9007199254740991,"error":null}`, command.Finalize{ID: 7, ProcessorID: "p", Token: 1<<53 - 1, Result: []byte(`{"a": 1}`)}},
		{"finalize", `{"processor_id":"p","outcome":"failed","result":null,"claim_token":null}`, command.Finalize{ID: 7, ProcessorID: "p", Failed: true}},
		{"finalize", `{"error":"","processor_id":"p","outcome":"failed"}`, command.Finalize{ID: 7, ProcessorID: "p", Failed: true}},
		{"finalize", `{"processor_id":"p","outcome":"failed","error":"` + strings.Repeat("é", 9000) + `"}`, command.Finalize{ID: 7, ProcessorID: "p", Failed: true, Error: strings.Repeat("é", 8192)}},
	} {
		if diff := cmp.Diff(c.want, proposedBy(t, "POST /api/tasks/7/"+c.target, c.body)); diff != "" {
			t.Errorf("%s %.100s: command (-want +got):\n%s", c.target, c.body, diff)
		}
	}
}

// Parts of answers about a parent and its steps.
const (
	headOf1   = `{"id":1,"task_type":"report","params":{"m":11},"priority":0,"max_attempts":3,"attempts":0,"idempotency_key":"k","status":`
	claimed   = `"worker_id":"w","claim_token":1,"claimed_at":` + noon + `,"lease_expires_at":"2026-03-01T12:00:30.000Z","lease_remaining_ms":30000,`
	familyOf1 = `"finalize":"claim","on_step_failure":"continue"`
)

// reportBody submits a task with three steps: merge waits for a and b.
const reportBody = `{"task_type":"report","params":{"m":11},"idempotency_key":"k","finalize":"claim","on_step_failure":"continue","steps":[` +
	`{"step":"merge","task_type":"m","params":{},"depends_on":["b","a"]},{"step":"a","task_type":"f","params":1,"max_attempts":1},{"step":"b","task_type":"f","params":2,"delay_ms":1000}]}`

// reportSteps returns the part of an answer about its steps.
func reportSteps(merge, a, b string) string {
	return `"steps":[{"step":"merge","id":2,"task_type":"m","status":"` + merge + `","depends_on":["a","b"]},` +
		`{"step":"a","id":3,"task_type":"f","status":"` + a + `","depends_on":[]},{"step":"b","id":4,"task_type":"f","status":"` + b + `","depends_on":[]}],`
}

// TestServer_StepsShown checks, byte for byte, which answers show steps.
func TestServer_StepsShown(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	parent := headOf1 + `"running",` + unclaimed + since + `"cancel_requested":false,`
	shown := reportSteps("blocked", "pending", "scheduled")
	merge := `{"id":2,"task_type":"m",%s"priority":0,"max_attempts":3,"attempts":0,"status":"blocked",` + unclaimed + since + `"cancel_requested":false,%s"parent_id":1,"step":"merge","depends_on":["a","b"]}`
	a := `{"id":3,"task_type":"f",%s"priority":0,"max_attempts":1,"attempts":0,"status":"pending",` + unclaimed + since + `"cancel_requested":false,%s"parent_id":1,"step":"a","depends_on":[]}`
	claimedA := `{"id":3,"task_type":"f","params":1,"priority":0,"max_attempts":1,"attempts":1,"status":"claimed",` + claimed + since + `"cancel_requested":false,"parent_id":1,"step":"a","depends_on":[]}`
	follow(t, s, node, []step{
		{target: "POST /api/tasks", body: reportBody, status: 201, want: `{"success":true,"task":` + parent + shown + familyOf1 + `},"created":true}`},
		{target: "POST /api/tasks", body: reportBody, status: 200, want: `{"success":true,"task":` + parent + shown + familyOf1 + `},"created":false}`},
		{target: "POST /api/tasks", body: `{"tasks":[` + reportBody + `]}`, status: 200, want: `{"success":true,"results":[{"id":1,"created":false}],"failed":0}`},
		{target: "POST /api/batch", body: `{"ops":[{"op":"submit",` + reportBody[1:] + `]}`, status: 200, want: `{"success":true,"results":[{"success":true,"task":` + parent + familyOf1 + `},"created":false}],"failed":0}`},
		{target: "GET /api/tasks/1", status: 200, want: `{"success":true,"task":` + parent + `"in_force":{"retention_ms":86400000},"attempts_log":[],` + shown + familyOf1 + `}}`},
		{target: "GET /api/tasks/by-key/k", status: 200, want: `{"success":true,"task":` + parent + `"in_force":{"retention_ms":86400000},"attempts_log":[],` + shown + familyOf1 + `}}`},
		{target: "GET /api/tasks/2", status: 200, want: `{"success":true,"task":` + fmt.Sprintf(merge, `"params":{},`, `"in_force":{"lease_ms":30000,"backoff":null},"attempts_log":[],`) + `}`},
		{
			target: "GET /api/tasks?limit=3", status: 200,
			want: `{"success":true,"tasks":[` + strings.Replace(parent, `"params":{"m":11},`, "", 1) + familyOf1 + `},` + fmt.Sprintf(merge, "", "") + `,` + fmt.Sprintf(a, "", "") + `],"next_cursor":"a4"}`,
		},
		{target: "GET /api/tasks?parent_id=1&status=pending", status: 200, want: `{"success":true,"tasks":[` + fmt.Sprintf(a, "", "") + `],"next_cursor":null}`},
		{target: "GET /api/tasks?parent_id=3", status: 200, want: `{"success":true,"tasks":[],"next_cursor":null}`},
		{target: "POST /api/tasks/1/retry", status: 200, want: `{"success":true,"task":` + parent + shown + familyOf1 + `},"repeated":true}`},
		{target: "PATCH /api/tasks/1", body: `{"priority":0}`, status: 200, want: `{"success":true,"task":` + parent + shown + familyOf1 + `}}`},
		{target: "POST /api/tasks/claim", body: `{"worker_id":"w","claim_request_id":"r"}`, status: 200, want: `{"success":true,"task":` + claimedA + `,"message":"Task claimed successfully"}`},
		{
			target: "POST /api/tasks/claim", body: `{"worker_id":"w","claim_request_id":"r"}`, status: 200,
			want: `{"success":true,"task":` + strings.TrimSuffix(claimedA, "}") + `,"claim_state":"live"},"message":"Task claimed successfully","repeated":true}`,
		},
		{
			target: "POST /api/tasks/1/cancel", status: 200,
			want: `{"success":true,"task":` + strings.Replace(parent, `"cancel_requested":false`, `"cancel_requested":true`, 1) + reportSteps("cancelled", "claimed", "cancelled") + familyOf1 + `}}`,
		},
	})
	var task wire.Answer
	if err := json.Unmarshal([]byte(s.call(t, "GET /api/tasks/1", "").body), &task); err != nil || len(task.Task.Steps) != 3 || task.Task.Steps[0].DependsOn[1] != "b" || task.Task.Finalize != "claim" {
		t.Errorf("%+v, %v", task.Task, err)
	}
}

// TestServer_StepError checks that the error of a step is cut in the answer about its parent.
func TestServer_StepError(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitOne(t, s, `{`+one+`"params":1}`)
	claimOne(t, s, "w")
	whole := strings.Repeat("é", 700)
	s.call(t, "POST /api/tasks/2/fail", `{"worker_id":"w","error":"`+whole+`"}`).good(t, 200)
	if got := s.call(t, "GET /api/tasks/2", "").good(t, 200).Task.Error; got != whole {
		t.Errorf("the step has %d bytes", len(got))
	}
	if got := s.call(t, "GET /api/tasks/1", "").good(t, 200).Task.Steps[0].Error; got != whole[:1024] {
		t.Errorf("the parent shows %d bytes", len(got))
	}
}

// TestServer_SubmitManySteps checks that of many tasks one with invalid steps is refused by itself.
func TestServer_SubmitManySteps(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	got := s.call(t, "POST /api/tasks", `{"tasks":[{"params":1},{`+one+`"priority":2},{"params":1},{"steps":[{"step":"a","depends_on":["x"],"params":1},{"step":5}],"run_at":{"a":[1]}},`+
		`{"steps":[{"step":"a","params":1,"depends_on":["b",{"a":1}]}],"finalize":"claim"},{"steps":[{"step":"a","params":1,"depends_on":["b"]},{"step":"b","params":1,"depends_on":["a"]}]},{`+one+`"delay_ms":1},{"params":2}]}`)
	want := `{"success":true,"results":[{"id":1,"created":true},{"id":2,"created":true},{"id":4,"created":true},` +
		`{"error":"Invalid tasks[3].steps[1].step: must be a string of 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or ..","code":"invalid_task","message":"Correct the field and send the request again","field":"tasks[3].steps[1].step"},` +
		`{"error":"Invalid tasks[4].steps[0].depends_on[1]: must be a string of 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or ..","code":"invalid_task","message":"Correct the field and send the request again","field":"tasks[4].steps[0].depends_on[1]"},` +
		`{"error":"Invalid tasks[5].steps[0].depends_on: the steps wait for each other: a -> b -> a","code":"invalid_task","message":"Correct the field and send the request again","field":"tasks[5].steps[0].depends_on"},` +
		`{"error":"Invalid tasks[6].delay_ms: a task with steps cannot have it","code":"invalid_task","message":"Remove it, and set it for its steps","field":"tasks[6].delay_ms"},` +
		`{"id":5,"created":true}],"failed":4}`
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ids := ids(s.call(t, "GET /api/tasks?parent_id=2", "").good(t, 200).Tasks); ids != "3" {
		t.Errorf("steps %s", ids)
	}
}

// TestServer_StepsAtTheLimit checks the largest requests that are accepted.
func TestServer_StepsAtTheLimit(t *testing.T) {
	t.Parallel()
	whole := `{` + steps(1000) + `}`
	nine := strings.Repeat(whole+",", 9)
	for _, c := range []struct {
		target, body string
		status       int
	}{
		{"POST /api/tasks", whole, 201},
		{"POST /api/tasks", `{"tasks":[` + nine + `{` + steps(990) + `}]}`, 200},
		// A task that is refused by itself does not count.
		{"POST /api/tasks", `{"tasks":[` + nine + `{` + steps(900) + `,"delay_ms":1},{` + steps(990) + `}]}`, 200},
		{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[` + nine + `{` + steps(989) + `}]}`, 404},
		{"POST /api/batch", `{"ops":[` + strings.ReplaceAll(nine, `{"steps"`, `{"op":"submit","steps"`) + `{"op":"claim","worker_id":"w","limit":991}]}`, 200},
	} {
		s, _ := setup(t)
		if got := s.call(undescribed{t}, c.target, c.body); got.status != c.status {
			t.Errorf("%s %.60s: %d %.300s", c.target, c.body, got.status, got.body)
		}
	}
	// The most dependencies: each step depends on all before it.
	s, node := setup(t)
	all, names := make([]string, 1000), make([]string, 1000)
	for i := range all {
		names[i] = fmt.Sprintf(`"%d"`, i)
		all[i] = fmt.Sprintf(`{"step":"%d","params":1,"depends_on":[%s]}`, i, strings.Join(names[:i], ","))
	}
	got := s.call(t, "POST /api/tasks", `{"steps":[`+strings.Join(all, ",")+`]}`).good(t, 201)
	if n := len(got.Task.Steps[999].DependsOn); n != 999 || node.Machine.Stats(node.Stamp).Counts[fsm.StatusBlocked] != 999 {
		t.Errorf("%d dependencies", n)
	}
}

// TestServer_StepsTraceparent checks that steps have the trace context of their submit.
func TestServer_StepsTraceparent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, body string }{
		{"POST /api/tasks", `{` + one + `"params":1}`},
		{"POST /api/tasks", `{"tasks":[{` + one + `"params":1}]}`},
		{"POST /api/batch", `{"ops":[{"op":"submit",` + one + `"params":1}]}`},
	} {
		s, _ := setup(t)
		s.call(t, c.target, c.body, "traceparent: "+testTrace)
		for _, id := range []string{"1", "2"} {
			if got := s.call(t, "GET /api/tasks/"+id, "").good(t, 200).Task.Traceparent; got != testTrace {
				t.Errorf("%s: task %s has %q", c.target, id, got)
			}
		}
	}
	s, _ := setup(t)
	submitOne(t, s, `{"params":1}`)
	claimOne(t, s, "w")
	s.call(t, "POST /api/tasks/1/complete", `{"worker_id":"w","submit":[{`+one+`"params":1}]}`, "traceparent: "+testTrace).good(t, 200)
	if got := s.call(t, "GET /api/tasks/3", "").good(t, 200).Task; got.Traceparent != testTrace || got.ParentID != 2 {
		t.Errorf("a follow-up's step: %+v", got)
	}
}

// TestServer_WhyBlocked checks what a step is said to wait for.
func TestServer_WhyBlocked(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, reportBody)
	follow(t, s, node, []step{
		{target: "GET /api/tasks/1/why", status: 200, want: `{"success":true,"reasons":[],"ahead":null}`},
		{
			target: "GET /api/tasks/2/why", status: 200,
			want: `{"success":true,"reasons":[{"code":"blocked","message":"It waits until 2 other steps are completed","steps":["a","b"]}],"ahead":null}`,
		},
	})
	claimOne(t, s, "w")
	s.call(t, "POST /api/tasks/3/complete", `{"worker_id":"w"}`).good(t, 200)
	follow(t, s, node, []step{{
		target: "GET /api/tasks/2/why", status: 200,
		want: `{"success":true,"reasons":[{"code":"blocked","message":"It waits until the step b is completed","steps":["b"]}],"ahead":null}`,
	}})
	var names []string
	for i := range 101 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	submitOne(t, s, `{"steps":[`+plainSteps(101)+`,{"step":"last","params":1,"depends_on":["`+strings.Join(names, `","`)+`"]}]}`)
	want := `{"success":true,"reasons":[{"code":"blocked","message":"It waits until 100 or more other steps are completed","steps":["` + strings.Join(names[:100], `","`) + `"]}],"ahead":null}`
	if got := s.call(t, "GET /api/tasks/107/why", "").body; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestServer_IncludesDependenciesOfSeenTypes checks that a claim shows the results of no step whose type its key must not
// see, nor its name.
func TestServer_IncludesDependenciesOfSeenTypes(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(typed()...))
	s.call(t, "POST /api/tasks", `{"task_type":"secret","steps":[{"step":"x","task_type":"secret","params":1},{"step":"y","task_type":"a","params":2},`+
		`{"step":"z","task_type":"b","params":3,"depends_on":["x","y"]}]}`, with("root")).good(t, 201)
	for _, taskType := range []string{"secret", "a"} {
		id := ids([]wire.Task{*s.call(t, "POST /api/tasks/claim", fmt.Sprintf(`{"worker_id":"w","task_types":[%q]}`, taskType), with("root")).good(t, 200).Task})
		s.call(t, "POST /api/tasks/"+id+"/complete", fmt.Sprintf(`{"worker_id":"w","result":%q}`, "of "+taskType), with("root")).good(t, 200)
	}
	for key, want := range map[string]map[string]wire.StepResult{
		"worker": {"y": {Result: []byte(`"of a"`)}},
		"root":   {"x": {Result: []byte(`"of secret"`)}, "y": {Result: []byte(`"of a"`)}},
	} {
		got := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","task_types":["b"],"include":["dependencies"],"claim_request_id":"r-`+key+`"}`, with(key)).good(t, 200).Task
		if diff := cmp.Diff(want, got.Dependencies); diff != "" || got.DependenciesLeftOut != nil {
			t.Errorf("%s: left out %v, -want +got\n%s", key, got.DependenciesLeftOut, diff)
		}
		s.call(t, "POST /api/tasks/4/release", `{"worker_id":"w"}`, with(key)).good(t, 200)
	}
}

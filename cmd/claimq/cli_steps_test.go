package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/cmd/claimq/term"
)

const (
	cliParent = `{"id":30,"task_type":"report","priority":0,"max_attempts":3,"attempts":0,"status":"running","worker_id":null,"claim_token":null,` +
		`"created_at":"2026-01-02T02:00:00.000Z","updated_at":"2026-01-02T03:04:00.500Z","completed_at":null,"cancel_requested":false,` +
		`"steps":[{"step":"fetch","id":31,"task_type":"http","status":"completed","depends_on":[]},` +
		`{"step":"left","id":32,"task_type":"sum","status":"completed","depends_on":["fetch"],"error":"once \u001b[31mred"},` +
		`{"step":"middle","id":33,"task_type":"sum","status":"claimed","depends_on":["fetch"]},` +
		`{"step":"right","id":34,"task_type":"sum","status":"pending","depends_on":["fetch"],"error":"connection refused by every one of the hosts"},` +
		`{"step":"merge","id":35,"task_type":"merge","status":"blocked","depends_on":["left","middle","right"]}],` +
		`"finalize":"auto","on_step_failure":"fail"}`
	cliStep = `{"id":35,"task_type":"merge","params":{},"priority":0,"max_attempts":3,"attempts":0,"status":"blocked","worker_id":null,"claim_token":null,` +
		`"created_at":"2026-01-02T02:00:00.000Z","updated_at":"2026-01-02T02:00:00.000Z","completed_at":null,"cancel_requested":false,` +
		`"parent_id":30,"step":"merge","depends_on":["left","middle","right"]}`
	cliFailedParent = `{"id":30,"task_type":"report","status":"failed","max_attempts":3,"created_at":"2026-01-02T02:00:00.000Z","completed_at":"2026-01-02T03:04:05.000Z",` +
		`"error":"step b failed: no route","steps":[{"step":"a","id":31,"status":"completed","depends_on":[]},{"step":"b","id":32,"status":"failed","depends_on":["a"],"error":"no route"},` +
		`{"step":"c","id":33,"status":"cancelled","depends_on":["b"]}],"finalize":"auto","on_step_failure":"continue"}`
	cliEndedSteps = `{"id":30,"task_type":"report","status":"running","max_attempts":3,"created_at":"2026-01-02T02:00:00.000Z",` +
		`"steps":[{"step":"a","id":31,"status":"completed","depends_on":[]},{"step":"b","id":32,"status":"cancelled","depends_on":[]}],"finalize":"claim","on_step_failure":"continue"}`
)

// stepsCases returns the command lines about steps and finalization.
func stepsCases() []cliCase {
	one := func(call, answer string) map[string]string { return map[string]string{call: answer} }
	get := "GET /api/tasks/30"
	submitted := one("POST /api/tasks", `201 {"success":true,"created":true,"task":`+cliParent+`}`)
	steps := `[ {"step":"fetch","params":{ "u" : 1 }}, {"step":"merge","params":2,"depends_on":["fetch"]} ]`
	claim, extend, release := "POST /api/tasks/30/finalization/claim", "POST /api/tasks/30/finalization/extend", "POST /api/tasks/30/finalization/release"
	return []cliCase{
		{
			name: "claim a step with its dependencies", args: []string{"claim", "--worker", "w1", "--dependencies"},
			answers: one("POST /api/tasks/claim", `200 {"success":true,"task":`+strings.TrimSuffix(cliStep, "}")+`,"dependencies":{"left":{"result":{"rows":3}},"right":{}},"dependencies_left_out":["middle"]}}`),
		},
		{name: "claim a step with its dependencies for eval", args: []string{"claim", "--worker", "w1", "--dependencies", "--output", "env"}, want: 2},
		{name: "add steps", args: []string{"steps", "add", "33", "--worker", "w1", "--token", "5", "--steps", "-"}, stdin: steps, answers: one("POST /api/tasks/33/steps", `200 {"success":true,"parent_id":30,"added":2,"steps":[{"step":"fetch","id":41},{"step":"merge","id":42}]}`)},
		{name: "add steps again", args: []string{"steps", "add", "33", "--worker", "w1", "--token", "5", "--steps", "-"}, stdin: `{"steps": ` + steps + `}`, answers: one("POST /api/tasks/33/steps", `200 {"success":true,"parent_id":30,"added":1,"steps":[{"step":"fetch","id":41},{"step":"merge","id":42}]}`)},
		{name: "add steps that are there", args: []string{"steps", "add", "33", "--worker", "w1", "--token", "5", "--steps", "-"}, stdin: steps, answers: one("POST /api/tasks/33/steps", `200 {"success":true,"parent_id":30,"added":0,"steps":[{"step":"fetch","id":41},{"step":"merge","id":42}],"repeated":true}`)},
		{name: "add a step under a taken name", args: []string{"steps", "add", "33", "--worker", "w1", "--token", "5", "--steps", "-"}, stdin: steps, want: 2, answers: one("POST /api/tasks/33/steps", `400 {"success":false,"error":"Invalid steps[1].step: the parent has another step of that name","code":"invalid_task","message":"Send the step as it was added, or another name","request_id":"r","field":"steps[1].step"}`)},
		{name: "add steps without a token", args: []string{"steps", "add", "33", "--worker", "w1", "--steps", "-"}, stdin: steps, want: 2},
		{name: "add no steps", args: []string{"steps", "add", "33", "--worker", "w1", "--token", "5"}, want: 2},
		{name: "add steps with an end", args: []string{"steps", "add", "33", "--worker", "w1", "--token", "5", "--steps", "-"}, stdin: `{"steps": ` + steps + `, "finalize": "claim"}`, want: 2},
		{name: "signal", args: []string{"signal", "35", `{"approved":true}`}, answers: one("POST /api/tasks/35/signal", `200 {"success":true,"task":{"id":35,"status":"pending","signalled":true,"signal":{"approved":true}}}`)},
		{name: "signal again", args: []string{"signal", "35"}, answers: one("POST /api/tasks/35/signal", `200 {"success":true,"task":{"id":35,"status":"pending","signalled":true},"repeated":true}`)},
		{name: "signal otherwise", args: []string{"signal", "35", "7"}, answers: one("POST /api/tasks/35/signal", `200 {"success":true,"task":{"id":35,"status":"pending","signalled":true,"signal":8},"same_signal":false,"repeated":true}`)},
		{name: "signal no JSON", args: []string{"signal", "35", "yes"}, want: 2},
		{name: "submit a task that waits for a signal", args: []string{"submit", "approve", "1", "--wait-for-signal", "24h"}, answers: one("POST /api/tasks", `201 {"success":true,"created":true,"task":{"id":36,"status":"blocked"}}`)},
		{name: "types of steps", args: []string{"types"}, answers: one("GET /api/types", `200 {"success":true,"types":[{"task_type":"report","counts":{"pending":0,"running":2}},`+
			`{"task_type":"sum","counts":{"pending":1,"blocked":3,"claimed":4}}]}`)},
		{name: "submit steps", args: []string{"submit", "report", "--steps", "-"}, stdin: steps + "\n", answers: submitted},
		{
			name: "submit steps of an object", args: []string{"submit", "report", `{ "month": 12 }`, "--steps", "-", "--finalize", "claim", "--key", "k"}, answers: submitted,
			stdin: `{"steps": ` + steps + `, "finalize": "auto", "on_step_failure": "continue"}`,
		},
		{
			name: "submit steps and wait", args: []string{"submit", "report", "--steps", "-", "--wait", "1h"}, stdin: steps, want: 1,
			answers: map[string]string{"POST /api/tasks": `201 {"success":true,"created":true,"task":` + cliParent + `}`, "GET /api/tasks/30?wait_ms=6000": `200 {"success":true,"task":` + cliFailedParent + `}`},
		},
		{
			name: "submit steps refused", args: []string{"submit", "report", "--steps", "-"}, stdin: `[{"step":"a","params":1,"depends_on":["a"]}]`, want: 2,
			answers: one("POST /api/tasks", `400 {"success":false,"error":"steps[0].depends_on: a step depends on itself","code":"invalid_task","message":"Correct the task","field":"steps[0].depends_on","request_id":"r1"}`),
		},
		{name: "submit steps of a whole task", args: []string{"submit", "report", "--steps", "-"}, stdin: `{"task_type":"report","steps":[]}`, want: 2},
		{name: "submit steps of nothing", args: []string{"submit", "report", "--steps", "-"}, stdin: `{"finalize":"auto"}`, want: 2},
		{name: "submit steps of a wrong type", args: []string{"submit", "report", "--steps", "-"}, stdin: `{"steps":[],"finalize":true}`, want: 2},
		{name: "submit steps of a number", args: []string{"submit", "report", "--steps", "-"}, stdin: `5`, want: 2},
		{name: "submit steps no file", args: []string{"submit", "report", "--steps", "/nowhere/at/all"}, want: 2},
		{name: "submit steps and params of one input", args: []string{"submit", "report", "-", "--steps", "-"}, stdin: steps, want: 2},
		{name: "submit finalize without steps", args: []string{"submit", "report", "--finalize", "claim"}, want: 2},
		{name: "submit file with steps", args: []string{"submit", "--file", "-", "--steps", "-"}, want: 2},
		{name: "get parent", args: []string{"get", "30"}, answers: one(get, `200 {"success":true,"task":`+cliParent+`}`)},
		{name: "get cancelled parent", args: []string{"get", "30"}, answers: one(get, `200 {"success":true,"task":`+strings.Replace(cliEndedSteps, `"status":"running"`, `"status":"running","cancel_requested":true`, 1)+`}`)},
		{name: "get step", args: []string{"get", "35"}, answers: one("GET /api/tasks/35", `200 {"success":true,"task":`+cliStep+`}`)},
		{name: "list of a parent", args: []string{"list", "--parent", "30"}, answers: one("GET /api/tasks?limit=100&parent_id=30", `200 {"success":true,"tasks":[`+cliStep+`],"next_cursor":null}`)},
		{name: "steps", args: []string{"steps", "30"}, answers: one(get, `200 {"success":true,"task":`+cliParent+`}`)},
		{name: "steps of a step", args: []string{"steps", "35"}, answers: map[string]string{"GET /api/tasks/35": `200 {"success":true,"task":` + cliStep + `}`, get: `200 {"success":true,"task":` + cliParent + `}`}},
		{name: "steps of a failed task", args: []string{"steps", "30"}, answers: one(get, `200 {"success":true,"task":`+cliFailedParent+`}`)},
		{name: "steps that have ended", args: []string{"steps", "30"}, answers: one(get, `200 {"success":true,"task":`+cliEndedSteps+`}`)},
		{name: "steps json", args: []string{"steps", "30", "--output", "json"}, answers: one(get, `200 {"success":true, "task":`+cliEndedSteps+`}`)},
		{name: "steps of a plain task", args: []string{"steps", "17"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":`+cliTask+`}`)},
		{name: "steps not found", args: []string{"steps", "17"}, want: 4, answers: one("GET /api/tasks/17", cliNotFound)},
		{name: "cancel parent", args: []string{"cancel", "30"}, answers: one("POST /api/tasks/30/cancel", `200 {"success":true,"task":`+strings.Replace(cliParent, `"cancel_requested":false`, `"cancel_requested":true`, 1)+`}`)},
		{name: "why blocked", args: []string{"why", "35"}, answers: one("GET /api/tasks/35/why", `200 {"success":true,"ahead":null,"reasons":[{"code":"blocked","message":"It waits for other steps of its task","steps":["middle","right"]}]}`)},
		{name: "why of a parent", args: []string{"why", "30"}, answers: map[string]string{
			"GET /api/tasks/30/why": `200 {"success":true,"ahead":null,"reasons":[]}`, get: `200 {"success":true,"task":` + cliParent + `}`,
		}},
		{name: "why of a parent that waits", args: []string{"why", "30"}, answers: map[string]string{
			"GET /api/tasks/30/why": `200 {"success":true,"ahead":null,"reasons":[]}`, get: `200 {"success":true,"task":` + cliEndedSteps + `}`,
		}},
		{name: "finalize", args: []string{"finalize", "30", `{ "sum": 42 }`, "--processor", "p1", "--token", "9"}, answers: one("POST /api/tasks/30/finalize", `200 {"success":true,"action":"completed","already_finalized":false,"task":{"id":30,"status":"completed","worker_id":"p1"}}`)},
		{
			name: "finalize as failed", args: []string{"finalize", "30", "--error", "no <sum>"}, environ: []string{"CLAIMQ_PROCESSOR=p1", "CLAIMQ_CLAIM_TOKEN=7"},
			answers: one("POST /api/tasks/30/finalize", `200 {"success":true,"action":"completed","already_finalized":true,"task":{"id":30,"status":"completed","worker_id":"p2"}}`),
		},
		{name: "finalize too early", args: []string{"finalize", "30", "--processor", "p1"}, want: 1, answers: one("POST /api/tasks/30/finalize", `409 {"success":false,"error":"The task has steps that have not ended","code":"steps_unfinished","message":"Wait until all of its steps have ended, then finalize it","request_id":"r1"}`)},
		{name: "finalize held", args: []string{"finalize", "30", "--processor", "p2"}, want: 1, answers: one("POST /api/tasks/30/finalize", `409 {"success":false,"error":"Task already claimed for finalization","code":"task_already_claimed","message":"Leave it to the processor in worker_id, or wait until its claim has ended","task_id":30,"status":"running","worker_id":"p1","request_id":"r1"}`)},
		{name: "retry parent without attempts", args: []string{"retry", "30"}, want: 1, answers: one("POST /api/tasks/30/retry", `409 {"success":false,"error":"Maximum attempts reached","code":"max_attempts_reached","message":"Send add_attempts to raise max_attempts","task_id":33,"status":"failed","worker_id":"w1","request_id":"r1"}`)},
		{name: "finalize as failed without a word", args: []string{"finalize", "30", "--processor", "p1", "--error", ""}, answers: one("POST /api/tasks/30/finalize", `200 {"success":true,"action":"failed","already_finalized":false,"task":{"id":30,"status":"failed","worker_id":"p1"}}`)},
		{name: "finalize with token 0", args: []string{"finalize", "30", "--processor", "p1", "--token", "0"}, want: 2},
		{name: "retry with token 0", args: []string{"retry", "30", "--token", "0"}, want: 2},
		{name: "bulk of the steps of 0", args: []string{"bulk", "delete", "--parent", "0", "--status", "failed"}, want: 2},
		{name: "finalize without processor", args: []string{"finalize", "30"}, want: 2},
		{name: "finalize both ways", args: []string{"finalize", "30", "--processor", "p1", "--outcome", "completed", "--error", "no"}, want: 2},
		{name: "finalize failed with a result", args: []string{"finalize", "30", "1", "--processor", "p1", "--outcome", "failed"}, want: 2},
		{name: "finalization claim", args: []string{"finalization", "claim", "30", "--processor", "p1", "--for", "2m"}, answers: one(claim, `200 {"success":true,"claimed":true,"already_claimed_by":"p1","task_state":"evaluating_results","message":"Successfully claimed for finalization","claim_token":9}`)},
		{name: "finalization claim held", args: []string{"finalization", "claim", "30", "--processor", "p1"}, want: 1, answers: one(claim, `200 {"success":true,"claimed":false,"already_claimed_by":"p2","task_state":"waiting_for_steps","message":"Task already claimed for finalization","claim_token":null}`)},
		{name: "finalization claim json", args: []string{"finalization", "claim", "30", "--processor", "p1", "--output", "json"}, want: 1, answers: one(claim, `200 {"success":true,"claimed":false,"already_claimed_by":null,"task_state":"complete","message":"Task already complete","claim_token":null}`)},
		{name: "finalization claim not found", args: []string{"finalization", "claim", "30", "--processor", "p1"}, want: 4, answers: one(claim, `200 {"success":true,"claimed":false,"already_claimed_by":null,"task_state":"not_found","message":"Task not found","claim_token":null}`)},
		{name: "finalization claim for a moment", args: []string{"finalization", "claim", "30", "--processor", "p1", "--for", "1500ms"}, want: 2},
		{name: "finalization claim by nobody", args: []string{"finalization", "claim", "30"}, want: 2},
		{name: "finalization extend", args: []string{"finalization", "extend", "30", "--processor", "p1"}, answers: one(extend, `200 {"success":true,"extended":true}`)},
		{name: "finalization extend late", args: []string{"finalization", "extend", "30", "--processor", "p1", "--for", "2m"}, want: 1, answers: one(extend, `200 {"success":true,"extended":false}`)},
		{name: "finalization release", args: []string{"finalization", "release", "30"}, environ: []string{"CLAIMQ_PROCESSOR=p1"}, answers: one(release, `200 {"success":true,"released":true}`)},
		{name: "finalization release unknown", args: []string{"finalization", "release", "30", "--processor", "p1", "--timeout", "400ms"}, want: 3, answers: one(release, "break")},
		{name: "finalization show", args: []string{"finalization", "show", "30"}, answers: one("GET /api/tasks/30/finalization", `200 {"success":true,"attempts":[`+
			`{"processor_id":"p2","claimed":false,"already_claimed_by":null,"reason":"not_ready","task_state":"waiting_for_steps","message":"Task has no completed or failed steps","attempted_at":"2026-01-02T03:03:05.006Z"},`+
			`{"processor_id":"p1","claimed":true,"already_claimed_by":"p1","reason":null,"task_state":"evaluating_results","message":"Successfully claimed for finalization","attempted_at":"2026-01-02T03:04:00.006Z"}],`+
			`"claimed_by":"p1","claim_expires_at":"2026-01-02T03:04:30.006Z"}`)},
		{name: "finalization show none", args: []string{"finalization", "show", "30"}, answers: one("GET /api/tasks/30/finalization", `200 {"success":true,"attempts":[],"claimed_by":null,"claim_expires_at":null}`)},
	}
}

// Steps count as tasks, so a request has no more of them than the server takes.
func TestRun_submitsFilesOfStepsInParts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sizes []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := bytes.Count(body, []byte(`"steps"`))
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, n)
		fmt.Fprintf(w, `{"success":true,"results":[%s],"failed":0}`, strings.TrimSuffix(strings.Repeat(`{"id":1,"created":true},`, n), ","))
	}))
	defer server.Close()
	line := `{"steps":[` + strings.TrimSuffix(strings.Repeat(`{"step":"a"},`, 999), ",") + "]}\n"
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(strings.Repeat(line, 25)), Stdout: &stdout, Stderr: &stderr}
	if code := run(t.Context(), a, []string{"submit", "report", "--file", "-", "--endpoint", server.URL}); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if diff := cmp.Diff([]int{10, 10, 5}, sizes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

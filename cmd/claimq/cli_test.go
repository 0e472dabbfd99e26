package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// cliNode returns a node in the server's JSON.
func cliNode(id, suffrage, state string, healthy bool, problem string) string {
	return fmt.Sprintf(`{"node_id":%q,"uuid":"u","peer_addr":"127.0.0.1:7401","http_addr":"http://127.0.0.1:7400","suffrage":%q,"state":%q,"last_contact_ms":3,"applied_index":42,"version":"v1","healthy":%t,"problem":%q}`,
		id, suffrage, state, healthy, problem)
}

var updateGolden = flag.Bool("update", false, "write the golden file again")

// fakeAPI answers by method and path, and records the requests.
type fakeAPI struct {
	answers map[string]string // "POST /api/tasks" → "201 {...}"

	mu  sync.Mutex
	got []string
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	sent := r.Method + " " + r.URL.RequestURI()
	if key := r.Header.Get("X-API-Key"); key != "" {
		sent += " key=" + key
	}
	f.got = append(f.got, strings.TrimSpace(sent+" "+string(body)))
	f.mu.Unlock()
	answer, ok := f.answers[r.Method+" "+r.URL.RequestURI()]
	if !ok {
		answer = `404 {"success":false,"error":"Not found","code":"not_found","message":"the fake has no such answer"}`
	}
	if answer == "break" {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		conn.Close()
		return
	}
	var status int
	fmt.Sscanf(answer, "%d", &status)
	w.WriteHeader(status)
	io.WriteString(w, answer[4:])
}

func (f *fakeAPI) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

const (
	cliTask = `{"id":17,"task_type":"mail","params":{ "to": "ada" },"priority":5,"max_attempts":3,"attempts":1,"idempotency_key":"k","status":"claimed",` +
		`"worker_id":"w1","claim_token":9,"claimed_at":"2026-01-02T03:04:00.500Z","lease_remaining_ms":30000,` +
		`"created_at":"2026-01-02T02:00:00.000Z","updated_at":"2026-01-02T03:04:00.500Z","completed_at":null,"cancel_requested":false}`
	cliDone = `{"id":17,"task_type":"mail","payload":"AP8=","priority":0,"max_attempts":0,"attempts":25,"status":"failed",` +
		`"worker_id":"w1","claim_token":9,"claimed_at":"2026-01-02T03:04:00.500Z","lease_remaining_ms":null,` +
		`"created_at":"2025-12-31T00:00:00.000Z","updated_at":"2026-01-02T03:04:05.000Z","completed_at":"2026-01-02T03:04:05.000Z",` +
		`"error":"\u001b[31mred\nhot \"pan\"","result":{"long":"RESULT"},"attempts_log":[` +
		`{"worker_id":"w0","claim_token":8,"claimed_at":"2026-01-02T03:00:00.000Z","ended_at":"2026-01-02T03:01:30.250Z","outcome":"expired"},` +
		`{"worker_id":"w1","claim_token":9,"claimed_at":"2026-01-02T03:04:00.500Z","ended_at":null,"outcome":null}]}`
	cliLater = `{"id":18,"task_type":"mail","params":{"to":"bob"},"priority":0,"max_attempts":0,"attempts":1,"idempotency_key":"k","unique":"active","status":"scheduled",` +
		`"run_at":"2026-01-02T04:04:05.750Z","expires_at":"2026-01-03T03:04:05.750Z","lease_ms":2000,"backoff":{"initial_ms":1000,"max_ms":600000,"factor":1.5,"jitter":0.2},` +
		`"retention_ms":-1,"labels":{"tier":"gold","customer":"7"},"group":"g\u001b[1m","share_key":"customer-7","worker_id":null,"claim_token":null,"claimed_at":"2026-01-02T03:04:00.500Z",` +
		`"created_at":"2026-01-02T02:00:00.000Z","completed_at":null,"progress":{"done": 3},"cancel_requested":false}`
	cliAsked = `{"id":17,"task_type":"mail","status":"claimed","worker_id":"w1","claim_token":9,"max_attempts":3,"attempts":1,"lease_remaining_ms":1500,` +
		`"created_at":"2026-01-02T02:00:00.000Z","cancel_requested":true}`
	cliType = `{"task_type":"mail","counts":{"pending":3,"claimed":2},"oldest_pending_age_ms":193784005,"oldest_wait_ms":93784005,"submitted_per_s":1.5,"completed_per_s":0,"failed_per_s":0,` +
		`"paused":true,"max_claimed":10,"max_claimed_per_key":2,"fair":true,"rate_limit":2.5,"lease_ms":120000,"max_attempts":0,"backoff":{"initial_ms":1000,"max_ms":600000,"factor":2,"jitter":0.2},"retention_ms":0}`
	cliShare = `{"share_key":"customer/7","pending":3,"claimed":1,"oldest_wait_ms":93784005,"state":"rate_limited","opens_at":"2026-01-02T03:04:06.000Z",` +
		`"paused":false,"max_claimed":2,"weight":300,"rate_limit":0.5}`
	cliPausedShare = `{"share_key":"customer/7","pending":0,"claimed":0,"oldest_wait_ms":0,"state":"paused","opens_at":null,"paused":true,"max_claimed":null,"weight":100,"rate_limit":null}`
	cliStale       = `409 {"success":false,"error":"Claim is no longer valid","code":"stale_claim","message":"Stop working on this task","request_id":"r1"}`
	cliNotFound    = `404 {"success":false,"error":"Task not found","code":"task_not_found","message":"Check the id","request_id":"r1"}`
)

type cliCase struct {
	name    string
	args    []string
	environ []string
	stdin   string
	answers map[string]string
	noNode  bool // no server listens
	width   int  // of the terminal; 0: no terminal
	want    int  // exit code
}

func cliCases() []cliCase {
	one := func(call, answer string) map[string]string { return map[string]string{call: answer} }
	submit := "POST /api/tasks"
	return []cliCase{
		{name: "submit", args: []string{"submit", "mail", `{ "to": "ada" }`, "--priority", "5"}, answers: one(submit, `201 {"success":true,"created":true,"task":`+cliTask+`}`)},
		{name: "submit without params", args: []string{"submit", "mail"}, answers: one(submit, `201 {"success":true,"created":true,"task":`+cliTask+`}`)},
		{name: "submit json", args: []string{"submit", "mail", "-", "--output", "json"}, stdin: " [1, 2]\n", answers: one(submit, `201 {"success":true,  "created":true,"task":`+cliTask+`}`)},
		{name: "submit a taken key", args: []string{"submit", "mail", "--key", "k"}, answers: one(submit, `200 {"success":true,"created":false,"task":`+cliTask+`}`)},
		{name: "submit another request", args: []string{"submit", "mail", "--key", "k"}, answers: one(submit, `200 {"success":true,"created":false,"same_request":false,"task":`+cliTask+`}`)},
		{name: "submit unknown", args: []string{"submit", "mail", "--key", "mine", "--timeout", "400ms"}, answers: one(submit, `504 {"success":false,"error":"Outcome unknown","code":"outcome_unknown","message":"Repeat it"}`), want: 3},
		{name: "submit bad json", args: []string{"submit", "mail", "hello\x1b"}, want: 2},
		{name: "submit an empty type", args: []string{"submit", "", "1"}, want: 2},
		{name: "submit an empty key", args: []string{"submit", "mail", "--key", ""}, want: 2},
		{name: "claim an empty type", args: []string{"claim", "--worker", "w1", "--type", "", "--output", "env"}, want: 2},
		{name: "bulk of an empty type", args: []string{"bulk", "cancel", "--status", "pending", "--type="}, want: 2},
		{name: "key for an empty type", args: []string{"key", "generate", "--role", "worker", "--name", "a", "--type", ""}, want: 2},
		{name: "get without the key of the variable", args: []string{"get", "17", "--api-key", ""}, environ: []string{"CLAIMQ_API_KEY=secret"}, answers: one("GET /api/tasks/17", cliNotFound), want: 4},
		{name: "submit no type", args: []string{"submit"}, want: 2},
		{name: "submit no file", args: []string{"submit", "mail", "@/nowhere/at/all"}, want: 2},
		{
			name: "submit file", args: []string{"submit", "mail", "--file", "-"},
			stdin:   "{ \"params\": [1,  2] }\n\n{\"task_type\":\"sms\",\"params\":1,\"idempotency_key\":\"mine\"}\nnope\n{}\r\n[]\n",
			answers: one(submit, `200 {"success":true,"failed":1,"results":[{"id":1,"created":true},{"id":2,"created":false},{"error":"Missing required field: params","code":"invalid_task"}]}`), want: 1,
		},
		{
			name: "submit file refused", args: []string{"submit", "--file", "-"}, stdin: "\n{\"params\":1}\n{\"params\":{\"a\":1,\"a\":2}}\n",
			answers: one(submit, `400 {"success":false,"error":"Duplicate field: tasks[1].params.a","code":"invalid_request","message":"Send each field once","field":"tasks[1].params.a"}`), want: 2,
		},
		{
			name: "submit file with a byte order mark", args: []string{"submit", "mail", "--file", "-"}, stdin: "\ufeff{\"params\":1}\n{\"params\":\"\ufeff\"}\n",
			answers: one(submit, `200 {"success":true,"failed":0,"results":[{"id":1,"created":true},{"id":2,"created":true}]}`),
		},
		{
			name: "list JSON with controls", args: []string{"list", "--output", "json"},
			answers: one("GET /api/tasks?limit=100", "200 {\"success\":true,\"tasks\":[{\"id\":1,\"labels\":{\"l\":\"a\u009b2J\u202eb é\"}}],\"next_cursor\":null}"),
		},
		{
			name: "get refused JSON with controls", args: []string{"get", "1", "--output", "json"},
			answers: one("GET /api/tasks/1", "404 {\"success\":false,\"error\":\"a\u009b2J\",\"code\":\"task_not_found\"}"), want: 4,
		},
		{name: "submit file with params", args: []string{"submit", "mail", "{}", "--file", "-"}, want: 2},
		{name: "claim", args: []string{"claim", "--worker", "w1", "--type", "mail", "--type", "sms", "--lease", "2m"}, answers: one("POST /api/tasks/claim", `200 {"success":true,"task":`+cliTask+`}`)},
		{name: "claim env", args: []string{"claim", "--output", "env"}, environ: []string{"CLAIMQ_WORKER=w1"}, answers: one("POST /api/tasks/claim", `200 {"success":true,"task":`+strings.Replace(cliTask, "ada", "o'hara", 1)+`}`)},
		{
			name: "claim env of nothing", args: []string{"claim", "--worker", "w1", "--output", "env"}, want: 4,
			answers: one("POST /api/tasks/claim", `404 {"success":false,"error":"No pending tasks available","code":"no_pending_tasks","message":"No pending tasks available"}`),
		},
		{name: "claim env without a worker", args: []string{"claim", "--output", "env"}, want: 2},
		{name: "claim env with a bad variable", args: []string{"claim", "--worker", "w1", "--output", "env"}, environ: []string{"CLAIMQ_TIMEOUT=soon"}, want: 2},
		{name: "claim env with a bad endpoint", args: []string{"claim", "--worker", "w1", "--output", "env", "--endpoint", "n1"}, want: 2},
		{name: "claim env with a flag that does not parse", args: []string{"claim", "--worker", "w1", "--lease", "soon", "--output", "env"}, want: 2},
		{name: "claim env with an unknown flag", args: []string{"claim", "--wroker", "w1", "--output=env"}, want: 2},
		{name: "claim env with an argument", args: []string{"claim", "--worker", "w1", "mail"}, environ: []string{"CLAIMQ_OUTPUT=env"}, want: 2},
		{name: "claim env of bytes", args: []string{"claim", "--worker", "w1", "--output", "env"}, answers: one("POST /api/tasks/claim", `200 {"success":true,"task":`+cliDone+`}`)},
		{name: "claim nothing", args: []string{"claim", "--worker", "w1"}, answers: one("POST /api/tasks/claim", `404 {"success":false,"error":"No pending tasks available","message":"No pending tasks available","code":"no_pending_tasks"}`), want: 4},
		{name: "claim nothing json", args: []string{"claim", "--worker", "w1", "--output", "json"}, answers: one("POST /api/tasks/claim", `404 {"success":false,"error":"No pending tasks available","message":"No pending tasks available","code":"no_pending_tasks","filters":{}}`), want: 4},
		{name: "claim without worker", args: []string{"claim"}, want: 2},
		{name: "claim bad lease", args: []string{"claim", "--worker", "w1", "--lease", "1us"}, want: 2},
		{name: "complete", args: []string{"complete", "17", `{ "a": 1 }`, "--worker", "w1", "--token", "9"}, answers: one("POST /api/tasks/17/complete", `200 {"success":true,"task":`+strings.Replace(cliTask, "claimed", "completed", 1)+`}`)},
		{name: "complete again", args: []string{"complete", "17"}, environ: []string{"CLAIMQ_WORKER=w1", "CLAIMQ_CLAIM_TOKEN=9"}, answers: one("POST /api/tasks/17/complete", `200 {"success":true,"repeated":true,"task":`+strings.Replace(cliTask, "claimed", "completed", 1)+`}`)},
		{name: "complete stale", args: []string{"complete", "17", "--worker", "w1", "--token", "9"}, answers: one("POST /api/tasks/17/complete", cliStale), want: 1},
		{name: "complete stale json", args: []string{"complete", "17", "--worker", "w1", "--token", "9", "--output", "json"}, answers: one("POST /api/tasks/17/complete", cliStale), want: 1},
		{name: "complete without token", args: []string{"complete", "17", "--worker", "w1"}, want: 2},
		{name: "fail", args: []string{"fail", "17", "--worker", "w1", "--token", "9", "--error", "no <route>"}, answers: one("POST /api/tasks/17/fail", `200 {"success":true,"task":`+strings.Replace(cliTask, "claimed", "pending", 1)+`}`)},
		{name: "fail without error", args: []string{"fail", "17", "--worker", "w1", "--token", "9"}, want: 2},
		{name: "extend", args: []string{"extend", "17", "--worker", "w1", "--token", "9", "--lease", "90s"}, answers: one("POST /api/tasks/17/extend", `200 {"success":true,"lease_remaining_ms":90000,"cancel_requested":true}`)},
		{name: "release", args: []string{"release", "17", "--worker", "w1", "--token", "9"}, answers: one("POST /api/tasks/17/release", `200 {"success":true,"task":`+strings.Replace(cliTask, "claimed", "pending", 1)+`}`)},
		{name: "retry", args: []string{"retry", "17", "--add-attempts", "2"}, answers: one("POST /api/tasks/17/retry", `200 {"success":true,"task":`+strings.Replace(cliTask, "claimed", "pending", 1)+`}`)},
		{name: "retry of a claim", args: []string{"retry", "17", "--token", "9"}, answers: one("POST /api/tasks/17/retry", `200 {"success":true,"task":`+strings.Replace(cliTask, "claimed", "pending", 1)+`}`)},
		{name: "retry beside a claim", args: []string{"retry", "17"}, environ: []string{"CLAIMQ_CLAIM_TOKEN=9"}, answers: one("POST /api/tasks/17/retry", `200 {"success":true,"task":`+strings.Replace(cliTask, "claimed", "pending", 1)+`}`)},
		{name: "retry unknown", args: []string{"retry", "17"}, answers: one("POST /api/tasks/17/retry", "502 <html>"), want: 3},
		{name: "get", args: []string{"get", "17"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":`+strings.Replace(cliDone, "RESULT", strings.Repeat("x", 2000), 1)+`}`)},
		{name: "get not found", args: []string{"get", "17"}, answers: one("GET /api/tasks/17", cliNotFound), want: 4},
		{name: "get of a proxy", args: []string{"get", "17", "--timeout", "400ms"}, answers: one("GET /api/tasks/17", "403 <html>"), want: 1},
		{name: "get no leader", args: []string{"get", "17", "--timeout", "400ms"}, answers: one("GET /api/tasks/17", `503 {"success":false,"error":"No leader","code":"no_leader","message":"Wait for an election"}`), want: 3},
		{name: "get overloaded", args: []string{"get", "17", "--timeout", "400ms"}, answers: one("GET /api/tasks/17", `503 {"success":false,"error":"Overloaded","code":"overloaded","message":"Slow down"}`), want: 1},
		{name: "get by key", args: []string{"get", "--key", "a/b ?"}, answers: one("GET /api/tasks/by-key/a%2Fb%20%3F", `200 {"success":true,"task":`+cliTask+`}`)},
		{name: "get and wait", args: []string{"get", "17", "--wait", "1d00h"}, answers: one("GET /api/tasks/17?wait_ms=6000", `200 {"success":true,"task":`+cliDone+`}`), want: 1},
		{name: "get by key and wait", args: []string{"get", "--key", "k", "--wait", "90m", "--output", "json"}, answers: one("GET /api/tasks/by-key/k?wait_ms=6000", `200 {"success":true,"task":`+cliDone+`}`), want: 1},
		{name: "get and wait for none", args: []string{"get", "17", "--wait", "1m"}, answers: one("GET /api/tasks/17?wait_ms=6000", cliNotFound), want: 4},
		{name: "get by key and id", args: []string{"get", "17", "--key", "k"}, want: 2},
		{name: "get nothing", args: []string{"get"}, want: 2},
		{name: "get no id", args: []string{"get", "seventeen"}, want: 2},
		{name: "get no server", args: []string{"get", "17", "--timeout", "400ms"}, noNode: true, want: 3},
		{name: "get with a key", args: []string{"get", "17", "--output", "json"}, environ: []string{"CLAIMQ_API_KEY=secret"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":`+cliTask+`}`)},
		{
			name: "submit with all", args: []string{
				"submit", "mail", "--key", "k", "--unique", "active", "--delay", "1h", "--expires-at", "2026-01-03T04:04:05.75+01:00", "--expires-again", "--label", "tier=gold",
				"--label", "customer=7", "--label", "empty=", "--group", "g", "--backoff", "1s,10m,1.5,0.2", "--retention", "forever", "--max-attempts", "0", "--lease", "2s",
			},
			answers: one(submit, `201 {"success":true,"created":true,"task":`+cliLater+`}`),
		},
		{name: "submit with JSON backoff", args: []string{"submit", "mail", "--run-at", "2026-01-02T04:04:05+01:00", "--backoff", `{ "initial_ms": 5 }`, "--retention", "7d"}, answers: one(submit, `201 {"success":true,"created":true,"task":`+cliTask+`}`)},
		{name: "submit without its type's delay", args: []string{"submit", "mail", "--key", "k", "--delay", "0s"}, answers: one("POST /api/tasks", `201 {"success":true,"created":true,"task":`+cliTask+`}`)},
		{name: "submit two times", args: []string{"submit", "mail", "--run-at", "2026-01-02T04:04:05Z", "--delay", "1s"}, want: 2},
		{name: "submit bad time", args: []string{"submit", "mail", "--run-at", "tomorrow"}, want: 2},
		{name: "submit bad label", args: []string{"submit", "mail", "--label", "gold"}, want: 2},
		{name: "submit bad backoff", args: []string{"submit", "mail", "--backoff", "soon"}, want: 2},
		{name: "submit bad retention", args: []string{"submit", "mail", "--retention", "-1"}, want: 2},
		{name: "submit file with a delay", args: []string{"submit", "mail", "--file", "-", "--delay", "1s"}, want: 2},
		{name: "get scheduled", args: []string{"get", "18"}, answers: one("GET /api/tasks/18", `200 {"success":true,"task":`+cliLater+`}`)},
		{name: "get cancel asked", args: []string{"get", "17"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":`+cliAsked+`}`)},
		{
			name: "list with the variables of a worker", args: []string{"list"}, environ: []string{"CLAIMQ_WORKER=w2", "CLAIMQ_TYPE=sms", "CLAIMQ_TASK_ID=7"},
			answers: one("GET /api/tasks?limit=100", `200 {"success":true,"tasks":[`+cliTask+`],"next_cursor":null}`),
		},
		{name: "list of all kinds", args: []string{"list"}, answers: one("GET /api/tasks?limit=100", `200 {"success":true,"tasks":[`+cliLater+`,`+cliAsked+`,`+cliDone+`],"next_cursor":null}`)},
		{
			name: "claim with all", args: []string{"claim", "--worker", "w1", "--type", "mail", "--sort-by", "random", "--sort-order", "ASC", "--max-attempts-remaining", "2", "--limit", "2"},
			answers: one("POST /api/tasks/claim", `200 {"success":true,"tasks":[`+cliTask+`,`+cliDone+`]}`),
		},
		{name: "claim none of many", args: []string{"claim", "--worker", "w1", "--limit", "2"}, want: 4, answers: one("POST /api/tasks/claim", `200 {"success":true,"tasks":[],"message":"No pending tasks available"}`)},
		{name: "claim none of many json", args: []string{"claim", "--worker", "w1", "--limit", "2", "--output", "json"}, want: 4, answers: one("POST /api/tasks/claim", `200 {"success":true,"tasks":[],"message":"No pending tasks available"}`)},
		{name: "claim no limit", args: []string{"claim", "--worker", "w1", "--limit", "0"}, want: 2},
		{name: "claim many for env", args: []string{"claim", "--worker", "w1", "--limit", "2", "--output", "env"}, want: 2},
		{name: "claim bad wait", args: []string{"claim", "--worker", "w1", "--wait", "-1s"}, want: 2},
		{
			name: "complete with follow-ups", args: []string{"complete", "17", "1", "--worker", "w1", "--token", "9", "--submit", `[{"params": 1}, {"params":2}]`, "--submit", `{ "params":3}`, "--submit", "[ ]", "--claim", "--type", "mail"},
			answers: one("POST /api/tasks/17/complete", `200 {"success":true,"task":{"id":17,"status":"completed"},"submitted":[{"id":18,"created":true},{"id":19,"created":false}],"claimed":{"task":`+cliTask+`}}`),
		},
		{name: "complete and claim none", args: []string{"complete", "17", "--worker", "w1", "--token", "9", "--claim"}, answers: one("POST /api/tasks/17/complete", `200 {"success":true,"task":{"id":17,"status":"completed"},"claimed":{"task":null}}`)},
		{name: "complete bad follow-up", args: []string{"complete", "17", "--worker", "w1", "--token", "9", "--submit", "mail"}, want: 2},
		{name: "fail for good", args: []string{"fail", "17", "--worker", "w1", "--token", "9", "--error", "no", "--permanent"}, answers: one("POST /api/tasks/17/fail", `200 {"success":true,"task":{"id":17,"status":"failed"}}`)},
		{name: "fail for a while", args: []string{"fail", "17", "--worker", "w1", "--token", "9", "--error", "no", "--retry-in", "1h"}, answers: one("POST /api/tasks/17/fail", `200 {"success":true,"task":`+cliLater+`}`)},
		{name: "fail both ways", args: []string{"fail", "17", "--worker", "w1", "--token", "9", "--error", "no", "--permanent", "--retry-in", "0s"}, want: 2},
		{name: "extend with progress", args: []string{"extend", "17", "--worker", "w1", "--token", "9", "--progress", `{ "done":3}`, "--lease", "1m"}, answers: one("POST /api/tasks/17/extend", `200 {"success":true,"lease_remaining_ms":60000,"cancel_requested":true}`)},
		{name: "extend bad progress", args: []string{"extend", "17", "--worker", "w1", "--token", "9", "--progress", `half`}, want: 2},
		{name: "release for a while", args: []string{"release", "17", "--worker", "w1", "--token", "9", "--delay", "1h"}, answers: one("POST /api/tasks/17/release", `200 {"success":true,"task":`+cliLater+`}`)},
		{name: "cancel", args: []string{"cancel", "17"}, answers: one("POST /api/tasks/17/cancel", `200 {"success":true,"task":{"id":17,"status":"cancelled"}}`)},
		{name: "cancel claimed", args: []string{"cancel", "17"}, answers: one("POST /api/tasks/17/cancel", `200 {"success":true,"task":`+cliAsked+`}`)},
		{name: "cancel completed", args: []string{"cancel", "17"}, want: 1, answers: one("POST /api/tasks/17/cancel", `409 {"success":false,"error":"Task is already completed","code":"task_completed","message":"Nothing is left to do","request_id":"r1"}`)},
		{name: "update", args: []string{"update", "18", "--priority", "0", "--run-at", "2026-01-02T04:04:05.75Z", "--label", "tier=gold"}, environ: []string{"CLAIMQ_PRIORITY=7"}, answers: one("PATCH /api/tasks/18", `200 {"success":true,"task":`+cliLater+`}`)},
		{name: "update clears", args: []string{"update", "17", "--run-at", "now", "--no-labels"}, answers: one("PATCH /api/tasks/17", `200 {"success":true,"task":`+cliTask+`}`)},
		{name: "update a delay", args: []string{"update", "17", "--delay", "1d12h"}, answers: one("PATCH /api/tasks/17", `200 {"success":true,"task":`+cliTask+`}`)},
		{name: "update a share key", args: []string{"update", "17", "--share-key", "customer-7"}, answers: one("PATCH /api/tasks/17", `200 {"success":true,"task":`+cliTask+`}`)},
		{name: "update without a share key", args: []string{"update", "17", "--share-key", "none"}, answers: one("PATCH /api/tasks/17", `200 {"success":true,"task":`+cliTask+`}`)},
		{name: "submit with a share key", args: []string{"submit", "mail", "{}", "--share-key", "customer-7"}, answers: one(submit, `201 {"success":true,"created":true,"task":`+cliTask+`}`)},
		{name: "type set fair", args: []string{"type", "set", "mail", "--fair", "--max-claimed-per-key", "2"}, answers: one("PATCH /api/types/mail", `200 {"success":true,"type":`+cliType+`}`)},
		{name: "type set not fair", args: []string{"type", "set", "mail", "--fair=false", "--max-claimed-per-key", "none"}, answers: one("PATCH /api/types/mail", `200 {"success":true,"type":`+cliType+`}`)},
		{name: "type set no number", args: []string{"type", "set", "mail", "--max-claimed-per-key", "few"}, want: 2},
		{name: "type set a rate of share keys", args: []string{"type", "set", "mail", "--rate-limit-per-key", "0.5"}, answers: one("PATCH /api/types/mail", `200 {"success":true,"type":`+cliType+`}`)},
		{name: "share set", args: []string{"share", "set", "mail", "customer/7", "--max-claimed", "2", "--weight", "300", "--rate-limit", "0.5"}, answers: one("PUT /api/types/mail/shares/customer%2F7", `200 {"success":true,"share":`+cliShare+`}`)},
		{name: "share set paused", args: []string{"share", "set", "mail", "customer/7", "--paused"}, answers: one("PUT /api/types/mail/shares/customer%2F7", `200 {"success":true,"share":`+cliPausedShare+`}`)},
		{name: "share set nothing", args: []string{"share", "set", "mail", "customer/7"}, want: 2},
		{name: "share set no number", args: []string{"share", "set", "mail", "customer/7", "--weight", "heavy"}, want: 2},
		{name: "share delete", args: []string{"share", "delete", "mail", "customer/7"}, answers: one("DELETE /api/types/mail/shares/customer%2F7", `200 {"success":true,"share":`+cliShare+`}`)},
		{name: "share list", args: []string{"share", "list", "mail"}, answers: one("GET /api/types/mail/shares", `200 {"success":true,"shares":[`+cliShare+`,`+cliPausedShare+`],"next":"customer/7"}`)},
		{name: "share list by pending", args: []string{"share", "list", "mail", "--by-pending", "--limit", "1"}, answers: one("GET /api/types/mail/shares?limit=1&order=pending", `200 {"success":true,"shares":[`+cliPausedShare+`],"next":null}`)},
		{name: "share list none", args: []string{"share", "list", "mail", "--after", "z"}, answers: one("GET /api/types/mail/shares?after=z", `200 {"success":true,"shares":[],"next":null}`)},
		{name: "share list too many", args: []string{"share", "list", "mail", "--limit", "1001"}, want: 2},
		{name: "list of a share key", args: []string{"list", "--share-key", "customer-7"}, answers: one("GET /api/tasks?limit=100&share_key=customer-7", `200 {"success":true,"tasks":[],"next_cursor":null}`)},
		{name: "update nothing", args: []string{"update", "17"}, environ: []string{"CLAIMQ_PRIORITY=7"}, want: 2},
		{name: "update labels both ways", args: []string{"update", "17", "--no-labels", "--label", "a=b"}, want: 2},
		{name: "types", args: []string{"types"}, answers: one("GET /api/types", `200 {"success":true,"types":[`+cliType+`,{"task_type":"sms","counts":{"pending":0},"paused":false,"max_claimed":null,"rate_limit":null,"lease_ms":null,"max_attempts":null,"backoff":null,"retention_ms":null}]}`)},
		{name: "types to look at", args: []string{"types", "--attention", "--order", "oldest", "--limit", "1", "--name", "ai"}, answers: one("GET /api/types?attention=true&limit=1&name=ai&order=oldest", `200 {"success":true,"types":[`+cliType+`],"total":9,"matched":4}`)},
		{name: "types none", args: []string{"types", "--limit", "0"}, want: 2},
		{name: "types of an order that is not", args: []string{"types", "--order", "speed"}, want: 2, answers: one("GET /api/types?order=speed", `400 {"success":false,"error":"Invalid order: name is allowed","code":"invalid_request","message":"Correct order","request_id":"r1","field":"order"}`)},
		{name: "types of one that is not", args: []string{"types", "--type", "fax"}, answers: one("GET /api/types?name=fax", `200 {"success":true,"types":[`+cliType+`]}`)},
		{name: "type show", args: []string{"type", "show", "mail"}, answers: one("GET /api/types/mail", `200 {"success":true,"type":`+cliType+`}`)},
		{name: "type set", args: []string{"type", "set", "mail", "--pause", "--max-claimed", "10", "--rate-limit", "2.5", "--lease", "2m", "--max-attempts", "0", "--backoff", "1s,10m,2,0.2", "--retention", "0"}, answers: one("PATCH /api/types/mail", `200 {"success":true,"type":`+cliType+`}`)},
		{
			name: "type set clears", args: []string{"type", "set", "a/b", "--resume", "--max-claimed", "none", "--rate-limit", "none", "--lease", "none", "--max-attempts", "none", "--backoff", "none", "--retention", "none"},
			answers: one("PATCH /api/types/a%2Fb", `200 {"success":true,"type":{"task_type":"a/b","counts":{},"paused":false}}`),
		},
		{
			name: "type set delay and dead letter", args: []string{"type", "set", "mail", "--delay", "2m", "--dead-letter", "mail-dead,5"},
			answers: one("PATCH /api/types/mail", `200 {"success":true,"type":{"task_type":"mail","counts":{},"delay_ms":120000,"dead_letter":{"task_type":"mail-dead","max_attempts":5}}}`),
		},
		{name: "type set bad dead letter", args: []string{"type", "set", "mail", "--dead-letter", "mail-dead,0"}, want: 2},
		{name: "type set bad delay", args: []string{"type", "set", "mail", "--delay", "soon"}, want: 2},
		{name: "type set nothing", args: []string{"type", "set", "mail"}, environ: []string{"CLAIMQ_LEASE=2m"}, want: 2},
		{name: "type set bad rate", args: []string{"type", "set", "mail", "--rate-limit", "NaN"}, want: 2},
		{name: "get by default", args: []string{"get", "17"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":{"id":17,"task_type":"mail","status":"pending","max_attempts":3,"in_force":{"lease_ms":30000,"backoff":null,"retention_ms":86400000}}}`)},
		{name: "get of a parent by default", args: []string{"get", "17"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":{"id":17,"task_type":"mail","status":"running","finalize":"auto","in_force":{"retention_ms":86400000}}}`)},
		{name: "defaults", args: []string{"defaults"}, answers: one("GET /api/defaults", `200 {"success":true,"defaults":{"lease_ms":30000,"max_attempts":3,"backoff":null,"retention_ms":86400000,"failed_retention_ms":1209600000}}`)},
		{
			name: "defaults set", args: []string{"defaults", "set", "--lease", "2m", "--max-attempts", "10", "--backoff", "1s,1h,2,0.2", "--retention", "forever"},
			answers: one("PATCH /api/defaults", `200 {"success":true,"defaults":{"lease_ms":120000,"max_attempts":10,"backoff":{"initial_ms":1000,"max_ms":3600000,"factor":2,"jitter":0.2},"retention_ms":-1,"failed_retention_ms":-1}}`),
		},
		{
			name: "defaults set clears", args: []string{"defaults", "set", "--lease", "none", "--max-attempts", "none", "--backoff", "none", "--retention", "none"},
			answers: one("PATCH /api/defaults", `200 {"success":true,"defaults":{"lease_ms":30000,"max_attempts":0,"backoff":{"initial_ms":0,"max_ms":86400000,"factor":2,"jitter":0},"retention_ms":0,"failed_retention_ms":0}}`),
		},
		{name: "defaults set nothing", args: []string{"defaults", "set"}, environ: []string{"CLAIMQ_LEASE=2m"}, want: 2},
		{name: "defaults set bad attempts", args: []string{"defaults", "set", "--max-attempts", "-1"}, want: 2},
		{name: "defaults of what", args: []string{"defaults", "sett"}, want: 2},
		{name: "type set both ways", args: []string{"type", "set", "mail", "--pause", "--resume"}, want: 2},
		{
			name: "batch", args: []string{"batch", "-"}, want: 1,
			stdin: "{\"op\":\"submit\", \"params\":[1,  2]}\n[{\"op\":\"claim\",\"worker_id\":\"w1\"},\n{\"op\":\"complete\",\"id\":7,\"worker_id\":\"w1\",\"claim_token\":3}]{\"op\":\"cancel\",\"id\":17}{\"op\":\"delete\",\"id\":8}{\"op\":\"extend\",\"id\":9,\"worker_id\":\"w1\"}{\"op\":\"claim\",\"worker_id\":\"w1\",\"limit\":2}",
			answers: one("POST /api/batch", `200 {"success":true,"failed":1,"results":[{"success":true,"created":true,"task":{"id":5}},{"success":true,"task":`+cliTask+`},`+
				`{"success":false,"error":"Claim is no longer valid","code":"stale_claim","message":"Stop"},{"success":true,"task":`+cliAsked+`},{"success":true,"deleted":1},{"success":true,"lease_remaining_ms":90000},{"success":true,"tasks":[`+cliTask+`,`+cliDone+`]}]}`),
		},
		{name: "batch refused", args: []string{"batch", "-", "--atomic"}, want: 1, stdin: `{"op":"cancel","id":1}{"op":"cancel","id":17}`, answers: one("POST /api/batch", `409 {"success":false,"error":"Task is already completed","code":"task_completed","message":"Nothing is left to do","failed_op":1,"request_id":"r1"}`)},
		{name: "batch unknown", args: []string{"batch", "-"}, want: 3, stdin: `{"op":"retry","id":17}`, answers: one("POST /api/batch", "break")},
		{name: "batch of nothing", args: []string{"batch", "-"}, stdin: "\n", want: 2},
		{name: "batch without op", args: []string{"batch", "-"}, stdin: `{"id":17}`, want: 2},
		{name: "batch op of a wrong type", args: []string{"batch", "-"}, stdin: `{"op":"cancel","id":17}{"op":5}`, want: 2},
		{name: "batch no file", args: []string{"batch", "/nowhere/at/all"}, want: 2},
		{name: "cluster upgrade", args: []string{"cluster", "upgrade", "--finalize"}, answers: one("POST /api/cluster/upgrade", `200 {"success":true,"feature_level":2}`)},
		{name: "cluster upgrade unsaid", args: []string{"cluster", "upgrade"}, environ: []string{"CLAIMQ_FINALIZE=true"}, answers: one("POST /api/cluster/upgrade", `200 {"success":true,"feature_level":4,"would_be":5,"nodes":[`+
			`{"node_id":"n1","version":"v2","feature_level":5,"answers":true},{"node_id":"n2","version":"v2","feature_level":5,"answers":true}]}`)},
		{name: "cluster upgrade too early", args: []string{"cluster", "upgrade"}, answers: one("POST /api/cluster/upgrade", `200 {"success":true,"feature_level":4,"would_be":4,"nodes":[`+
			`{"node_id":"n1","version":"v2","feature_level":5,"answers":true},{"node_id":"n2","version":"v1","feature_level":4,"answers":true}]}`)},
		{name: "cluster upgrade done", args: []string{"cluster", "upgrade"}, answers: one("POST /api/cluster/upgrade", `200 {"success":true,"feature_level":5,"would_be":5,"nodes":[{"node_id":"n1","version":"v2","feature_level":5,"answers":true}]}`)},
		{name: "cluster upgrade half gone", args: []string{"cluster", "upgrade"}, answers: one("POST /api/cluster/upgrade", `200 {"success":true,"feature_level":4,"would_be":4,"nodes":[{"node_id":"n1","version":"v2","feature_level":5,"answers":true},{"node_id":"n2","version":"v2","feature_level":4,"answers":false}]}`)},
		{name: "list", args: []string{"list", "--status", "failed", "--type", "mail", "--limit", "3"}, answers: map[string]string{
			"GET /api/tasks?limit=3&status=failed&task_type=mail":           `200 {"success":true,"tasks":[` + cliDone + `],"next_cursor":"c1"}`,
			"GET /api/tasks?cursor=c1&limit=2&status=failed&task_type=mail": `200 {"success":true,"tasks":[` + cliTask + `,` + cliTask + `],"next_cursor":"c2"}`,
		}},
		{name: "list json", args: []string{"list", "--output", "json"}, answers: one("GET /api/tasks?limit=100", `200 {"success":true, "tasks":[`+cliTask+`],"next_cursor":null}`)},
		{name: "list nothing", args: []string{"list"}, answers: one("GET /api/tasks?limit=100", `200 {"success":true,"tasks":[],"next_cursor":null}`)},
		{name: "list bad limit", args: []string{"list", "--limit", "0"}, want: 2},
		{name: "delete", args: []string{"delete", "17"}, answers: one("DELETE /api/tasks/17", `200 {"success":true,"deleted":1}`)},
		{name: "stats", args: []string{"stats"}, answers: one("GET /api/stats", `200 {"success":true,"index":42,"counts":{"pending":3,"claimed":1,"completed":10,"failed":0,"cancelled":2},"types":{"sms":{"pending":1,"cancelled":2},"mail":{"pending":2,"claimed":1,"completed":10}},"bytes":4096,"oldest_pending_age_ms":93784005}`)},
		{name: "stats of some types", args: []string{"stats"}, answers: one("GET /api/stats", `200 {"success":true,"index":42,"counts":{"pending":3},"types":{"mail":{"pending":2}},"types_left_out":12,"bytes":4096,"oldest_pending_age_ms":5}`)},
		{name: "stats of a type that is left out", args: []string{"stats", "--type", "sms"}, answers: one("GET /api/stats", `200 {"success":true,"index":42,"counts":{"pending":3},"types":{"mail":{"pending":2}},"types_left_out":12,"bytes":4096,"oldest_pending_age_ms":5}`)},
		{name: "stats of a type", args: []string{"stats", "--type", "sms"}, answers: one("GET /api/stats", `200 {"success":true,"index":42,"counts":{"pending":3},"types":{"sms":{"pending":1},"mail":{"pending":2}},"bytes":4096,"oldest_pending_age_ms":5}`)},
		{name: "cluster status", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":7,"feature_level":1,"nodes":[`+
			`{"node_id":"n1","peer_addr":"127.0.0.1:7401","http_addr":"http://127.0.0.1:7400","suffrage":"voter","state":"leader","last_contact_ms":0,"applied_index":42,"version":"v1","healthy":true},`+
			`{"node_id":"n2","peer_addr":"127.0.0.1:7411","http_addr":"http://127.0.0.1:7410","suffrage":"voter","state":"unknown","last_contact_ms":-1,"applied_index":0,"version":"v1","healthy":false,"problem":"not reached for 12 s"}]}`)},
		{name: "cluster status well", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":7,"feature_level":5,"nodes":[`+
			cliNode("n1", "voter", "leader", true, "")+","+cliNode("n2", "voter", "follower", true, "")+","+cliNode("n3", "voter", "follower", true, "")+`]}`)},
		{name: "cluster status zones", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":7,"feature_level":5,"nodes":[`+
			strings.ReplaceAll(cliNode("n1", "voter", "leader", true, ""), `"version"`, `"time_zones":{"version":"2026f","sum":"0a"},"version"`)+","+cliNode("n2", "voter", "unknown", false, "it does not answer")+","+
			strings.ReplaceAll(cliNode("n3", "voter", "follower", true, "it has the time zones of 2026e"), `"version"`, `"time_zones":{"version":"2026e","sum":"0b"},"version"`)+`]}`)},
		{name: "cluster status warnings", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":7,"feature_level":5,"nodes":[`+
			cliNode("n1", "voter", "leader", true, "")+","+cliNode("n2", "voter", "follower", true, "its wall clock is 2s ahead of that of n1")+","+
			strings.ReplaceAll(cliNode("n3", "voter", "follower", true, ""), `"v1"`, `"v2"`)+","+cliNode("n4", "voter", "follower", true, "")+","+cliNode("n5", "nonvoter", "follower", true, "it is catching up")+`]}`)},
		{name: "cluster status ill", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":7,"feature_level":5,"nodes":[`+
			cliNode("n1", "voter", "leader", true, "")+","+cliNode("n2", "voter", "unknown", false, "it was last heard of 3m0s ago")+","+cliNode("n3", "voter", "follower", true, "")+`]}`)},
		{name: "cluster status no quorum", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"","term":9,"feature_level":5,"nodes":[`+
			cliNode("n1", "voter", "unknown", false, "it does not answer")+","+cliNode("n2", "voter", "candidate", false, "it finds no leader")+","+cliNode("n3", "voter", "unknown", false, "it does not answer")+`]}`)},
		{name: "cluster status no leader", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"","term":9,"feature_level":5,"nodes":[`+cliNode("n1", "voter", "follower", true, "")+`]}`)},
		{name: "cluster status alone", args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":9,"feature_level":5,"nodes":[`+cliNode("n1", "voter", "leader", true, "")+`]}`)},
		{name: "cluster join", args: []string{"cluster", "join", "n4", "127.0.0.1:7431"}, answers: one("POST /api/cluster/join", `200 {"success":true,"node":`+cliNode("n4", "nonvoter", "unknown", true, "")+`}`)},
		{name: "cluster join nonvoter", args: []string{"cluster", "join", "n4", "127.0.0.1:7431", "--nonvoter"}, answers: one("POST /api/cluster/join", `200 {"success":true,"node":`+cliNode("n4", "nonvoter", "unknown", true, "")+`}`)},
		{name: "cluster token list", args: []string{"cluster", "token", "list"}, answers: one("GET /api/cluster/tokens", `200 {"success":true,"tokens":[{"id":"13657558360c","uses":3,"used":1,"created_at":"2026-11-21T12:00:00.000Z","expires_at":"2026-11-21T13:00:00.000Z"}]}`)},
		{name: "cluster token list none", args: []string{"cluster", "token", "list"}, answers: one("GET /api/cluster/tokens", `200 {"success":true,"tokens":[]}`)},
		{name: "cluster token revoke", args: []string{"cluster", "token", "revoke", "13657558360c"}, answers: one("POST /api/cluster/tokens/revoke", `200 {"success":true}`)},
		{name: "cluster token revoke unknown", args: []string{"cluster", "token", "revoke", "000000000000"}, want: 1, answers: one("POST /api/cluster/tokens/revoke", `409 {"success":false,"error":"No join token has the id \"000000000000\"","code":"membership_refused","message":"It may have expired","request_id":"r1"}`)},
		{name: "cluster join no address", args: []string{"cluster", "join", "n4"}, want: 2},
		{name: "cluster promote", args: []string{"cluster", "promote", "n4"}, answers: one("POST /api/cluster/promote", `200 {"success":true,"node":`+cliNode("n4", "voter", "follower", true, "")+`}`)},
		{name: "cluster demote", args: []string{"cluster", "demote", "n4"}, answers: one("POST /api/cluster/demote", `200 {"success":true,"node":`+cliNode("n4", "nonvoter", "follower", true, "")+`}`)},
		{name: "cluster demote refused", args: []string{"cluster", "demote", "n1"}, want: 1, answers: one("POST /api/cluster/demote", `409 {"success":false,"error":"n1 is the last voter","code":"membership_refused","message":"A cluster needs one","request_id":"r1"}`)},
		{name: "cluster transfer", args: []string{"cluster", "transfer"}, answers: one("POST /api/cluster/transfer", `200 {"success":true,"leader":"n2"}`)},
		{name: "cluster transfer unknown", args: []string{"cluster", "transfer"}, want: 3, answers: one("POST /api/cluster/transfer", "break")},
		{name: "cluster hash", args: []string{"cluster", "hash"}, answers: one("GET /api/cluster/hash", `200 {"success":true,"index":42,"agree":true,"nodes":[{"node_id":"n1","hash":"00ff"},{"node_id":"n2","hash":""}]}`)},
		{name: "cluster hash differs", args: []string{"cluster", "hash"}, answers: one("GET /api/cluster/hash", `200 {"success":true,"index":42,"agree":false,"nodes":[{"node_id":"n1","hash":"00ff"},{"node_id":"n2","hash":"0100"}]}`), want: 1},
		{name: "cluster hash differs json", args: []string{"cluster", "hash", "--output", "json"}, answers: one("GET /api/cluster/hash", `200 {"success":true,"index":42,"agree":false,"nodes":[{"node_id":"n1","hash":"00ff"},{"node_id":"n2","hash":"0100"}]}`), want: 1},
		{name: "cluster remove", args: []string{"cluster", "remove", "n3"}, answers: one("POST /api/cluster/remove", `200 {"success":true}`)},
		{name: "cluster remove refused", args: []string{"cluster", "remove", "n1"}, want: 1, answers: one("POST /api/cluster/remove", `409 {"success":false,"error":"n1 leads","code":"membership_refused","message":"Stop it first: another node takes over, then remove it","request_id":"r1"}`)},
		{name: "work help", args: []string{"work", "--help"}},
		{name: "work without type", args: []string{"work", "--", "true"}, want: 2},
		{name: "work without command", args: []string{"work", "--type", "mail"}, want: 2},
		{name: "work of no command", args: []string{"work", "--type", "mail", "/nowhere/at/all", "--its-own"}, want: 2},
		{name: "work bad type", args: []string{"work", "--type", "a b", "true"}, want: 2},
		{name: "work bad concurrency", args: []string{"work", "--type", "mail", "--concurrency", "0", "true"}, want: 2},
		{name: "work bad lease", args: []string{"work", "--type", "mail", "--lease", "1ms", "true"}, want: 2},
		{name: "work serve without command", args: []string{"work", "--serve"}, want: 2},
		{name: "work serve with a type", args: []string{"work", "--serve", "--type", "mail", "true"}, want: 2},
		{name: "work serve without timeout", args: []string{"work", "--serve", "--timeout", "0", "true"}, want: 2},
		{name: "work serve bad memory", args: []string{"work", "--serve", "--memory-per-process", "-1", "true"}, want: 2},
		{name: "work serve listen with a command", args: []string{"work", "--serve", "--listen", "unix:/tmp/s", "true"}, want: 2},
		{name: "work serve bad listen", args: []string{"work", "--serve", "--listen", "127.0.0.1:1"}, want: 2},
		{name: "work processes alone", args: []string{"work", "--type", "mail", "--processes", "2", "true"}, want: 2},
		{name: "version", args: []string{"version"}},
		{name: "version by flag", args: []string{"--version"}},
		{name: "help of an unknown command", args: []string{"help", "sumbit"}, want: 2},
		{name: "help of an unknown cluster command", args: []string{"help", "cluster", "statsu"}, want: 2},
		{name: "help of a leading command", args: []string{"help", "bulk"}},
		{name: "unknown command", args: []string{"sumbit"}, want: 2},
		{name: "unknown cluster command", args: []string{"cluster", "burn"}, want: 2},
		{name: "unknown flag", args: []string{"get", "17", "--colour"}, want: 2},
		{name: "bad output", args: []string{"get", "17", "--output", "xml"}, want: 2},
		{name: "bad variable", args: []string{"get", "17"}, environ: []string{"CLAIMQ_TIMEOUT=soon"}, want: 2},
		{name: "bad endpoint", args: []string{"get", "17", "--endpoint", "localhost"}, want: 2},
		{name: "too many arguments", args: []string{"get", "17", "18"}, want: 2},
		{name: "completion of nothing", args: []string{"completion", "csh"}, want: 2},
	}
}

// random matches the values that differ from run to run.
var random = regexp.MustCompile(`[A-Z2-7]{26}`)

func TestRun(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(cliCases(), sightCases(), stepsCases(), terminalCases(), watchCases())
	want := readGoldens(t, cases)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var code int
			var got string
			for times := time.Duration(1); ; times *= 2 {
				code, got = runCase(t, test, times)
				if !strings.Contains(got, outOfTime) || times == 128 {
					break
				}
			}
			if code != test.want {
				t.Errorf("exit code %d, want %d", code, test.want)
			}
			want.check(t, test.name, got)
		})
	}
}

// outOfTime is printed by no case. On a busy machine the time of a short --timeout may be over
// before the first answer; then the case has to have more of it.
const outOfTime = "context deadline exceeded"

// runCase runs a case whose --timeout is so many times as long, and returns its transcript.
func runCase(t *testing.T, test cliCase, times time.Duration) (code int, got string) {
	t.Helper()
	api := &fakeAPI{answers: test.answers}
	server := httptest.NewServer(api)
	defer server.Close()
	if test.noNode {
		server.Close()
	}
	args := slices.Clone(test.args)
	if at := slices.Index(args, "--timeout"); at >= 0 && times > 1 {
		timeout, err := time.ParseDuration(args[at+1])
		if err != nil {
			t.Fatal(err)
		}
		args[at+1] = (timeout * times).String()
	}
	var stdout, stderr bytes.Buffer
	a := &term.App{
		Stdin: strings.NewReader(test.stdin), Stdout: &stdout, Stderr: &stderr, Width: test.width,
		Environ: append([]string{"CLAIMQ_ENDPOINTS=" + server.URL}, test.environ...),
		Now:     func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 750e6, time.UTC) },
	}
	code = run(t.Context(), a, args)
	return code, transcript(test, code, stdout.String(), stderr.String(), api.requests(), server.URL)
}

// transcript returns what a case sent and printed.
func transcript(test cliCase, code int, stdout, stderr string, requests []string, url string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "$ claimq %s\n", strings.ReplaceAll(strings.Join(test.args, " "), "\x1b", "<ESC>"))
	// The number of repeats of a call does not matter here.
	for _, r := range slices.Compact(requests) {
		fmt.Fprintf(&b, "> %s\n", r)
	}
	fmt.Fprintf(&b, "exit code %d\n--- stdout\n%s--- stderr\n%s", code, stdout, stderr)
	out := strings.ReplaceAll(b.String(), url, "http://NODE")
	out = strings.ReplaceAll(out, strings.TrimPrefix(url, "http://"), "NODE")
	out = regexp.MustCompile(`given up after \d+ tries.*`).ReplaceAllString(out, "given up after N tries: REASON")
	return random.ReplaceAllString(out, "RANDOM")
}

// goldenFile has the transcript of each case, below a line with its name.
const goldenFile = "testdata/cli.txt"

// goldenMark begins the line with the name of a case.
const goldenMark = "=== "

// goldens are the transcripts by case.
type goldens struct {
	mu   sync.Mutex
	want map[string]string // guarded by mu
}

// readGoldens reads goldenFile. With -update the file is written again when the test ends.
func readGoldens(t *testing.T, cases []cliCase) *goldens {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	g := &goldens{want: map[string]string{}}
	for section := range strings.SplitSeq(strings.TrimPrefix(string(text), goldenMark), "\n"+goldenMark) {
		name, transcript, _ := strings.Cut(section, "\n")
		if !slices.ContainsFunc(cases, func(c cliCase) bool { return c.name == name }) {
			if !*updateGolden {
				t.Errorf("%s has %q, which is no case (go test -update removes it)", goldenFile, name)
			}
			continue
		}
		g.want[name] = transcript
	}
	if *updateGolden {
		t.Cleanup(func() { g.write(t) })
	}
	return g
}

// check compares the transcript of a case, or takes it over.
func (g *goldens) check(t *testing.T, name, got string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if *updateGolden {
		g.want[name] = got
	}
	if diff := cmp.Diff(g.want[name], got); diff != "" {
		t.Errorf("-want +got (go test -update writes it)\n%s", diff)
	}
}

func (g *goldens) write(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(g.want)) {
		all = append(all, goldenMark+name+"\n"+g.want[name])
	}
	if err := os.WriteFile(goldenFile, []byte(strings.Join(all, "\n")), 0o644); err != nil {
		t.Error(err)
	}
}

func TestRun_readsFiles(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{answers: map[string]string{"POST /api/tasks": `201 {"success":true,"created":true,"task":` + cliTask + `}`}}
	server := httptest.NewServer(api)
	defer server.Close()
	path := filepath.Join(t.TempDir(), "params.json")
	if err := os.WriteFile(path, []byte("{\"a\":  1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
	if code := run(t.Context(), a, []string{"submit", "mail", "@" + path, "--endpoint", server.URL, "--key", "k"}); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if want := `POST /api/tasks {"params":{"a":  1},"task_type":"mail","idempotency_key":"k"}`; api.requests()[0] != want {
		t.Errorf("sent %s\nwant %s", api.requests()[0], want)
	}
}

func TestRun_submitsLargeFilesInParts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sizes []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := bytes.Count(body, []byte(`"params"`))
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, n)
		fmt.Fprintf(w, `{"success":true,"results":[%s],"failed":0}`, strings.TrimSuffix(strings.Repeat(`{"id":1,"created":true},`, n), ","))
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(strings.Repeat("{\"params\":1}\n", 2100)), Stdout: &stdout, Stderr: &stderr}
	if code := run(t.Context(), a, []string{"submit", "mail", "--file", "-", "--endpoint", server.URL}); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if diff := cmp.Diff([]int{1000, 1000, 100}, sizes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if want := "submitted 2,100 tasks, 0 there already, 0 lines refused\n"; stdout.String() != want {
		t.Errorf("got %q", stdout.String())
	}
}

// When an answer to submit --file is lost, it is repeated with the same keys, so no task is submitted twice.
func TestRun_repeatsAFileWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if bodies = append(bodies, string(body)); len(bodies) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		io.WriteString(w, `{"success":true,"results":[{"id":1,"created":false}],"failed":0}`)
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader("{\"params\":1}\n"), Stdout: &stdout, Stderr: &stderr}
	if code := run(t.Context(), a, []string{"submit", "mail", "--file", "-", "--endpoint", server.URL}); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] {
		t.Errorf("sent %q", bodies)
	}
	if !strings.HasPrefix(stdout.String(), "submitted 1 task,") {
		t.Errorf("got %q", stdout.String())
	}
}

// A claim waits with several requests. Each has a new id after an empty answer, and only the last answer is shown.
func TestRun_waitsForATask(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []struct {
		WaitMS         int64  `json:"wait_ms"`
		ClaimRequestID string `json:"claim_request_id"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, struct {
			WaitMS         int64  `json:"wait_ms"`
			ClaimRequestID string `json:"claim_request_id"`
		}{})
		json.NewDecoder(r.Body).Decode(&bodies[len(bodies)-1])
		switch len(bodies) {
		case 1:
			w.WriteHeader(404)
			io.WriteString(w, `{"success":false,"error":"No pending tasks available","code":"no_pending_tasks"}`)
		case 2: // its answer is lost
			w.WriteHeader(502)
		default:
			io.WriteString(w, `{"success":true,"task":`+cliTask+`}`)
		}
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
	if code := run(t.Context(), a, []string{"claim", "--worker", "w1", "--wait", "1h", "--lease", "20s", "--output", "json", "--endpoint", server.URL}); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if len(bodies) != 3 || bodies[0].WaitMS != 6_000 || bodies[0].ClaimRequestID == bodies[1].ClaimRequestID || bodies[1] != bodies[2] {
		t.Errorf("sent %+v", bodies)
	}
	if want := `{"success":true,"task":` + cliTask + "}\n"; stdout.String() != want {
		t.Errorf("printed %s", stdout.String())
	}
}

// A wait for the end of a task that runs out says why. Whether the last request still waits depends on the machine.
func TestRun_waitsForAnEndInVain(t *testing.T) {
	t.Parallel()
	task := `200 {"success":true,"task":` + cliTask + `}`
	api := &fakeAPI{answers: map[string]string{
		"POST /api/tasks": `201 {"success":true,"created":true,"task":` + cliTask + `}`, "GET /api/tasks/17?wait_ms=1": task, "GET /api/tasks/17?wait_ms=0": task,
	}}
	server := httptest.NewServer(api)
	defer server.Close()
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
	if code := run(t.Context(), a, []string{"submit", "mail", "--key", "k", "--wait", "1ms", "--endpoint", server.URL}); code != 3 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if want := "claimq: task 17 has not ended yet: it is claimed; 'claimq why 17' says why\n"; stderr.String() != want {
		t.Errorf("said %s", stderr.String())
	}
	if !strings.HasPrefix(stdout.String(), "submitted task 17\nid          17\n") {
		t.Errorf("printed %s", stdout.String())
	}
}

func TestCommands_haveExamples(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() != "help" && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		if cmd.Short == "" {
			t.Errorf("%s does not say what it does", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(&term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}))
}

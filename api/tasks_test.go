package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

// TestServer_Lifecycle follows one task from its submit to its deletion, and checks every answer byte for byte.
func TestServer_Lifecycle(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	open := `"max_attempts":3,`
	for _, step := range []struct {
		target, body string
		advance      int64
		status       int
		index        string
		want         string
	}{
		{
			target: "POST /api/tasks", body: `{"task_type":"mail","params":{"to": "a"},"priority":-7,"idempotency_key":"k/1","lease_ms":60000}`,
			status: 201, index: "1",
			want: `{"success":true,"task":{"id":1,"task_type":"mail","params":{"to": "a"},"priority":-7,` + open + `"attempts":0,"idempotency_key":"k/1","status":"pending","lease_ms":60000,` +
				`"worker_id":null,"claim_token":null,"claimed_at":null,"lease_expires_at":null,"lease_remaining_ms":null,` +
				`"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.000Z","completed_at":null,"cancel_requested":false},"created":true}`,
		},
		{
			target: "POST /api/tasks/claim", body: `{"worker_id":"w_1-A","lease_ms":1500}`, advance: 250, status: 200, index: "2",
			want: `{"success":true,"task":{"id":1,"task_type":"mail","params":{"to": "a"},"priority":-7,` + open + `"attempts":1,"idempotency_key":"k/1","status":"claimed","lease_ms":60000,` +
				`"worker_id":"w_1-A","claim_token":1,"claimed_at":"2026-03-01T12:00:00.250Z","lease_expires_at":"2026-03-01T12:00:01.750Z","lease_remaining_ms":1500,` +
				`"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.250Z","completed_at":null,"cancel_requested":false},"message":"Task claimed successfully"}`,
		},
		{
			target: "POST /api/tasks/1/extend", body: `{"worker_id":"w_1-A","claim_token":1,"lease_ms":2000}`, advance: 500, status: 200, index: "3",
			want: `{"success":true,"task":{"id":1,"task_type":"mail","params":{"to": "a"},"priority":-7,` + open + `"attempts":1,"idempotency_key":"k/1","status":"claimed","lease_ms":60000,` +
				`"worker_id":"w_1-A","claim_token":1,"claimed_at":"2026-03-01T12:00:00.250Z","lease_expires_at":"2026-03-01T12:00:02.750Z","lease_remaining_ms":2000,` +
				`"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.750Z","completed_at":null,"cancel_requested":false},"lease_remaining_ms":2000,"cancel_requested":false}`,
		},
		{
			target: "POST /api/tasks/1/complete", body: `{"worker_id":"w_1-A","claim_token":1,"result":[1, 2]}`, advance: 0, status: 200, index: "4",
			want: `{"success":true,"task":{"id":1,"task_type":"mail","params":{"to": "a"},"priority":-7,` + open + `"attempts":1,"idempotency_key":"k/1","status":"completed","lease_ms":60000,` +
				`"worker_id":"w_1-A","claim_token":1,"claimed_at":"2026-03-01T12:00:00.250Z","lease_expires_at":null,"lease_remaining_ms":null,` +
				`"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.750Z","completed_at":"2026-03-01T12:00:00.750Z","result":[1, 2],"cancel_requested":false}}`,
		},
		{
			target: "GET /api/tasks/by-key/k%2F1", status: 200, index: "4",
			want: `{"success":true,"task":{"id":1,"task_type":"mail","params":{"to": "a"},"priority":-7,` + open + `"attempts":1,"idempotency_key":"k/1","status":"completed","lease_ms":60000,` +
				`"worker_id":"w_1-A","claim_token":1,"claimed_at":"2026-03-01T12:00:00.250Z","lease_expires_at":null,"lease_remaining_ms":null,` +
				`"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.750Z","completed_at":"2026-03-01T12:00:00.750Z","result":[1, 2],"cancel_requested":false,` +
				`"in_force":{"lease_ms":60000,"backoff":null,"retention_ms":86400000},"attempts_log":[{"worker_id":"w_1-A","claim_token":1,"claimed_at":"2026-03-01T12:00:00.250Z","ended_at":"2026-03-01T12:00:00.750Z","outcome":"completed"}]}}`,
		},
		{
			target: "GET /api/tasks?status=completed", status: 200, index: "4",
			want: `{"success":true,"tasks":[{"id":1,"task_type":"mail","priority":-7,` + open + `"attempts":1,"idempotency_key":"k/1","status":"completed","lease_ms":60000,` +
				`"worker_id":"w_1-A","claim_token":1,"claimed_at":"2026-03-01T12:00:00.250Z","lease_expires_at":null,"lease_remaining_ms":null,` +
				`"created_at":"2026-03-01T12:00:00.000Z","updated_at":"2026-03-01T12:00:00.750Z","completed_at":"2026-03-01T12:00:00.750Z","cancel_requested":false}],"next_cursor":null}`,
		},
		{target: "DELETE /api/tasks/1", status: 200, index: "5", want: `{"success":true,"deleted":1}`},
	} {
		node.Advance(step.advance)
		got := s.call(t, step.target, step.body)
		if got.status != step.status {
			t.Fatalf("%s: status %d, want %d: %s", step.target, got.status, step.status, got.body)
		}
		if diff := cmp.Diff(step.want, got.body); diff != "" {
			t.Errorf("%s: answer (-want +got):\n%s", step.target, diff)
		}
		if got.header["X-Claimq-Index"] != step.index {
			t.Errorf("%s: X-Claimq-Index %q, want %q", step.target, got.header["X-Claimq-Index"], step.index)
		}
		if got.header["Content-Type"] != "application/json" {
			t.Errorf("%s: Content-Type %q", step.target, got.header["Content-Type"])
		}
	}
}

func TestServer_SubmitTakenKey(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitOne(t, s, `{"idempotency_key":"k","params":{"a":1}}`)

	same := s.call(t, "POST /api/tasks", `{"idempotency_key":"k","params":{"a":1}}`)
	if got := same.good(t, 200); got.Created || got.SameRequest != nil || !strings.Contains(same.body, `"created":false`) {
		t.Errorf("same again: %s", same.body)
	}
	other := s.call(t, "POST /api/tasks", `{"idempotency_key":"k","params":{"a":2}}`)
	if got := other.good(t, 200); got.Created || got.SameRequest == nil || *got.SameRequest || string(got.Task.Params) != `{"a":1}` {
		t.Errorf("another: %s", other.body)
	}
}

func TestServer_SubmitMany(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	got := s.call(t, "POST /api/tasks", `{"tasks":[
		{"params":1,"idempotency_key":"k"},
		{"params":2,"priority":1.5,"more":[{}]},
		{"params":3,"idempotency_key":"k"},
		7,
		{"params":4,"prio":1,"task_type":"x"},
		{"payload":"AP8="}]}`)
	want := `{"success":true,"results":[{"id":1,"created":true},` +
		`{"error":"Invalid tasks[1].priority: must be an integer from -2147483648 to 2147483647","code":"invalid_task","message":"Correct the field and send the request again","field":"tasks[1].priority"},` +
		`{"id":1,"created":false,"same_request":false},` +
		`{"error":"Invalid tasks[3]: must be an object","code":"invalid_task","message":"Correct the field and send the request again","field":"tasks[3]"},` +
		`{"error":"Unknown field: tasks[4].prio","code":"invalid_task","message":"Did you mean priority? Names are case-sensitive","field":"tasks[4].prio"},` +
		`{"id":2,"created":true}],"failed":3}`
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if got.status != 200 || len(node.Proposed) != 1 {
		t.Errorf("status %d, %d commands, want 200 and one", got.status, len(node.Proposed))
	}
}

func TestServer_SubmitManyNoneValid(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	got := s.call(t, "POST /api/tasks", `{"tasks":[{},{"params":1,"x":2}]}`)
	if a := got.good(t, 200); a.Failed != 2 || len(node.Proposed) != 0 {
		t.Errorf("%d commands, answer %s", len(node.Proposed), got.body)
	}
}

func TestServer_SubmitManyAtTheLimit(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	many := func(n int) string {
		return `{"tasks":[` + strings.TrimSuffix(strings.Repeat(`{"params":0},`, n), ",") + `]}`
	}
	if a := s.call(t, "POST /api/tasks", many(1000)).good(t, 200); len(a.Results) != 1000 || a.Failed != 0 {
		t.Errorf("1,000 tasks: %d results, %d failed", len(a.Results), a.Failed)
	}
	if f := s.call(t, "POST /api/tasks", many(1001)).refused(t, wire.CodeInvalidRequest); f["field"] != "tasks" {
		t.Errorf("1,001 tasks: %v", f)
	}
}

// TestServer_ParamsKept checks that params, payload and result are returned with the bytes that were sent.
func TestServer_ParamsKept(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for _, params := range []string{
		`{ "a" : [ 1 , 2.50e1 ] }`, "[\n\t1]", `"\u00e9\u2028 <&> \/"`, `false`, `-0`, `12345678901234567890.10`, `""`, `"é😀"`,
	} {
		id := submitOne(t, s, `{"params":  `+params+`  }`)
		got := s.call(t, fmt.Sprintf("GET /api/tasks/%d", id), "")
		if !strings.Contains(got.body, `"params":`+params+`,"priority"`) {
			t.Errorf("params %s came back as %s", params, got.body)
		}
	}
	id := submitOne(t, s, `{"payload":"AAECgP8="}`)
	if got := s.call(t, fmt.Sprintf("GET /api/tasks/%d", id), "").good(t, 200); string(got.Task.Payload) != "\x00\x01\x02\x80\xff" {
		t.Errorf("payload came back as %q", got.Task.Payload)
	}
}

func TestServer_List(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for i := range 7 {
		submitOne(t, s, fmt.Sprintf(`{"params":%d,"task_type":"t%d","idempotency_key":"k %d"}`, i, i%2, i))
		node.Advance(1000)
	}
	claimOne(t, s, "w1") // task 1
	for _, c := range []struct{ query, ids string }{
		{"", "1 2 3 4 5 6 7"},
		{"?order=desc", "7 6 5 4 3 2 1"},
		{"?status=claimed", "1"},
		{"?status=pending&task_type=t1", "2 4 6"},
		{"?worker_id=w1", "1"},
		{"?idempotency_key=k+3", "4"},
		{"?idempotency_key=k%203", "4"},
		{"?idempotency_key=none", ""},
		{"?created_after=2026-03-01T12:00:04.000Z", "6 7"},
		{"?created_after=2026-03-01T13:00:03.999%2B01:00", "5 6 7"},
		{"?created_before=2026-03-01T12:00:02Z", "1 2"},
		{"?created_before=2026-03-01T12:00:02.0000001Z", "1 2 3"},
		{"?created_before=1960-01-01T00:00:00Z", ""},
		{"?created_after=1960-01-01T00:00:00Z&limit=2", "1 2"},
		{"?parent_id=1", ""},
		{"?consistency=linearizable&limit=1000", "1 2 3 4 5 6 7"},
		{"?consistency=stale", "1 2 3 4 5 6 7"},
		{"?&&", "1 2 3 4 5 6 7"},
	} {
		a := s.call(t, "GET /api/tasks"+c.query, "").good(t, 200)
		if got := ids(a.Tasks); got != c.ids {
			t.Errorf("%q: tasks %s, want %s", c.query, got, c.ids)
		}
	}
}

// TestServer_ListLabels checks that all given labels have to match, each cut at its first colon.
func TestServer_ListLabels(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for _, labels := range []string{`{"a":"1","b":"2"}`, `{"a":"1"}`, `{"a":"2","b":"2","c":"x:y"}`, `{"a b":""}`, `{}`} {
		submitOne(t, s, `{"params":0,"labels":`+labels+`}`)
	}
	for query, want := range map[string]string{
		"label=a:1":                   "1 2",
		"label=a:1&label=b:2":         "1",
		"label=b:2&label=a:1":         "1",
		"label=b:2":                   "1 3",
		"label=a:1&label=a:1":         "1 2",
		"label=a:1&label=a:2":         "",
		"label=c:x:y":                 "3",
		"label=c%3Ax%3Ay&label=b%3A2": "3",
		"label=a%20b:":                "4",
		"label=a:":                    "",
		"label=a:1&status=pending":    "1 2",
		"label=a:1&order=desc":        "2 1",
		"label=a:1&created_before=2020-01-01T00:00:00Z": "",
	} {
		a := s.call(t, "GET /api/tasks?"+query, "").good(t, 200)
		if got := ids(a.Tasks); got != want {
			t.Errorf("%q: tasks %s, want %s", query, got, want)
		}
	}
	many := ""
	for i := range wire.LabelsMax {
		many += fmt.Sprintf("&label=n%d:", i)
	}
	s.call(t, "GET /api/tasks?"+many[1:], "").good(t, 200)
	s.call(t, "GET /api/tasks?label=n0:"+many, "").good(t, 200) // a duplicate counts once
	if f := s.call(t, "GET /api/tasks?label=x:"+many, "").refused(t, wire.CodeInvalidRequest); f["field"] != "label" {
		t.Errorf("too many labels: %v", f)
	}
}

func ids(tasks []wire.Task) string {
	var out []string
	for _, task := range tasks {
		out = append(out, strconv.FormatUint(task.ID, 10))
	}
	return strings.Join(out, " ")
}

func TestServer_ListPages(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for range 5 {
		submitOne(t, s, `{"params":0}`)
	}
	for order, want := range map[string]string{"asc": "1 2|3 4|5", "desc": "5 4|3 2|1"} {
		var pages []string
		cursor := ""
		for {
			a := s.call(t, "GET /api/tasks?limit=2&order="+order+cursor, "").good(t, 200)
			pages = append(pages, ids(a.Tasks))
			if a.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + a.NextCursor
		}
		if got := strings.Join(pages, "|"); got != want {
			t.Errorf("%s: pages %s, want %s", order, got, want)
		}
	}
	asc := s.call(t, "GET /api/tasks?limit=2", "").good(t, 200).NextCursor
	if f := s.call(t, "GET /api/tasks?order=desc&cursor="+asc, "").refused(t, wire.CodeInvalidRequest); f["field"] != "cursor" {
		t.Errorf("a cursor of the other order: %v", f)
	}
}

// TestServer_ListIncludes checks that a list shows params and results only if they are included.
func TestServer_ListIncludes(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitOne(t, s, `{"params":[0]}`)
	id, token := claimOne(t, s, "w")
	s.call(t, "POST /api/tasks/"+id+"/complete", `{"worker_id":"w","claim_token":`+token+`,"result_payload":"aGk="}`).good(t, 200)
	for query, want := range map[string]string{
		"": "", "?include=params": "params", "?include=result": "result_payload", "?include=params,result": "params result_payload", "?include=result%2Cparams": "params result_payload",
	} {
		body := s.call(t, "GET /api/tasks"+query, "").body
		var got []string
		for _, field := range []string{"params", "payload", "result", "result_payload"} {
			if strings.Contains(body, `"`+field+`":`) {
				got = append(got, field)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q shows %q, want %q", query, g, want)
		}
	}
}

// TestInForce_ended ensures that an ended task keeps its retention, whatever the settings of its type say later.
func TestInForce_ended(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	set := func(body string) { s.call(t, "PATCH /api/types/a", body).good(t, 200) }
	kept := func(id string) string {
		t.Helper()
		_, rest, _ := strings.Cut(s.call(t, "GET /api/tasks/"+id, "").body, `"in_force":{`)
		_, rest, _ = strings.Cut(rest, `"retention_ms":`)
		ms, _, _ := strings.Cut(rest, "}")
		return ms
	}
	for range 3 {
		submitOne(t, s, `{"task_type":"a","params":1}`)
	}
	set(`{"retention_ms":3600000}`)
	s.call(t, "POST /api/tasks/1/cancel", "").good(t, 200)
	set(`{"retention_ms":-1}`)
	s.call(t, "POST /api/tasks/2/cancel", "").good(t, 200)
	set(`{"retention_ms":60000}`)
	for id, want := range map[string]string{"1": "3600000", "2": "-1", "3": "60000"} {
		if got := kept(id); got != want {
			t.Errorf("task %s is kept for %s ms, want %s", id, got, want)
		}
	}
}

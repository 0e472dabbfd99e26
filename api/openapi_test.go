package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/openapitest"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// description returns the API's description, to compare answers with.
var description = sync.OnceValues(func() (*openapitest.Checker, error) {
	text, err := describe(openAPISource, "v0.0.1")
	if err != nil {
		return nil, err
	}
	return openapitest.New(text)
})

// described checks that the API's description has the answer.
func described(t testing.TB, method, target, sent string, a answer) {
	t.Helper()
	if _, ok := t.(*testing.T); !ok {
		return
	}
	c, err := description()
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	for name, value := range a.header {
		header.Set(name, value)
	}
	if err := c.Check(openapitest.Exchange{Method: method, Target: target, Sent: []byte(sent), Status: a.status, Header: header, Body: []byte(a.body)}); err != nil {
		t.Error(err)
	}
}

// undescribed is a test whose calls are not compared with the description, because they are so large that this would
// take most of the time, and resemble smaller ones that are compared.
type undescribed struct{ testing.TB }

// TestOpenAPI_Served checks that the description is served as written, with the binary's version.
func TestOpenAPI_Served(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	a := s.call(t, "GET /openapi.json?any=1", "")
	c, err := openapitest.New([]byte(a.body))
	if err != nil || a.status != http.StatusOK || c.Version() != "v0.0.1" {
		t.Fatalf("status %d, version %q, %v", a.status, c.Version(), err)
	}
	if again := s.call(t, "GET /openapi.json", ""); again.body != a.body {
		t.Error("it is another document the second time")
	}
	s.call(t, "GET /openapi.json", "", "Host: evil.example").refused(t, wire.CodeForbidden)
	if _, err := describe([]byte("info: 1"), "v1"); err == nil {
		t.Error("a document without info is served")
	}
	if _, err := describe([]byte("\t"), "v1"); err == nil {
		t.Error("what is no document is served")
	}
}

// TestOpenAPI_Operations checks that the described operations and the routes agree.
func TestOpenAPI_Operations(t *testing.T) {
	t.Parallel()
	c, err := description()
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, op := range c.Operations() {
		got[op.Method+" "+op.Path] = op.ID
	}
	for _, r := range new(Server).calls() {
		want[r.pattern] = r.name
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes and operations (-routes +operations):\n%s", diff)
	}
}

// TestOpenAPI_Closed checks that the description permits nothing that it does not name.
func TestOpenAPI_Closed(t *testing.T) {
	t.Parallel()
	text, err := describe(openAPISource, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	objects := 0
	var look func(path string, v any)
	look = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["type"] == "object" {
				objects++
				if _, closed := v["additionalProperties"]; !closed {
					t.Errorf("%s is open", path)
				}
			}
			for name, child := range v {
				if name != "example" && name != "examples" {
					look(path+"/"+name, child)
				}
			}
		case []any:
			for _, child := range v {
				look(path+"/-", child)
			}
		}
	}
	look("", document)
	if objects < 40 {
		t.Errorf("only %d objects", objects)
	}
}

// TestOpenAPI_Examples sends the examples of requests; none may be malformed.
func TestOpenAPI_Examples(t *testing.T) {
	t.Parallel()
	c, err := description()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := c.Examples()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]bool{}
	for _, e := range examples {
		s, _ := setup(t)
		submitOne(t, s, `{"params":1}`)
		path := strings.NewReplacer("{id}", "1", "{type}", "mail", "{name}", "nightly").Replace(e.Path)
		of[e.ID] = true
		if e.ID == "log_in" { // an open node always refuses it
			continue
		}
		if a := s.call(t, e.Method+" "+path, string(e.Body)); a.status == http.StatusBadRequest || a.status >= http.StatusInternalServerError {
			t.Errorf("%s %s %s: %d %s", e.Method, path, e.Body, a.status, a.body)
		}
	}
	for _, op := range c.Operations() {
		if op.Method != http.MethodGet && op.Method != http.MethodDelete && !of[op.ID] && op.ID != "restore_snapshot" { // a backup
			t.Errorf("%s has no example", op.ID)
		}
	}
}

// TestOpenAPI_Codes checks that the described codes and those in the code agree.
func TestOpenAPI_Codes(t *testing.T) {
	t.Parallel()
	c, err := description()
	if err != nil {
		t.Fatal(err)
	}
	described := map[wire.Code]bool{}
	for _, code := range c.Codes() {
		described[wire.Code(code)] = true
		if wire.Code(code).Status() == 0 {
			t.Errorf("%s is no code of the contract", code)
		}
	}
	for code := range refuse.Phrases {
		if !described[code] {
			t.Errorf("%s is not described", code)
		}
	}
}

// TestOpenAPI_Notices checks that the checker finds what is not described.
func TestOpenAPI_Notices(t *testing.T) {
	t.Parallel()
	c, err := description()
	if err != nil {
		t.Fatal(err)
	}
	header := func(more ...string) http.Header {
		h := http.Header{"X-Request-Id": {"r"}, "X-Claimq-Index": {"7"}, "Content-Type": {"application/json"}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
			if more[i+1] == "" {
				h.Del(more[i])
			}
		}
		return h
	}
	const deleted = `{"success":true,"deleted":1}`
	const refused = `{"success":false,"error":"e","code":"task_not_terminal","message":"m","request_id":"r","task_id":1,"status":"pending","worker_id":null}`
	for _, test := range []struct {
		name     string
		exchange openapitest.Exchange
		want     string // "" = nothing
	}{
		{"as described", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 200, Header: header(), Body: []byte(deleted)}, ""},
		{"a refusal", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 409, Header: header(), Body: []byte(refused)}, ""},
		{"a status", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 202, Header: header(), Body: []byte(deleted)}, "no such status"},
		{"a header", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 200, Header: header("X-More", "1"), Body: []byte(deleted)}, "the header X-More"},
		{"no index", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 200, Header: header("X-Claimq-Index", ""), Body: []byte(deleted)}, "X-Claimq-Index is missing"},
		{"an index that is none", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 200, Header: header("X-Claimq-Index", "x"), Body: []byte(deleted)}, "the header X-Claimq-Index"},
		{"a field", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 200, Header: header(), Body: []byte(`{"success":true,"deleted":1,"more":1}`)}, "more"},
		{"a missing field", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 200, Header: header(), Body: []byte(`{"success":true}`)}, "deleted"},
		{"a field of a refusal", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 409, Header: header(), Body: []byte(strings.Replace(refused, `"task_id"`, `"task"`, 1))}, "task"},
		{"a code", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 409, Header: header(), Body: []byte(strings.Replace(refused, "task_not_terminal", "task_completed", 1))}, "code"},
		{"a content type", openapitest.Exchange{Method: "DELETE", Target: "/api/tasks/1", Status: 200, Header: header("Content-Type", "text/html"), Body: []byte(deleted)}, "text/html"},
		{"a path", openapitest.Exchange{Method: "GET", Target: "/api/x", Status: 200, Header: header(), Body: []byte(deleted)}, "no such status"},
		{"a method", openapitest.Exchange{Method: "PUT", Target: "/api/tasks", Status: 200, Header: header(), Body: []byte(deleted)}, "no such status"},
		{"a body", openapitest.Exchange{Method: "GET", Target: "/api/stats", Status: 307, Header: http.Header{"X-Request-Id": {"r"}, "Location": {"http://a"}}, Body: []byte("x")}, "a body"},
		{"a field of a request", openapitest.Exchange{Method: "POST", Target: "/api/cluster/remove", Sent: []byte(`{"node_id":"n1","force":true}`), Status: 200, Header: header("X-Claimq-Index", ""), Body: []byte(`{"success":true}`)}, "force"},
		{"a parameter", openapitest.Exchange{Method: "GET", Target: "/api/schedules?order=name", Status: 200, Header: header(), Body: []byte(`{"success":true,"schedules":[],"next":null}`)}, "order"},
		{"a field of an event", openapitest.Exchange{Method: "GET", Target: "/api/events", Status: 200, Header: header("Content-Type", "text/event-stream"), Body: []byte("id: 1.0\ndata: {\"index\":1}\n\n")}, "sub"},
		{"an event", openapitest.Exchange{Method: "GET", Target: "/api/events", Status: 200, Header: header("Content-Type", "text/event-stream"), Body: []byte("event: more\ndata: {}\n\n")}, "the event more"},
	} {
		switch err := c.Check(test.exchange); {
		case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

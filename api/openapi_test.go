package api

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/openapitest"
	"github.com/claimq/claimq/api/wire"
)

// description returns the API's description, to hold answers against.
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
		if name != headerHolds && name != headerGivenUp { // from node to node
			header.Set(name, value)
		}
	}
	if err := c.Check(openapitest.Exchange{Method: method, Target: target, Sent: []byte(sent), Status: a.status, Header: header, Body: []byte(a.body)}); err != nil {
		t.Error(err)
	}
}

// TestOpenAPI_Served checks that what is served is what is written, with the
// binary's version.
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

// TestOpenAPI_Operations compares the operations with the routes, both ways.
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
	served := map[call]bool{callNone: true, callOptions: true}
	route := func(path string, m methods) {
		for method, c := range map[string]call{"GET": m.get, "POST": m.post, "PUT": m.put, "PATCH": m.patch, "DELETE": m.del} {
			if c != callNone {
				want[method+" "+path] = callNames[c]
				served[c] = true
			}
		}
	}
	for path, m := range fixed {
		route(path, m)
	}
	for _, v := range variable {
		route(v.prefix+"{"+v.name+"}", v.methods)
	}
	for verb, c := range verbs {
		route("/api/tasks/{id}/"+verb, methods{post: c})
	}
	for view, c := range views {
		route("/api/tasks/{id}/"+view, methods{get: c})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes and operations (-routes +operations):\n%s", diff)
	}
	for c := range callCount {
		if !served[c] {
			t.Errorf("no route leads to %s", callNames[c])
		}
	}
}

// TestOpenAPI_Closed checks that the description lets nothing through that it
// does not name.
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

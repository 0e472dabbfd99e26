package fuzz

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand"
	"net/http"
	"strings"
	"testing"
)

// Answers that the contract does not allow are found.
func TestJudge(t *testing.T) {
	t.Parallel()
	refusal := func(code string) []byte {
		b, _ := json.Marshal(map[string]any{"success": false, "error": "e", "code": code, "message": "m", "request_id": "r"})
		return b
	}
	sane := request{method: http.MethodPost, sane: true}
	for _, test := range []struct {
		name string
		req  request
		a    answer
		want string // part of the finding, "" = none
	}{
		{"a success", sane, answer{status: 200}, ""},
		{"a refusal", sane, answer{status: 400, body: refusal("invalid_request")}, ""},
		{"overloaded", sane, answer{status: 503, body: refusal("overloaded")}, ""},
		{"unknown outcome", sane, answer{status: 504, body: refusal("outcome_unknown")}, ""},
		{"internal", sane, answer{status: 500, body: refusal("internal")}, "status 500"},
		{"internal of what is no HTTP", request{}, answer{status: 500}, "status 500"},
		{"bad gateway", sane, answer{status: 502}, "status 502"},
		{"a code of another status", sane, answer{status: 400, body: refusal("internal")}, "whose status is 500"},
		{"no code", sane, answer{status: 503, body: []byte("busy")}, "without a refusal"},
		{"no answer", sane, answer{err: errors.New("reset")}, "no answer"},
		{"no answer to one that waits", request{sane: true, waits: true}, answer{err: errors.New("late")}, ""},
		{"a refusal of SQS", sane, answer{status: 400, header: sqsHeader("application/x-amz-json-1.0"), body: []byte(`{"__type":"a#B","message":"m"}`)}, ""},
		{"a refusal of SQS without a type", sane, answer{status: 400, header: sqsHeader("application/x-amz-json-1.0"), body: []byte(`{"message":"m"}`)}, "without its shape"},
		{"a refusal of Query", sane, answer{status: 400, header: sqsHeader("text/xml"), body: []byte(`<ErrorResponse><Error><Code>B</Code><Message>m</Message></Error><RequestId>r</RequestId></ErrorResponse>`)}, ""},
		{"a refusal of Query without a code", sane, answer{status: 400, header: sqsHeader("text/xml"), body: []byte(`<ErrorResponse><Error><Message>m</Message></Error><RequestId>r</RequestId></ErrorResponse>`)}, "without its shape"},
		{"another answer of Query", sane, answer{status: 400, header: sqsHeader("text/xml"), body: []byte(`<html></html>`)}, "without a refusal"},
		{"no answer to what is no HTTP", request{}, answer{err: errors.New("reset")}, ""},
		{"a head has no body", request{method: http.MethodHead, sane: true}, answer{status: 404}, ""},
	} {
		if got := judge(&test.req, &test.a); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: found %q, want %q", test.name, got, test.want)
		}
	}
}

func sqsHeader(contentType string) http.Header {
	return http.Header{"Content-Type": {contentType}, "X-Amzn-Query-Error": {"B;Sender"}, "X-Amzn-Requestid": {"r"}}
}

// Resources that a node does not give back are found.
func TestUsage_grown(t *testing.T) {
	t.Parallel()
	before := Usage{"go_goroutines": 50, "process_open_fds": 30, "go_memory_classes_heap_objects_bytes": 20 * mb, resident: 60 * mb}
	if what := before.grown(before, 0); what != "" {
		t.Errorf("the same: %s", what)
	}
	for metric, now := range map[string]float64{"go_goroutines": 150, "process_open_fds": 130, "go_memory_classes_heap_objects_bytes": 200 * mb, resident: 600 * mb} {
		after := maps.Clone(before)
		after[metric] = now
		if after.grown(before, 0) == "" {
			t.Errorf("%s: %v after %v: nothing was found", metric, now, before[metric])
		}
		if found := after.grown(before, 700) != ""; found == strings.HasSuffix(metric, "_bytes") {
			t.Errorf("%s: %v where 700 MB are no growth: found %v", metric, now, found)
		}
	}
}

// A seed makes the same requests again, and no request names a member of the cluster in
// calls that could remove it.
func TestMaker(t *testing.T) {
	t.Parallel()
	ops, err := parse([]byte(`{"paths":{
		"/api/tasks/{id}/complete":{"post":{"parameters":[{"$ref":"#/components/parameters/W"}],"requestBody":{"content":{"application/json":{"examples":{"one":{"value":{"worker_id":"w1","claim_token":7,"wait_ms":60000}}}}}}}},
		"/api/cluster/remove":{"post":{"requestBody":{"content":{"application/json":{"example":{"node_id":"n3"}}}}}},
		"/api/tasks":{"get":{"parameters":[{"name":"status","in":"query","schema":{"enum":["pending"]}}]}}},
		"components":{"parameters":{"W":{"name":"wait_ms","in":"query","schema":{"type":"integer"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(ops) != 3 || len(ops[2].query) != 1 || ops[2].query[0].name != "wait_ms" {
		t.Fatalf("operations: %+v", ops)
	}
	one := &maker{rng: rand.New(rand.NewSource(3)), ops: ops, seen: &seen{}}
	two := &maker{rng: rand.New(rand.NewSource(3)), ops: ops, seen: &seen{}}
	kinds := map[kind]int{}
	for range 5000 {
		k := pick(one.rng)
		pick(two.rng)
		kinds[k]++
		if k == kindPeer {
			continue
		}
		a, b := one.make(k), two.make(k)
		if string(a.raw) != string(b.raw) {
			t.Fatalf("one seed, two requests:\n%q\n%q", a.raw, b.raw)
		}
		if strings.Contains(string(a.raw), "n3") {
			t.Fatalf("a member is named: %q", a.raw)
		}
		if k == kindValid && strings.Contains(string(a.raw), "60000") {
			t.Fatalf("a long wait: %q", a.raw)
		}
	}
	for k := range kindCount {
		if kinds[k] == 0 {
			t.Errorf("no request of kind %q", kindNames[k])
		}
	}
}

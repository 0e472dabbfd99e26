package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// badInput is a request that must be refused, and the refusal.
type badInput struct {
	target, body string
	code         wire.Code
	field        string // "" = none
	text         string // a part of error
}

const (
	ir = wire.CodeInvalidRequest
	it = wire.CodeInvalidTask
	iw = wire.CodeInvalidWorkerID
	tl = wire.CodePayloadTooLarge
)

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// TestServer_BadInput sends malformed requests of all kinds.
func TestServer_BadInput(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	cases := append(badBodies(), badTasks()...)
	cases = append(cases, badClaims()...)
	cases = append(cases, badSettles()...)
	cases = append(cases, badTargets()...)
	cases = append(cases, badLives()...)
	cases = append(cases, badCompletes()...)
	cases = append(cases, badTypes()...)
	cases = append(cases, badBatches()...)
	cases = append(cases, badActions()...)
	cases = append(cases, badSteps()...)
	cases = append(cases, badFinalizations()...)
	if len(cases) < 900 {
		t.Errorf("only %d cases", len(cases))
	}
	for _, c := range cases {
		got := s.call(t, c.target, c.body)
		name := c.target + " " + c.body[:min(len(c.body), 100)]
		f := got.refused(t, c.code)
		field, _ := f["field"].(string)
		if text := f["error"].(string); field != c.field || !strings.Contains(text, c.text) {
			t.Errorf("%s:\n field %q, want %q\n error %q, want %q in it", name, field, c.field, text, c.text)
		}
	}
	if len(node.Proposed) > 0 {
		t.Errorf("proposed all the same: %+v", node.Proposed)
	}
}

// badBodies are bodies that are not a JSON object.
func badBodies() []badInput {
	var cases []badInput
	for body, text := range map[string]string{
		`{`:                                 "it ends too early",
		`{"params"`:                         "it ends too early",
		`{"params":`:                        "it ends too early",
		`{"params":1`:                       "it ends too early",
		`{"params":1,}`:                     "not valid JSON",
		`{"params":01}`:                     "not valid JSON",
		`{"params":.5}`:                     "not valid JSON",
		`{"params":1.}`:                     "not valid JSON",
		`{"params":NaN}`:                    "not valid JSON",
		`{"params":'x'}`:                    "not valid JSON",
		`{"params":tru}`:                    "not valid JSON",
		`{params:1}`:                        "not valid JSON",
		`{"params" 1}`:                      "not valid JSON",
		`{"params":1 "priority":2}`:         "not valid JSON",
		`{"params":1}}`:                     "",
		`{"params":1} x`:                    "",
		`{"params":1}{"params":1}`:          "goes on after",
		`{"params":1}null`:                  "goes on after",
		"{\"params\":1}\x00":                "",
		"\x00":                              "not valid JSON",
		"{\"params\":\"a\x00b\"}":           "not valid JSON",
		"{\"params\":\"a\nb\"}":             "not valid JSON",
		"{\"params\":\"\xff\"}":             "UTF-8",
		"{\"params\":\"\xc3\"}":             "UTF-8",
		"{\"params\":\"\xed\xa0\x80\"}":     "UTF-8",
		"{\"\xff\":1}":                      "UTF-8",
		`{"params":"\ud800"}`:               "surrogate",
		`{"params":"\x41"}`:                 "not valid JSON",
		"\xef\xbb\xbf{\"params\":1}":        "not valid JSON",
		`[]`:                                "an array, not a JSON object",
		`[{"params":1}]`:                    "an array, not a JSON object",
		`null`:                              "null, not a JSON object",
		`true`:                              "a boolean, not a JSON object",
		`"x"`:                               "a string, not a JSON object",
		`7`:                                 "a number, not a JSON object",
		`params=1&task_type=x`:              "not valid JSON",
		`task_type=x&params=1`:              "not valid JSON",
		`not json`:                          "not valid JSON",
		`[{"params":1}`:                     "ends too early",
		`<task/>`:                           "not valid JSON",
		``:                                  "The body is empty",
		" \r\n\t":                           "The body is empty",
		`{"params":` + nested(10_001):       "",
		`{"params":` + nested(10_001) + `}`: "deeper than 64 levels",
	} {
		cases = append(cases, badInput{"POST /api/tasks", body, ir, "?", text})
	}
	// A truncated body names the field where the parser stopped.
	for i := range cases {
		cases[i].field = map[string]string{
			`{"params":.5}`: "params", `{"params":1.}`: "params", `{"params":NaN}`: "params", `{"params":'x'}`: "params",
			`{"params":tru}`: "params", "{\"params\":\"a\x00b\"}": "params", "{\"params\":\"a\nb\"}": "params", "{\"params\":\"\xff\"}": "params",
			"{\"params\":\"\xc3\"}": "params", "{\"params\":\"\xed\xa0\x80\"}": "params", `{"params":"\ud800"}`: "params", `{"params":"\x41"}`: "params",
			`{"params" 1}`:                "params",
			`{"params":` + nested(10_001): "params" + strings.Repeat("[0]", 32), `{"params":` + nested(10_001) + `}`: "params" + strings.Repeat("[0]", 32),
		}[cases[i].body]
	}
	return append(cases,
		badInput{"POST /api/tasks", `{"params":1,"params":2}`, ir, "params", "Duplicate field: params"},
		badInput{"POST /api/tasks", `{"params":1,"par\u0061ms":2}`, ir, "params", "Duplicate field: params"},
		badInput{"POST /api/tasks", `{"params":{"a":[{"b":1,"b":2}]}}`, ir, "params.a[0].b", "Duplicate field"},
		badInput{"POST /api/tasks", `{"tasks":[{"params":1},{"params":1,"params":1}]}`, ir, "tasks[1].params", "Duplicate field"},
		badInput{"POST /api/tasks", `{"tasks":[{"params":1},{"bad":1,"priority":"x"`, ir, "", "it ends too early"},
		badInput{"POST /api/tasks/claim", `{"worker_id":"w"`, ir, "", "it ends too early"},
		badInput{"POST /api/tasks/1/retry", `{"claim_token":1}]`, ir, "", "not valid JSON"},
		badInput{"POST /api/tasks/1/retry", `0`, ir, "", "a number, not a JSON object"},
		badInput{"POST /api/tasks", `{"params":"` + strings.Repeat("x", 8<<20) + `"}`, tl, "", "larger than 8388608 bytes"},
	)
}

// badTasks are invalid tasks.
func badTasks() []badInput {
	var cases []badInput
	add := func(field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"POST /api/tasks", body, it, field, text})
		}
	}
	add("params", "Missing required field: params", `{}`, `{"params":null}`, `{"params":null,"payload":null}`, `{"task_type":"x"}`, `{"tasks":null}`)
	add("payload", "params and payload are both given", `{"params":1,"payload":"AA=="}`)
	add("payload", "at least one byte", `{"payload":""}`)
	add("payload", "a string in base64", `{"payload":"A"}`, `{"payload":"AA"}`, `{"payload":"A-8="}`, `{"payload":"AB=="}`, `{"payload":"AA==\n"}`, `{"payload":"AAA=AAA="}`, `{"payload":7}`, `{"payload":["AA=="]}`)
	add("task_type", "1 to 128 of A-Z", `{"params":1,"task_type":""}`, `{"params":1,"task_type":"a b"}`, `{"params":1,"task_type":"é"}`, `{"params":1,"task_type":"a\u0000"}`,
		`{"params":1,"task_type":"`+strings.Repeat("x", 129)+`"}`, `{"params":1,"task_type":5}`, `{"params":1,"task_type":["a"]}`, `{"params":1,"task_type":{}}`, `{"params":1,"task_type":false}`)
	for _, value := range []string{`1.0`, `1e3`, `1E0`, `"5"`, `2147483648`, `-2147483649`, `99999999999999999999`, `1e400`, `true`, `{}`, `[1]`} {
		add("priority", "must be an integer from -2147483648 to 2147483647", `{"params":1,"priority":`+value+`}`)
	}
	add("max_attempts", "must be an integer from 0 to 2147483647", `{"params":1,"max_attempts":-1}`, `{"params":1,"max_attempts":2147483648}`, `{"params":1,"max_attempts":"3"}`)
	add("idempotency_key", "1 to 256 bytes without control characters", `{"params":1,"idempotency_key":""}`, `{"params":1,"idempotency_key":"a\u0000b"}`, `{"params":1,"idempotency_key":"a\nb"}`,
		`{"params":1,"idempotency_key":"\u007f"}`, `{"params":1,"idempotency_key":"`+strings.Repeat("é", 129)+`"}`, `{"params":1,"idempotency_key":1}`)
	add("lease_ms", "must be an integer from 100 to 86400000", `{"params":1,"lease_ms":99}`, `{"params":1,"lease_ms":86400001}`, `{"params":1,"lease_ms":0}`, `{"params":1,"lease_ms":-5}`, `{"params":1,"lease_ms":"1s"}`)
	add("prio", "Unknown field: prio", `{"params":1,"prio":1}`, `{"prio":{"a":[1]},"params":1}`, `{"prio":null,"params":1}`)
	add("Params", "Unknown field: Params", `{"Params":1}`)
	add("", "Unknown field: ", `{"":1}`)
	add("a\nb", "Unknown field: a\nb", `{"a\nb":1}`)
	add(strings.Repeat("x", 128)+"...", "Unknown field", `{"`+strings.Repeat("x", 5000)+`":1}`)
	add("params", "must be nested at most 64 levels deep", `{"params":`+nested(64)+`}`, `{"params":{"a":`+nested(63)+`}}`)
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	many := func(field, text, body string) {
		cases = append(cases, badInput{"POST /api/tasks", body, ir, field, text})
	}
	many("tasks", "an array of 1 to 1000 tasks", `{"tasks":[]}`)
	many("tasks", "an array of 1 to 1000 tasks", `{"tasks":{}}`)
	many("tasks", "an array of 1 to 1000 tasks", `{"tasks":"x"}`)
	many("tasks", "tasks cannot be combined with other fields", `{"tasks":[{"params":1}],"priority":1}`)
	many("tasks", "tasks cannot be combined with other fields", `{"priority":1,"tasks":[{"params":1}]}`)
	return append(cases,
		badInput{"POST /api/tasks", `{"params":` + large + `}`, tl, "params", "larger than 1048576 bytes"},
		badInput{"POST /api/tasks", `{"payload":"` + strings.Repeat("AAAA", 349_526) + `"}`, tl, "payload", "larger than 1048576 bytes"},
		badInput{"POST /api/tasks", `{"payload":"` + strings.Repeat("AAAA", 400_000) + `"}`, tl, "payload", "larger than 1048576 bytes"},
	)
}

// badClaims are invalid claims.
func badClaims() []badInput {
	var cases []badInput
	add := func(code wire.Code, field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"POST /api/tasks/claim", body, code, field, text})
		}
	}
	add(ir, "worker_id", "Missing required field: worker_id", ``, `  `, `{}`, `{"worker_id":null}`, `{"limit":1}`)
	add(iw, "worker_id", "Invalid worker_id format", `{"worker_id":""}`, `{"worker_id":"a b"}`, `{"worker_id":"."}`, `{"worker_id":".."}`, `{"worker_id":"a/b"}`, `{"worker_id":"a,b"}`, `{"worker_id":"é"}`, `{"worker_id":"w\u0000"}`, `{"worker_id":"w\n"}`,
		`{"worker_id":"`+strings.Repeat("w", 129)+`"}`, `{"worker_id":5}`, `{"worker_id":true}`, `{"worker_id":["w"]}`, `{"worker_id":{"a":{}}}`)
	add(ir, "Worker_ID", "Unknown field: Worker_ID", `{"Worker_ID":"w"}`)
	add(ir, "wait_ms", "must be an integer from 0 to 60000", `{"worker_id":"w","wait_ms":-1}`, `{"worker_id":"w","wait_ms":60001}`, `{"worker_id":"w","wait_ms":"1s"}`)
	add(ir, "max_attempts_remaining", "must be an integer from 0 to 1000", `{"worker_id":"w","task_types":["a"],"max_attempts_remaining":-1}`, `{"worker_id":"w","task_types":["a"],"max_attempts_remaining":1001}`)
	add(ir, "limit", "must be an integer from 1 to 1000", `{"worker_id":"w","limit":0}`, `{"worker_id":"w","limit":1001}`, `{"worker_id":"w","limit":1.0}`, `{"worker_id":"w","limit":"1"}`, `{"worker_id":"w","limit":-1}`)
	add(ir, "lease_ms", "must be an integer from 100 to 86400000", `{"worker_id":"w","lease_ms":1}`, `{"worker_id":"w","lease_ms":1e5}`)
	add(ir, "sort_by", `must be "priority", "created_at" or "random"`, `{"worker_id":"w","sort_by":"Random"}`, `{"worker_id":"w","sort_by":"Priority"}`, `{"worker_id":"w","sort_by":1}`, `{"worker_id":"w","sort_by":""}`)
	add(ir, "sort_order", `must be "asc" or "desc", in any case`, `{"worker_id":"w","sort_order":"up"}`, `{"worker_id":"w","sort_order":[]}`, `{"worker_id":"w","sort_order":"aſc"}`)
	add(ir, "task_types", "an array of up to 1000 task types", `{"worker_id":"w","task_types":"a"}`, `{"worker_id":"w","task_types":{}}`, `{"worker_id":"w","task_types":[`+strings.Repeat(`"a",`, 1000)+`"a"]}`)
	add(ir, "task_types[1]", "1 to 128 of A-Z", `{"worker_id":"w","task_types":["a",""]}`, `{"worker_id":"w","task_types":["a","b c"]}`, `{"worker_id":"w","task_types":["a",1]}`, `{"worker_id":"w","task_types":["a",null]}`)
	add(ir, "claim_request_place", "must be an integer from 0 to 999", `{"worker_id":"w","claim_request_id":"r","claim_request_place":1000}`, `{"worker_id":"w","claim_request_id":"r","claim_request_place":-1}`)
	add(ir, "claim_request_place", "claim_request_place is given without claim_request_id", `{"worker_id":"w","claim_request_place":0}`)
	add(ir, "claim_request_place", "claim_request_place and wait_ms are both given", `{"worker_id":"w","claim_request_id":"r","claim_request_place":0,"wait_ms":1}`)
	add(ir, "claim_request_id", "1 to 128 bytes", `{"worker_id":"w","claim_request_id":""}`, `{"worker_id":"w","claim_request_id":"a\tb"}`, `{"worker_id":"w","claim_request_id":"`+strings.Repeat("r", 129)+`"}`, `{"worker_id":"w","claim_request_id":1}`)
	return cases
}

// badSettles are invalid bodies of calls about one claim.
func badSettles() []badInput {
	var cases []badInput
	for _, verb := range []string{"claim", "complete", "fail", "extend", "release"} {
		target := "POST /api/tasks/1/" + verb
		cases = append(cases,
			badInput{target, ``, ir, "worker_id", "Missing required field: worker_id"},
			badInput{target, `{}`, ir, "worker_id", "Missing required field: worker_id"},
			badInput{target, `{"worker_id":"w/"}`, iw, "worker_id", "Invalid worker_id format"},
			badInput{target, `{"worker_id":"w","delay":1}`, ir, "delay", "Unknown field: delay"},
		)
		if verb == "claim" {
			continue
		}
		for _, token := range []string{"0", "-1", "9007199254740992", "1.5", `"1"`, "1e2", "true"} {
			cases = append(cases, badInput{target, `{"worker_id":"w","claim_token":` + token + `}`, ir, "claim_token", "must be an integer from 1 to 9007199254740991"})
		}
	}
	return append(cases,
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","result":1,"result_payload":"AA=="}`, ir, "result_payload", "result and result_payload are both given"},
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","result":` + nested(64) + `}`, ir, "result", "must be nested at most 64 levels deep"},
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","result":"` + strings.Repeat("x", 1<<20) + `"}`, tl, "result", "larger than 1048576 bytes"},
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","result_payload":"!"}`, ir, "result_payload", "a string in base64"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w"}`, ir, "error", "Missing required field: error"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w","error":null}`, ir, "error", "Missing required field: error"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w","error":5}`, ir, "error", "a string without U+0000"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w","error":"a\u0000b"}`, ir, "error", "a string without U+0000"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w","error":"e","permanent":true,"retry_in_ms":0}`, ir, "retry_in_ms", "permanent and retry_in_ms are both given"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w","error":"e","permanent":1}`, ir, "permanent", "must be true or false"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w","error":"e","retry_in_ms":-1}`, ir, "retry_in_ms", "must be an integer from 0 to 31536000000"},
		badInput{"POST /api/tasks/1/fail", `{"worker_id":"w","error":"e","retry_in_ms":31536000001}`, ir, "retry_in_ms", "must be an integer from 0 to 31536000000"},
		badInput{"POST /api/tasks/1/release", `{"worker_id":"w","delay_ms":-1}`, ir, "delay_ms", "must be an integer from 0 to 31536000000"},
		badInput{"POST /api/tasks/1/release", `{"worker_id":"w","delay_ms":31536000001}`, ir, "delay_ms", "must be an integer from 0 to 31536000000"},
		badInput{"POST /api/tasks/1/extend", `{"worker_id":"w","progress":"` + strings.Repeat("x", 4095) + `"}`, tl, "progress", "progress is larger than 4096 bytes"},
		badInput{"POST /api/tasks/1/extend", `{"worker_id":"w","progress":` + nested(64) + `}`, ir, "progress", "must be nested at most 64 levels deep"},
		badInput{"POST /api/tasks/1/extend", `{"worker_id":"w","delay_ms":1}`, ir, "delay_ms", "Unknown field: delay_ms"},
		badInput{"POST /api/tasks/1/release", `{"worker_id":"w","progress":1}`, ir, "progress", "Unknown field: progress"},
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","permanent":true}`, ir, "permanent", "Unknown field: permanent"},
		badInput{"POST /api/tasks/1/cancel", `{"worker_id":"w"}`, ir, "worker_id", "Unknown field: worker_id"},
		badInput{"POST /api/tasks/1/cancel", `[]`, ir, "", "an array, not a JSON object"},
		badInput{"POST /api/tasks/x/cancel", ``, ir, "id", "Invalid id"},
		badInput{"POST /api/tasks/1/extend", `{"worker_id":"w","lease_ms":99}`, ir, "lease_ms", "must be an integer from 100 to 86400000"},
		badInput{"POST /api/tasks/1/retry", `{"add_attempts":-1}`, ir, "add_attempts", "must be an integer from 0 to 2147483647"},
		badInput{"POST /api/tasks/1/retry", `{"worker_id":"w"}`, ir, "worker_id", "Unknown field: worker_id"},
		badInput{"POST /api/tasks/1/retry", `{"claim_token":0}`, ir, "claim_token", "an integer from 1"},
	)
}

// badLives are invalid values of the fields about a task's time, order and labels, in a submit and in a change of a
// task.
func badLives() []badInput {
	const when, delay = "a time in RFC 3339 of the years 1970 to 9999", "must be an integer from 0 to 31536000000"
	const labels = "an object of up to 16 labels with names of 1 to 64 bytes without : and control characters"
	const value = "a string of up to 64 bytes without control characters"
	var cases []badInput
	for _, c := range []struct {
		field, text string
		values      []string
	}{
		{"run_at", when, []string{`"1969-12-31T23:59:59.999Z"`, `"9999-12-31T23:59:59.9990001Z"`, `"10000-01-01T00:00:00Z"`, `"2026-03-01"`, `"2026-03-01T12:00:00"`, `"2026-02-30T12:00:00Z"`, `"2026-03-01 12:00:00Z"`, `"2026-03-01T9:00:00Z"`, `"2026-03-01T12:00:00,5Z"`, `"2026-03-01T12:00:00+25:00"`, `"2026-03-01T12:00:00+24:00"`, `""`, `1772366400000`, `"now"`}},
		{"expires_at", when, []string{`"0001-01-01T00:00:00Z"`, `1772366400`, `"soon"`}},
		{"delay_ms", delay, []string{`-1`, `31536000001`, `1.0`, `"1s"`}},
		{"delay_ms", "run_at and delay_ms are both given", []string{`1,"run_at":"2026-03-01T12:00:00Z"`, `0,"run_at":"2026-03-01T12:00:00Z"`}},
		{"retention_ms", "must be an integer from -1 to 3153600000000", []string{`-2`, `3153600000001`, `"1d"`}},
		{"group", "a string of 1 to 128 bytes without control characters", []string{`""`, `"` + strings.Repeat("g", 129) + `"`, `"a\u0000"`, `"a\n"`, `1`}},
		{"expires_at", "expires_at is not after run_at", []string{`"2026-03-01T12:00:00Z","run_at":"2026-03-01T12:00:00Z"`, `"2026-03-01T12:00:00Z","run_at":"2026-03-02T12:00:00Z"`}},
		{"traceparent", "a W3C trace context in lower case", []string{`""`, `7`, `"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"`, `"00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`}},
		{"unique", "unique is given without idempotency_key", []string{`"active"`, `"active","idempotency_key":null`}},
		{"unique", `must be "exists", "active", "replace" or "window"`, []string{`""`, `"Active"`, `true`}},
		{"labels", labels, []string{`{"":"x"}`, `{"a:b":"x"}`, `{"a\tb":"x"}`, `{"` + strings.Repeat("n", 65) + `":"x"}`, manyLabels(17)}},
		{"labels", "must be an object", []string{`[]`, `"a=b"`, `1`}},
		{"labels.a", value, []string{`{"a":1}`, `{"a":null}`, `{"b":"1","a":["x"]}`, `{"a":"` + strings.Repeat("v", 65) + `"}`, `{"a":"x\n"}`}},
		{"backoff", "must be an object", []string{`1000`, `"1s"`, `[]`}},
		{"backoff.initial_ms", "Missing required field: backoff.initial_ms", []string{`{}`, `{"factor":2}`, `{"initial_ms":null}`}},
		{"backoff.initial_ms", "must be an integer from 0 to 31536000000", []string{`{"initial_ms":-1}`, `{"initial_ms":31536000001}`, `{"initial_ms":1.5}`}},
		{"backoff.max_ms", "must be an integer from 1 to 31536000000", []string{`{"initial_ms":1,"max_ms":0}`, `{"initial_ms":1,"max_ms":31536000001}`}},
		{"backoff.max_ms", "must be an integer from initial_ms (10) to 31536000000", []string{`{"initial_ms":10,"max_ms":9}`, `{"max_ms":9,"initial_ms":10}`}},
		{"backoff.factor", "must be a number from 1 to 1000", []string{`{"initial_ms":1,"factor":0.9999999}`, `{"initial_ms":1,"factor":1000.1}`, `{"initial_ms":1,"factor":"2"}`, `{"initial_ms":1,"factor":1e400}`, `{"initial_ms":1,"factor":-2}`}},
		{"backoff.jitter", "must be a number from 0 to 1", []string{`{"initial_ms":1,"jitter":-0.1}`, `{"initial_ms":1,"jitter":1.000001}`, `{"initial_ms":1,"jitter":true}`}},
		{"backoff.max", "Unknown field: backoff.max", []string{`{"initial_ms":1,"max":5}`}},
	} {
		field, _, _ := strings.Cut(c.field, ".")
		for _, v := range c.values {
			cases = append(cases, badInput{"POST /api/tasks", `{"params":1,"` + field + `":` + v + `}`, it, c.field, c.text})
			if field == "labels" || c.field == "run_at" {
				cases = append(cases, badInput{"PATCH /api/tasks/1", `{"` + field + `":` + v + `}`, ir, c.field, c.text})
			}
		}
	}
	const empty = "The body changes nothing"
	return append(
		cases,
		badInput{"PATCH /api/tasks/1", ``, ir, "", empty},
		badInput{"PATCH /api/tasks/1", `{}`, ir, "", empty},
		badInput{"PATCH /api/tasks/1", `{"priority":1.5}`, ir, "priority", "must be an integer from -2147483648 to 2147483647"},
		badInput{"PATCH /api/tasks/1", `{"delay_ms":1}`, ir, "delay_ms", "Unknown field: delay_ms"},
		badInput{"PATCH /api/tasks/1", `{"status":"pending"}`, ir, "status", "Unknown field: status"},
		badInput{"PATCH /api/tasks/0", `{"priority":1}`, ir, "id", "Invalid id"},
		badInput{"PATCH /api/tasks/1?x=1", `{"priority":1}`, ir, "x", "Unknown query parameter: x"},
	)
}

func manyLabels(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf(`"l%d":""`, i))
	}
	return "{" + strings.Join(names, ",") + "}"
}

// badCompletes are completes with invalid follow-ups or claims.
func badCompletes() []badInput {
	var cases []badInput
	add := func(code wire.Code, field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"POST /api/tasks/1/complete", `{"worker_id":"w",` + body + `}`, code, field, text})
		}
	}
	add(ir, "submit", "must be an array of 1 to 1000 tasks", `"submit":[]`, `"submit":{}`, `"submit":"x"`, `"submit":[`+strings.Repeat(`{"params":1},`, 1000)+`{"params":1}]`)
	add(it, "submit[2].priority", "Invalid submit[2].priority: must be an integer", `"submit":[{"params":1},{"params":2},{"params":3,"priority":"high"},{}]`)
	add(it, "submit[0].params", "Missing required field: submit[0].params", `"submit":[{}]`)
	add(it, "submit[1].backoff.initial_ms", "Missing required field: submit[1].backoff.initial_ms", `"submit":[{"params":1},{"params":1,"backoff":{}}]`)
	add(it, "submit[0]", "must be an object", `"submit":[1]`, `"submit":[null]`)
	add(it, "submit[0].prio", "Unknown field: submit[0].prio", `"submit":[{"params":1,"prio":1}]`)
	add(tl, "submit[0].params", "submit[0].params is larger than 1048576 bytes", `"submit":[{"params":"`+strings.Repeat("x", 1<<20)+`"}]`)
	add(ir, "submit", "not valid JSON", `"submit":[{"params":1}`)
	add(ir, "claim", "must be an object", `"claim":true`, `"claim":[]`)
	add(ir, "claim.wait_ms", "Unknown field: claim.wait_ms", `"claim":{"wait_ms":0}`)
	add(iw, "claim.worker_id", "Invalid worker_id format", `"claim":{"worker_id":"a b"}`)
	add(ir, "claim.limit", "must be an integer from 1 to 1000", `"claim":{"limit":0}`)
	add(ir, "claim.task_types[0]", "1 to 128 of A-Z", `"claim":{"task_types":[""]}`)
	add(ir, "claim.submit", "Unknown field: claim.submit", `"claim":{"submit":[]}`)
	return append(cases, badInput{"POST /api/tasks/1/complete", `{"claim":{"worker_id":"w"}}`, ir, "worker_id", "Missing required field: worker_id"})
}

// badTypes are invalid settings of a task type, and invalid bodies of an upgrade.
func badTypes() []badInput {
	var cases []badInput
	add := func(field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"PATCH /api/types/a", body, ir, field, text})
		}
	}
	add("", "The body changes nothing", ``, `{}`)
	add("paused", "must be true or false", `{"paused":1}`, `{"paused":"yes"}`, `{"paused":{}}`)
	add("max_claimed", "must be an integer from 1 to 2147483647", `{"max_claimed":0}`, `{"max_claimed":2147483648}`)
	add("max_claimed_per_key", "must be an integer from 1 to 2147483647", `{"max_claimed_per_key":0}`, `{"max_claimed_per_key":2147483648}`)
	add("rate_limit", "must be a number from 0.000001 to 1000000", `{"rate_limit":0}`, `{"rate_limit":0.0000009}`, `{"rate_limit":1000000.1}`, `{"rate_limit":-1}`, `{"rate_limit":"1"}`)
	add("rate_limit_per_key", "must be a number from 0.000001 to 1000000", `{"rate_limit_per_key":0}`, `{"rate_limit_per_key":1000000.1}`, `{"rate_limit_per_key":"1"}`)
	for _, share := range []badInput{
		{"", `{"paused":1}`, ir, "paused", "must be true or false"},
		{"", `{"max_claimed":0}`, ir, "max_claimed", "must be an integer from 1 to 2147483647"},
		{"", `{"max_claimed":2147483648}`, ir, "max_claimed", "must be an integer from 1 to 2147483647"},
		{"", `{"weight":0}`, ir, "weight", "must be an integer from 1 to 10000"},
		{"", `{"weight":10001}`, ir, "weight", "must be an integer from 1 to 10000"},
		{"", `{"weight":1.5}`, ir, "weight", "must be an integer from 1 to 10000"},
		{"", `{"rate_limit":0}`, ir, "rate_limit", "must be a number from 0.000001 to 1000000"},
		{"", `{"fair":true}`, ir, "fair", "Unknown field: fair"},
	} {
		share.target = "PUT /api/types/a/shares/ann"
		cases = append(cases, share)
	}
	long := strings.Repeat("a", 129)
	for _, key := range []string{"", "%00", "%ff", "%zz", long} {
		for _, method := range []string{"PUT", "DELETE"} {
			cases = append(cases, badInput{method + " /api/types/a/shares/" + key, ``, ir, "share_key", "must be 1 to 128 bytes without control characters"})
		}
	}
	cases = append(cases,
		badInput{"PUT /api/types/a/shares/ann", ``, ir, "", "The body is empty"},
		badInput{"PUT /api/types/a/shares/ann", " \n", ir, "", "The body is empty"},
		badInput{"PUT /api/types/a%20b/shares/ann", `{}`, ir, "task_type", "1 to 128 of A-Z"},
		badInput{"PUT /api/types/a/b/shares/ann", `{}`, ir, "task_type", "1 to 128 of A-Z"},
		badInput{"GET /api/types/a%20b/shares", ``, ir, "task_type", "1 to 128 of A-Z"},
		badInput{"GET /api/types/a/shares?order=oldest", ``, ir, "order", "must be share_key or pending"},
		badInput{"GET /api/types/a/shares?order=pending&after=b", ``, ir, "order", "must be share_key with after"},
		badInput{"GET /api/types/a/shares?limit=0", ``, ir, "limit", "must be an integer from 1 to 1000"},
		badInput{"GET /api/types/a/shares?after=", ``, ir, "after", "must be 1 to 128 bytes without control characters"},
		badInput{"GET /api/types/a/shares?name=b", ``, ir, "name", "Unknown"},
	)
	add("delay_ms", "must be an integer from 0 to 31536000000", `{"delay_ms":-1}`, `{"delay_ms":31536000001}`)
	add("dead_letter", "must be an object", `{"dead_letter":"b"}`)
	add("dead_letter.task_type", "Missing required field: dead_letter.task_type", `{"dead_letter":{}}`, `{"dead_letter":{"max_attempts":3}}`)
	add("dead_letter.task_type", "must be another type than a", `{"dead_letter":{"task_type":"a"}}`)
	add("dead_letter.task_type", "1 to 128 of A-Z", `{"dead_letter":{"task_type":"a b"}}`)
	add("dead_letter.max_attempts", "must be an integer from 1 to 2147483647", `{"dead_letter":{"task_type":"b","max_attempts":0}}`)
	add("dead_letter.after", "Unknown field: dead_letter.after", `{"dead_letter":{"after":1}}`)
	add("lease_ms", "must be an integer from 100 to 86400000", `{"lease_ms":99}`, `{"lease_ms":86400001}`)
	add("max_attempts", "must be an integer from 0 to 2147483647", `{"max_attempts":-1}`)
	add("backoff.initial_ms", "Missing required field: backoff.initial_ms", `{"backoff":{}}`)
	add("backoff.jitter", "must be a number from 0 to 1", `{"backoff":{"jitter":2,"initial_ms":1}}`)
	add("retention_ms", "must be an integer from -1 to 3153600000000", `{"retention_ms":-2}`)
	add("task_type", "Unknown field: task_type", `{"task_type":"a"}`)
	for _, name := range []string{"", "a%20b", "a%2Fb", "a/b", "%C3%A9", "%zz", "%ff", strings.Repeat("x", 129)} {
		cases = append(cases, badInput{"PATCH /api/types/" + name, `{"paused":true}`, ir, "task_type", "1 to 128 of A-Z"})
	}
	return append(
		cases,
		badInput{"GET /api/types?limit=0", "", ir, "limit", "an integer from 1 to 1000"},
		badInput{"GET /api/types?limit=1001", "", ir, "limit", "an integer from 1 to 1000"},
		badInput{"GET /api/types?order=paused", "", ir, "order", "oldest, submitted_per_s, completed_per_s, failed_per_s or a status"},
		badInput{"GET /api/types?order=", "", ir, "order", "name, oldest"},
		badInput{"GET /api/types?name=a%20b", "", ir, "name", "1 to 128 of A-Z"},
		badInput{"GET /api/types?attention=yes", "", ir, "attention", "true or false"},
		badInput{"GET /api/types/mail/shares?settings=1", "", ir, "settings", "true or false"},
		badInput{"GET /api/types?after=a%20b", "", ir, "after", "1 to 128 of A-Z"},
		badInput{"GET /api/types?after=a&order=oldest", "", ir, "order", "name with after"},
		badInput{"GET /api/types?cursor=a", "", ir, "cursor", "Unknown query parameter: cursor"},
		badInput{"POST /api/cluster/upgrade", `{"level":2}`, ir, "level", "Unknown field: level"},
		badInput{"POST /api/cluster/upgrade", `[]`, ir, "", "an array, not a JSON object"},
		badInput{"POST /api/cluster/upgrade?x=1", `{}`, ir, "x", "Unknown query parameter: x"},
	)
}

// badBatches are batches with an invalid op, or invalid as a whole.
func badBatches() []badInput {
	var cases []badInput
	add := func(code wire.Code, field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"POST /api/batch", body, code, field, text})
		}
	}
	ops := func(op string, n int) string {
		return `{"ops":[` + strings.TrimSuffix(strings.Repeat(op+",", n), ",") + `]}`
	}
	add(ir, "ops", "Missing required field: ops", ``, `{}`, `{"ops":null}`, `{"atomic":true}`)
	add(ir, "ops", "must be an array of 1 to 1000 ops", `{"ops":[]}`, `{"ops":{}}`, ops(`{"op":"cancel","id":1}`, 1001))
	add(ir, "atomic", "must be true or false", `{"atomic":1,"ops":[{"op":"cancel","id":1}]}`)
	add(ir, "tasks", "Unknown field: tasks", `{"tasks":[]}`)
	add(ir, "ops[0]", "must be an object", `{"ops":[1]}`, `{"ops":[null]}`)
	add(ir, "ops[0].op", "Missing required field: ops[0].op", `{"ops":[{}]}`, `{"ops":[{"id":1}]}`, `{"ops":[{"op":null,"id":1}]}`)
	add(ir, "ops[1].op", `must be "submit", "claim", "complete", "fail", "extend", "release", "retry", "cancel" or "delete"`,
		`{"ops":[{"op":"cancel","id":1},{"op":"patch","id":1}]}`, `{"ops":[{"op":"cancel","id":1},{"op":1}]}`, `{"ops":[{"op":"cancel","id":1},{"op":""}]}`, `{"ops":[{"op":"cancel","id":1},{"op":"Cancel"}]}`)
	for _, op := range []string{"cancel", "delete", "retry"} {
		add(ir, "ops[0].id", "Missing required field: ops[0].id", `{"ops":[{"op":"`+op+`"}]}`, `{"ops":[{"op":"`+op+`","id":null}]}`)
		add(ir, "ops[0].id", "must be an integer from 1 to 9007199254740991", `{"ops":[{"op":"`+op+`","id":0}]}`, `{"ops":[{"op":"`+op+`","id":"1"}]}`, `{"ops":[{"op":"`+op+`","id":9007199254740992}]}`)
		add(ir, "ops[0].worker_id", "Unknown field: ops[0].worker_id", `{"ops":[{"op":"`+op+`","id":1,"worker_id":"w"}]}`)
	}
	for _, op := range []string{"complete", "fail", "extend", "release"} {
		add(ir, "ops[0].id", "Missing required field: ops[0].id", `{"ops":[{"op":"`+op+`","worker_id":"w","claim_token":1}]}`)
		add(ir, "ops[0].worker_id", "Missing required field: ops[0].worker_id", `{"ops":[{"op":"`+op+`","id":1}]}`)
	}
	add(it, "ops[3].priority", "Invalid ops[3].priority: must be an integer", `{"ops":[{"op":"cancel","id":1},{"op":"cancel","id":1},{"op":"cancel","id":1},{"op":"submit","params":1,"priority":true}]}`)
	add(it, "ops[0].params", "Missing required field: ops[0].params", `{"ops":[{"op":"submit"}]}`)
	add(it, "ops[0].id", "Unknown field: ops[0].id", `{"ops":[{"op":"submit","params":1,"id":1}]}`)
	add(ir, "ops[1].id", "Missing required field: ops[1].id", `{"ops":[{"op":"submit","params":1},{"op":"delete"}]}`)
	add(ir, "ops[0].wait_ms", "Unknown field: ops[0].wait_ms", `{"ops":[{"op":"claim","worker_id":"w","wait_ms":1}]}`)
	add(ir, "ops[0].id", "Unknown field: ops[0].id", `{"ops":[{"op":"claim","worker_id":"w","id":1}]}`)
	add(ir, "ops[0].worker_id", "Missing required field: ops[0].worker_id", `{"ops":[{"op":"claim"}]}`)
	add(it, "ops[0].submit[1].group", "1 to 128 bytes", `{"ops":[{"op":"complete","id":1,"worker_id":"w","submit":[{"params":1},{"params":1,"group":""}]}]}`)
	add(ir, "ops[0].claim.limit", "an integer from 1 to 1000", `{"ops":[{"op":"complete","id":1,"worker_id":"w","claim":{"limit":1001}}]}`)
	add(ir, "ops[0].id", "Duplicate field: ops[0].id", `{"ops":[{"op":"cancel","id":1,"id":1}]}`)
	add(ir, "ops[0].op", "Duplicate field: ops[0].op", `{"ops":[{"op":"cancel","op":"cancel","id":1}]}`)
	add(ir, "", "it ends too early", `{"ops":[{"op":"cancel","id":1`, `{"ops":[{"id":1,`, `{"ops":[{"op":`, `{"ops":[`)
	add(ir, "ops[0].id", "not valid JSON", `{"ops":[{"id":x}]}`)
	add(ir, "ops", "The ops change up to 10001 tasks; at most 10000 are allowed",
		`{"ops":[`+strings.Repeat(`{"op":"claim","worker_id":"w","limit":1000},`, 10)+`{"op":"delete","id":1}]}`,
		`{"ops":[`+strings.Repeat(`{"op":"claim","worker_id":"w","limit":1000},`, 9)+`{"op":"complete","id":1,"worker_id":"w","submit":[{"params":1}],"claim":{"limit":999}}]}`)
	return cases
}

// badTargets are invalid paths and queries.
func badTargets() []badInput {
	var cases []badInput
	for _, id := range []string{"0", "01", "-1", "+1", "1.0", "1e3", "abc", "0x1", "9007199254740992", "99999999999999999", "99999999999999999999999", "%31", "1%00", "%20", "", "by-key"} {
		cases = append(cases, badInput{"GET /api/tasks/" + id, "", ir, "id", "an integer from 1 to 9007199254740991"})
	}
	for _, target := range []string{"DELETE /api/tasks/x", "POST /api/tasks/x/complete", "POST /api/tasks//claim", "POST /api/tasks/0/retry"} {
		cases = append(cases, badInput{target, `{"worker_id":"w"}`, ir, "id", "Invalid id"})
	}
	for _, key := range []string{"", "%", "%2", "%zz", "%00", "%0a", "%ff", "%C3", strings.Repeat("k", 257)} {
		cases = append(cases, badInput{"GET /api/tasks/by-key/" + key, "", ir, "idempotency_key", "Invalid idempotency_key"})
	}
	long := strings.Repeat("l", wire.LabelBytes+1)
	for query, want := range map[string][2]string{
		"limit=0":                               {"limit", "an integer from 1 to 1000"},
		"limit=1001":                            {"limit", "an integer from 1 to 1000"},
		"limit=":                                {"limit", "an integer from 1 to 1000"},
		"limit":                                 {"limit", "an integer from 1 to 1000"},
		"limit=1.0":                             {"limit", "an integer from 1 to 1000"},
		"limit=%2B5":                            {"limit", "an integer from 1 to 1000"},
		"limit=05":                              {"limit", "an integer from 1 to 1000"},
		"limit=1&limit=1":                       {"limit", "Repeated query parameter: limit"},
		"limit=1&l%69mit=1":                     {"limit", "Repeated query parameter: limit"},
		"Limit=1":                               {"Limit", "Unknown query parameter: Limit"},
		"offset=1":                              {"offset", "Unknown query parameter: offset"},
		"status=done":                           {"status", "pending, scheduled, blocked"},
		"status=":                               {"status", "pending, scheduled, blocked"},
		"status=Pending":                        {"status", "pending, scheduled, blocked"},
		"task_type=a%20b":                       {"task_type", "1 to 128 of"},
		"task_type=":                            {"task_type", "1 to 128 of"},
		"idempotency_key=":                      {"idempotency_key", "1 to 256 bytes"},
		"idempotency_key=%00":                   {"idempotency_key", "1 to 256 bytes"},
		"idempotency_key=%ff":                   {"idempotency_key", "percent-encoded UTF-8"},
		"idempotency_key=%4":                    {"idempotency_key", "percent-encoded UTF-8"},
		"%=1":                                   {"", "name is not percent-encoded"},
		"order=up":                              {"order", "asc, desc or ended"},
		"order=":                                {"order", "asc, desc or ended"},
		"order=ended":                           {"order", "ended with status completed, failed or cancelled"},
		"order=ended&status=pending":            {"order", "ended with status completed, failed or cancelled"},
		"order=ended&status=failed&cursor=a1":   {"cursor", "a next_cursor"},
		"order=ended&status=failed&cursor=e1":   {"cursor", "a next_cursor"},
		"order=ended&status=failed&cursor=e1.":  {"cursor", "a next_cursor"},
		"order=ended&status=failed&cursor=e1.0": {"cursor", "a next_cursor"},
		"order=ended&status=failed&cursor=1.1":  {"cursor", "a next_cursor"},
		"cursor=e1.1":                           {"cursor", "a next_cursor"},
		"error_group=":                          {"error_group", "16 hexadecimal digits"},
		"contains=":                             {"contains", "1 to 256 bytes"},
		"contains=a&contains=b":                 {"contains", "Repeated query parameter: contains"},
		"param=to:ada":                          {"param", "/NAME:VALUE"},
		"param=/to":                             {"param", "/NAME:VALUE"},
		"param=/a~2:b":                          {"param", "/NAME:VALUE"},
		"error_group=timeout":                   {"error_group", "16 hexadecimal digits"},
		"error_group=0000000000000000":          {"error_group", "16 hexadecimal digits"},
		"error_group=B3A41043FCF58A75":          {"error_group", "16 hexadecimal digits"},
		"cursor=":                               {"cursor", "a next_cursor"},
		"cursor=x":                              {"cursor", "a next_cursor"},
		"cursor=a0":                             {"cursor", "a next_cursor"},
		"cursor=a01":                            {"cursor", "a next_cursor"},
		"cursor=azzzzzzzzzzzzzzzz":              {"cursor", "a next_cursor"},
		"cursor=aA":                             {"cursor", "a next_cursor"},
		"include=all":                           {"include", "params, result or both"},
		"include=":                              {"include", "params, result or both"},
		"include=params,":                       {"include", "params, result or both"},
		"created_after=yesterday":               {"created_after", "a time in RFC 3339"},
		"created_after=1700000000":              {"created_after", "a time in RFC 3339"},
		"created_before=2026-01-01":             {"created_before", "a time in RFC 3339"},
		"created_after=2026-01-01T9:00:00Z":     {"created_after", "a time in RFC 3339"},
		"created_after=2026-01-01T09:00:00,5Z":  {"created_after", "a time in RFC 3339"},
		"created_after=2026-01-01T09:00:00-24:00": {"created_after", "a time in RFC 3339"},
		"created_after=2026-01-01T09:00:00-00:60": {"created_after", "a time in RFC 3339"},
		"label=a":                       {"label", "NAME:VALUE"},
		"label=:a":                      {"label", "NAME:VALUE"},
		"label=":                        {"label", "NAME:VALUE"},
		"label=a%00:b":                  {"label", "NAME:VALUE"},
		"label=a:%0a":                   {"label", "NAME:VALUE"},
		"label=a:" + long:               {"label", "NAME:VALUE"},
		"label=" + long + ":a":          {"label", "NAME:VALUE"},
		"label=a:1&order=asc&order=asc": {"order", "Repeated query parameter: order"},
		"parent_id=0":                   {"parent_id", "an integer from 1 to 9007199254740991"},
		"parent_id=":                    {"parent_id", "an integer from 1 to 9007199254740991"},
		"parent_id=01":                  {"parent_id", "an integer from 1 to 9007199254740991"},
		"parent_id=9007199254740992":    {"parent_id", "an integer from 1 to 9007199254740991"},
		"wait_ms=1":                     {"wait_ms", "Unknown query parameter: wait_ms"},
		"consistency=eventual":          {"consistency", "linearizable (the default) or stale"},
		"consistency=":                  {"consistency", "linearizable (the default) or stale"},
		strings.Repeat("x", 300) + "=":  {strings.Repeat("x", 128) + "...", "Unknown query parameter"},
	} {
		cases = append(cases, badInput{"GET /api/tasks?" + query, "", ir, want[0], want[1]})
	}
	for query, want := range map[string][2]string{
		"limit=0":       {"limit", "an integer from 1 to 1000"},
		"limit=1001":    {"limit", "an integer from 1 to 1000"},
		"task_type=a+b": {"task_type", "1 to 128 of"},
		"cursor=":       {"cursor", "a next_cursor of GET /api/failures"},
		"cursor=a1":     {"cursor", "a next_cursor of GET /api/failures"},
		"status=failed": {"status", "Unknown query parameter: status"},
	} {
		cases = append(cases, badInput{"GET /api/failures?" + query, "", ir, want[0], want[1]})
	}
	for query, want := range map[string][2]string{
		"minutes=0":     {"minutes", "an integer from 1 to 360"},
		"minutes=361":   {"minutes", "an integer from 1 to 360"},
		"minutes=1h":    {"minutes", "an integer from 1 to 360"},
		"task_type=a+b": {"task_type", "1 to 128 of"},
		"limit=1":       {"limit", "Unknown query parameter: limit"},
	} {
		cases = append(cases, badInput{"GET /api/history?" + query, "", ir, want[0], want[1]})
	}
	for query, want := range map[string][2]string{
		"":                              {"cron", "Missing required field: cron or every_ms"},
		"cron=":                         {"cron", "a cron expression of five fields"},
		"cron=@never":                   {"cron", "is none of @hourly"},
		"cron=61+*+*+*+*":               {"cron", `the minute has "61"`},
		"cron=@daily&every_ms=1000":     {"every_ms", "cron and every_ms are both given"},
		"cron=@daily&timezone=Mars/Sea": {"timezone", "the name of a time zone"},
		"cron=@daily&timezone=":         {"timezone", "the name of a time zone"},
		"every_ms=1000&timezone=UTC":    {"timezone", "timezone is given without cron"},
		"every_ms=999":                  {"every_ms", "an integer from 1000 to 31536000000"},
		"every_ms=1s":                   {"every_ms", "an integer from 1000 to 31536000000"},
		"every_ms=%2B1000":              {"every_ms", "an integer from 1000 to 31536000000"},
		"every_ms=01000":                {"every_ms", "an integer from 1000 to 31536000000"},
		"cron=@daily&after=now":         {"after", "RFC 3339"},
		"cron=@daily&limit=101":         {"limit", "an integer from 1 to 100"},
		"cron=@daily&name=a":            {"name", "Unknown query parameter: name"},
	} {
		cases = append(cases, badInput{"GET /api/slots?" + query, "", ir, want[0], want[1]})
	}
	for _, target := range []string{"GET /api/tasks/1", "GET /api/tasks/by-key/k"} {
		for _, wait := range []string{"", "=", "=-1", "=60001", "=1.0", "=1s", "=%2B1", "=00"} {
			cases = append(cases, badInput{target + "?wait_ms" + wait, "", ir, "wait_ms", "an integer from 0 to 60000"})
		}
		cases = append(cases, badInput{target + "?wait_ms=1&wait_ms=1", "", ir, "wait_ms", "Repeated query parameter: wait_ms"})
		cases = append(cases, badInput{target + "?wait_ms=1&waits=1", "", ir, "waits", "Unknown query parameter: waits"})
	}
	for _, target := range []string{"GET /api/tasks/by-key/a b", "GET /api/tasks?idempotency_key=a\tb", "GET /api/tasks/by-key/a\x01", "GET /api/tasks/by-key/a\x7f"} {
		cases = append(cases, badInput{target, "", ir, "", "not percent-encoded"})
	}
	cases = append(cases, badInput{"GET /api/tasks?worker_id=a%20b", "", iw, "worker_id", "Invalid worker_id format"})
	for _, target := range []string{"GET /api/tasks/1", "GET /api/tasks/by-key/k", "GET /api/stats", "GET /api/cluster", "GET /api/types", "GET /api/workers", "GET /api/tasks/1/why", "POST /api/tasks/actions", "DELETE /api/tasks/1", "POST /api/tasks", "POST /api/tasks/claim", "POST /api/tasks/1/complete"} {
		cases = append(cases, badInput{target + "?x=1", goodBodies[target], ir, "x", "Unknown query parameter: x"})
	}
	cases = append(cases, badInput{"POST /api/tasks?consistency=stale", `{"params":1}`, ir, "consistency", "Unknown query parameter: consistency"})
	for _, target := range []string{"GET /x", "GET /api", "GET /api/", "GET /api/task", "GET /api/tasks/1/whose", "GET /api/tasks/1/", "POST /api/tasks/1/complete/x", "GET /API/TASKS", "GET /api/tasks%2F1", "GET //api/tasks", "GET /api/tasks/../stats", "BREW /pot"} {
		cases = append(cases, badInput{target, "", wire.CodeNotFound, "", "No such path"})
	}
	for _, target := range []string{"PUT /api/tasks", "DELETE /api/tasks", "GET /api/tasks/claim", "GET /api/tasks/1/complete", "POST /api/tasks/1", "GET /api/batch", "PUT /api/batch", "GET /api/tasks/1/cancel", "POST /api/types", "DELETE /api/types/a", "GET /api/cluster/upgrade", "POST /api/tasks/by-key/k", "POST /api/stats", "POST /api/workers", "POST /api/tasks/1/why", "GET /api/tasks/actions", "DELETE /api/cluster", "POST /healthz", "POST /readyz", "POST /metrics", "BREW /api/tasks"} {
		cases = append(cases, badInput{target, `{}`, wire.CodeMethodNotAllowed, "", "Method not allowed"})
	}
	return cases
}

// TestServer_DepthAtTheLimit checks that depth 64, including the body, is accepted.
func TestServer_DepthAtTheLimit(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	submitOne(t, s, `{"params":`+nested(63)+`}`)
	submitOne(t, s, `{"params":"`+strings.Repeat("[", 100)+`\"{{"}`)
	a := s.call(t, "POST /api/tasks", `{"tasks":[{"params":`+nested(61)+`},{"params":`+nested(62)+`}]}`).good(t, 200)
	if a.Results[0].ID == 0 || a.Results[1].Code != wire.CodeInvalidTask || a.Results[1].Field != "tasks[1].params" {
		t.Errorf("results %+v", a.Results)
	}
	submitOne(t, s, `{"params":"`+strings.Repeat("x", 1<<20-2)+`"}`)
}

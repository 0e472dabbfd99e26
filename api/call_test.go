package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/wire"
)

// answer is the answer to a call.
type answer struct {
	status int
	header map[string]string
	body   string
}

// call sends one request to the server's handler, without a connection. target is "METHOD /path".
func (s *Server) call(t testing.TB, target, body string, headers ...string) answer {
	t.Helper()
	return do(t, func(ctx *fasthttp.RequestCtx) { s.core.handle(ctx, false) }, target, body, headers...)
}

func do(t testing.TB, handler fasthttp.RequestHandler, target, body string, headers ...string) answer {
	t.Helper()
	a := doUndescribed(handler, target, body, headers...)
	method, uri, _ := strings.Cut(target, " ")
	described(t, method, uri, body, a)
	return a
}

// doUndescribed is do for calls that api/openapi.yaml does not have.
func doUndescribed(handler fasthttp.RequestHandler, target, body string, headers ...string) answer {
	method, uri, _ := strings.Cut(target, " ")
	var req fasthttp.Request
	req.Header.SetMethod(method)
	req.SetRequestURI(uri)
	req.Header.SetHost("127.0.0.1:7400")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	req.SetBodyString(body)
	var ctx fasthttp.RequestCtx
	ctx.Init2(conntest.Nop{}, nil, true)
	req.CopyTo(&ctx.Request)
	handler(&ctx)
	a := answer{status: ctx.Response.StatusCode(), header: make(map[string]string), body: string(ctx.Response.Body())}
	for name, value := range ctx.Response.Header.All() {
		a.header[string(name)] = string(value)
	}
	return a
}

// good checks that the call succeeded and returns the decoded answer.
func (a answer) good(t testing.TB, status int) wire.Answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	var out wire.Answer
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("answer is no JSON: %v: %s", err, a.body)
	}
	if !out.Success {
		t.Fatalf("success is false: %s", a.body)
	}
	return out
}

// refused checks that the call was refused with code and its status, and returns the whole body.
func (a answer) refused(t testing.TB, code wire.Code) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("answer is no JSON: %v: %s", err, a.body)
	}
	if out["code"] != string(code) || a.status != code.Status() {
		t.Fatalf("code %v, status %d, want %s, %d: %s", out["code"], a.status, code, code.Status(), a.body)
	}
	if out["success"] != false || out["error"] == "" || out["message"] == "" || out["error"] == nil || out["message"] == nil {
		t.Fatalf("refusal without success, error or message: %s", a.body)
	}
	if id := out["request_id"]; id == "" || id != a.header["X-Request-Id"] {
		t.Fatalf("request_id %v, header %q", id, a.header["X-Request-Id"])
	}
	return out
}

// submitOne submits a task and returns its id.
func submitOne(t testing.TB, s *Server, body string) uint64 {
	t.Helper()
	return s.call(t, "POST /api/tasks", body).good(t, 201).Task.ID
}

// claimOne claims the next task for worker and returns its id and token as text.
func claimOne(t testing.TB, s *Server, worker string) (id, token string) {
	t.Helper()
	task := s.call(t, "POST /api/tasks/claim", `{"worker_id":"`+worker+`"}`).good(t, 200).Task
	return strconv.FormatUint(task.ID, 10), strconv.FormatUint(*task.ClaimToken, 10)
}

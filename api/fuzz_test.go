package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/fsm"
)

// FuzzRequests sends arbitrary bytes to every call. The answer must be well-formed with a status below 500.
func FuzzRequests(f *testing.F) {
	s, node := setup(f)
	targets := []string{
		"POST /api/tasks", "POST /api/tasks/claim", "POST /api/tasks/1/claim", "POST /api/tasks/1/complete", "POST /api/tasks/1/fail",
		"POST /api/tasks/1/extend", "POST /api/tasks/1/release", "POST /api/tasks/1/retry", "POST /api/tasks/1/cancel", "PATCH /api/tasks/1",
		"POST /api/batch", "PATCH /api/types/a", "POST /api/cluster/upgrade",
		"POST /api/tasks/1/finalization/claim", "POST /api/tasks/1/finalization/extend", "POST /api/tasks/1/finalization/release", "POST /api/tasks/1/finalize",
	}
	seeds := append(badBodies(), badTasks()...)
	seeds = append(append(append(seeds, badClaims()...), badSettles()...), badTargets()...)
	seeds = append(append(append(append(seeds, badLives()...), badCompletes()...), badTypes()...), badBatches()...)
	seeds = append(append(seeds, badSteps()...), badFinalizations()...)
	seeds = append(seeds,
		badInput{target: "GET /api/tasks/1/finalization", body: reportBody},
		badInput{target: "GET /api/tasks?parent_id=1", body: `{"tasks":[` + reportBody + `,{` + one + `"finalize":"auto"}]}`},
		badInput{target: "POST /api/tasks/1/complete", body: `{"worker_id":"w","submit":[` + reportBody + `],"claim":{}}`},
		badInput{target: "GET /api/tasks/2/why", body: `{"processor_id":"p","outcome":"failed","error":"e","claim_token":1}`},
	)
	for _, c := range ownCalls {
		seeds = append(seeds, badInput{target: "POST /api/batch", body: `{"atomic":true,"ops":[` + c.op + `]}`})
	}
	for _, seed := range seeds {
		if len(seed.body) < 4096 {
			_, path, _ := strings.Cut(seed.target, " ")
			f.Add([]byte(seed.body), []byte(path))
		}
	}
	for _, target := range targets {
		f.Add([]byte(goodBodies[target]), []byte("/api/tasks?status=pending&limit=3"))
	}
	f.Fuzz(func(t *testing.T, body, path []byte) {
		for _, target := range targets {
			method, uri, _ := strings.Cut(target, " ")
			fuzzOne(t, s, method, []byte(uri), body)
		}
		for _, method := range []string{"GET", "POST", "PATCH", "DELETE", string(body[:min(len(body), 10)])} {
			fuzzOne(t, s, method, path, body)
		}
		if node.Machine.ClaimCount() > 100 { // keep it small
			node.Machine = fsm.New()
		}
	})
}

func fuzzOne(t *testing.T, s *Server, method string, uri, body []byte) {
	var ctx fasthttp.RequestCtx
	ctx.Init2(conntest.Nop{}, nil, true)
	ctx.Request.Header.SetMethod(method)
	ctx.Request.Header.SetRequestURIBytes(uri)
	ctx.Request.Header.SetHost("localhost")
	ctx.Request.SetBody(body)
	s.core.handle(&ctx, false)
	status, answer := ctx.Response.StatusCode(), ctx.Response.Body()
	if status >= 500 {
		t.Fatalf("%s %q %q: %d %s", method, uri, body, status, answer)
	}
	if string(ctx.Response.Header.ContentType()) == "application/json" && !json.Valid(answer) {
		t.Fatalf("%s %q %q: no JSON: %s", method, uri, body, answer)
	}
}

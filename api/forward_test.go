package api

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// setupPair returns a follower that forwards requests to a leader.
func setupPair(t *testing.T) (follower *Server, leader *Server, followerNode, leaderNode *nodetest.Node) {
	t.Helper()
	follower, followerNode = setup(t)
	leader, leaderNode = setup(t)
	followerNode.Follower, followerNode.LeaderAddr = true, "http://10.0.0.7:7400"
	passesTo(followerNode, leader)
	return follower, leader, followerNode, leaderNode
}

// TestServer_Forward checks that a follower's answers are the leader's.
func TestServer_Forward(t *testing.T) {
	t.Parallel()
	follower, leader, _, leaderNode := setupPair(t)
	got := follower.call(t, "POST /api/tasks", `{"params":1,"idempotency_key":"a/../b//c"}`, "X-Request-ID: r-1")
	if a := got.good(t, 201); a.Task.ID != 1 || got.header["X-Request-Id"] != "r-1" || got.header["X-Claimq-Index"] != "1" {
		t.Fatalf("submit: %+v", got)
	}
	if a := follower.call(t, "GET /api/tasks/by-key/a%2F..%2Fb%2F%2Fc", "").good(t, 200); a.Task.ID != 1 {
		t.Errorf("by key: %+v", a)
	}
	if a := follower.call(t, "GET /api/tasks?limit=1&status=pending", "").good(t, 200); ids(a.Tasks) != "1" {
		t.Errorf("list: %+v", a)
	}
	if f := follower.call(t, "POST /api/tasks/claim", `{"worker_id":5}`, "X-Request-ID: r-2").refused(t, wire.CodeInvalidWorkerID); f["request_id"] != "r-2" {
		t.Errorf("a refusal: %v", f)
	}
	minIndex := uint64(0)
	leaderNode.OnRead = func(_ context.Context, index uint64) error { minIndex = max(minIndex, index); return nil }
	follower.call(t, "GET /api/stats", "", "X-Claimq-Min-Index: 18446744073709551615")
	if minIndex != 1<<64-1 {
		t.Errorf("X-Claimq-Min-Index arrived as %d", minIndex)
	}
	want := leader.call(t, "GET /api/tasks/1", "", "X-Request-ID: r").body
	if head := follower.call(t, "HEAD /api/tasks/1", "", "X-Request-ID: r"); head.body != want {
		t.Errorf("HEAD: body for the length\n got %s\nwant %s", head.body, want)
	}
}

// TestServer_Local checks what a follower answers itself.
func TestServer_Local(t *testing.T) {
	t.Parallel()
	follower, _, node, _ := setupPair(t)
	if _, err := node.Apply(command.Submit{Tasks: []fsm.NewTask{{Type: "here", Params: []byte("1")}}}); err != nil {
		t.Fatal(err)
	}
	node.OnForward = func(_ context.Context, _ nodes.Passing, req *fasthttp.Request, _ *fasthttp.Response) (nodes.Passed, error) {
		t.Errorf("passed on: %s", req.Header.RequestURI())
		return nodes.Passed{}, nodes.ErrNoLeader
	}
	for _, target := range []string{"GET /api/tasks/1?consistency=stale", "GET /api/tasks?consistency=stale", "GET /api/stats?consistency=stale", "GET /api/cluster?consistency=stale", "GET /healthz", "GET /readyz", "GET /metrics"} {
		got := follower.call(t, target, "")
		if got.status != 200 {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
		if strings.Contains(target, "tasks") && (!strings.Contains(got.body, `"here"`) || got.header["X-Claimq-Index"] != "1") {
			t.Errorf("%s: %+v", target, got)
		}
	}
}

// TestServer_ForwardOnce checks that a forwarded request is never forwarded again.
func TestServer_ForwardOnce(t *testing.T) {
	t.Parallel()
	follower, _, node, _ := setupPair(t)
	for _, lost := range []bool{true, false} { // not leading, and losing the leadership while proposing
		node.Follower = lost
		node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
			return nodes.Proposed{}, nodes.ErrNotLeader
		}
		node.OnRead = func(context.Context, uint64) error { return nodes.ErrNotLeader }
		for _, target := range []string{"POST /api/tasks", "GET /api/stats", "GET /api/tasks/1", "POST /api/tasks/1/finalization/claim", "POST /api/tasks/1/finalize", "GET /api/tasks/1/finalization"} {
			got := do(t, follower.ForwardHandler(), target, goodBodies[target], "X-Claimq-Redirect: 1")
			checkRefusal(t, got, wire.CodeNoLeader, "The cluster has no leader", "Nothing was written: repeat the request after the time in Retry-After", "")
		}
	}
}

// TestServer_LeadershipLost checks that a request is forwarded if its node turns out to lead no longer.
func TestServer_LeadershipLost(t *testing.T) {
	t.Parallel()
	follower, _, node, _ := setupPair(t)
	node.Follower = false
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
		return nodes.Proposed{}, nodes.ErrNotLeader
	}
	node.OnRead = func(context.Context, uint64) error { return nodes.ErrNotLeader }
	submitOne(t, follower, `{"params":1}`)
	follower.call(t, "GET /api/tasks/1", "").good(t, 200)
}

func TestServer_ForwardFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err           error
		write, read   wire.Code
		brokenPartway bool
	}{
		{err: nodes.ErrNoLeader, write: wire.CodeNoLeader, read: wire.CodeNoLeader},
		{err: fmt.Errorf("%w: %w", nodes.ErrNoLeader, context.DeadlineExceeded), write: wire.CodeNoLeader, read: wire.CodeOverloaded}, // nothing was sent: the leader could not be dialed
		{err: nodes.ErrOutcomeUnknown, write: wire.CodeOutcomeUnknown, read: wire.CodeNoLeader, brokenPartway: true},
		{err: fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, context.DeadlineExceeded), write: wire.CodeOutcomeUnknown, read: wire.CodeOverloaded},
		{err: fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, os.ErrDeadlineExceeded), write: wire.CodeOutcomeUnknown, read: wire.CodeOverloaded},
		{err: nodes.ErrShuttingDown, write: wire.CodeShuttingDown, read: wire.CodeShuttingDown},
	} {
		follower, _, node, _ := setupPair(t)
		node.OnForward = func(_ context.Context, _ nodes.Passing, _ *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
			if c.brokenPartway {
				resp.SetStatusCode(201)
				resp.SetBodyString(`{"succ`)
			}
			return nodes.Passed{}, fmt.Errorf("forward: %w", c.err)
		}
		for _, target := range []string{"POST /api/tasks", "POST /api/tasks/1/finalization/claim", "POST /api/tasks/1/finalization/extend", "POST /api/tasks/1/finalization/release", "POST /api/tasks/1/finalize"} {
			follower.call(t, target, goodBodies[target]).refused(t, c.write)
		}
		follower.call(t, "GET /api/stats", "").refused(t, c.read)
		follower.call(t, "GET /api/tasks/1/finalization", "").refused(t, c.read)
	}
}

func TestServer_Redirect(t *testing.T) {
	t.Parallel()
	follower, leader, node, _ := setupPair(t)
	for _, target := range []string{"/api/tasks/by-key/a%2Fb", "/api/tasks?limit=3&order=desc", "/api/stats"} {
		got := follower.call(t, "GET "+target, "", "X-Claimq-Redirect: 1")
		if got.status != 307 || got.header["Location"] != "http://10.0.0.7:7400"+target {
			t.Errorf("%s: %d to %q", target, got.status, got.header["Location"])
		}
	}
	if got := follower.call(t, "POST /api/tasks/claim", `{"worker_id":"w"}`, "X-Claimq-Redirect: 1"); got.status != 307 || got.header["X-Request-Id"] == "" {
		t.Errorf("POST: %+v", got)
	}
	// The leader itself answers, and so does a node that is not asked to redirect.
	leader.call(t, "GET /api/stats", "", "X-Claimq-Redirect: 1").good(t, 200)
	follower.call(t, "GET /api/stats", "", "X-Claimq-Redirect: 0").good(t, 200)
	node.LeaderAddr = ""
	follower.call(t, "GET /api/stats", "", "X-Claimq-Redirect: 1").refused(t, wire.CodeNoLeader)
	// Its own view of the cluster a node can always return.
	follower.call(t, "GET /api/cluster", "", "X-Claimq-Redirect: 1").good(t, 200)
}

// TestServer_TargetHeader checks that the public port ignores the peer port's header.
func TestServer_TargetHeader(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	s.call(t, "GET /api/tasks/1", "", "X-Claimq-Target: /healthz").refused(t, wire.CodeTaskNotFound)
}

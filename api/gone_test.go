package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// TestServer_WaitingGone checks that a claim is given up when its client goes while it waits, and that a task that it
// took meanwhile is released, unless the client can ask for it again.
func TestServer_WaitingGone(t *testing.T) {
	t.Parallel()
	for name, hangUp := range conntest.HangUps {
		for _, c := range []struct {
			body  string
			taken bool // the claim is in the log when the client goes
			want  fsm.Status
		}{
			{`{"worker_id":"w","wait_ms":60000}`, false, fsm.StatusPending},
			{`{"worker_id":"w","wait_ms":60000}`, true, fsm.StatusPending},
			{`{"worker_id":"w","wait_ms":60000,"limit":5}`, true, fsm.StatusPending},
			{`{"worker_id":"w","wait_ms":60000,"claim_request_id":"r"}`, true, fsm.StatusClaimed},
		} {
			s, node := setup(t)
			submitOne(t, s, `{"params":0}`)
			submitOne(t, s, `{"params":0}`)
			began, ended := make(chan struct{}), make(chan struct{})
			node.OnClaim = func(caller context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error) {
				defer close(ended)
				close(began)
				<-caller.Done()
				if wait > time.Minute || wait < 50*time.Second {
					t.Errorf("waits %s", wait)
				}
				if c.taken {
					return node.Apply(cmd)
				}
				return nodes.Proposed{}, context.Cause(caller)
			}
			conn := dialServer(t, listen(t, s))
			sendClaim(t, conn, c.body)
			<-began
			if err := hangUp(conn); err != nil {
				t.Fatal(err)
			}
			<-ended
			waitFor(t, func() bool { return s.core.port.Open() == 0 })
			if got := node.Machine.Get(1).Status; got != c.want {
				t.Errorf("client %s, %s, taken %v: task is %s, want %s", name, c.body, c.taken, got, c.want)
			}
		}
	}
}

// TestServer_WaitingDrained checks that waiting clients are told at once that the server stops.
func TestServer_WaitingDrained(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	node.OnClaim = func(caller context.Context, _ command.ClaimNext, _ time.Duration) (nodes.Proposed, error) {
		s.Drain()
		<-caller.Done()
		return nodes.Proposed{}, context.Cause(caller)
	}
	s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","wait_ms":60000}`).refused(t, wire.CodeShuttingDown)
}

func dialServer(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

func sendClaim(t *testing.T, conn net.Conn, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "POST /api/tasks/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
}

// TestServer_WaitingThere checks the same for clients of a follower, which makes the leader release what it cannot
// answer.
func TestServer_WaitingThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		taken bool // the claim is in the log when the leader learns that the client has gone
		late  bool // the leader does not learn of it
		want  fsm.Status
	}{
		"it waits":             {`{"worker_id":"w","wait_ms":60000}`, false, false, fsm.StatusPending},
		"spelled with escapes": {`{"worker_id":"w","wait\u005fms":60000}`, false, false, fsm.StatusPending},
		"taken":                {`{"worker_id":"w","wait_ms":60000,"limit":2}`, true, false, fsm.StatusPending},
		"answered":             {`{"worker_id":"w","wait_ms":60000,"limit":2}`, true, true, fsm.StatusPending},
		"answered one":         {`{"worker_id":"w","wait_ms":60000}`, true, true, fsm.StatusPending},
		"can be repeated":      {`{"worker_id":"w","wait_ms":60000,"claim_request_id":"r"}`, true, true, fsm.StatusClaimed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follower, leader, followerNode, leaderNode := setupPair(t)
			submitOne(t, leader, `{"params":0}`)
			submitOne(t, leader, `{"params":0}`)
			began := make(chan struct{})
			leaderNode.OnClaim = func(caller context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error) {
				if !c.late {
					<-caller.Done()
				}
				if wait > time.Minute || wait < 50*time.Second {
					t.Errorf("waits %s", wait)
				}
				if c.taken {
					return leaderNode.Apply(cmd)
				}
				return nodes.Proposed{}, context.Cause(caller)
			}
			followerNode.OnForward = func(_ context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
				held := pass.Held
				pass.Held = func(wait time.Duration) context.Context {
					ctx := held(wait)
					close(began)
					<-ctx.Done()
					if c.late {
						ctx = context.Background()
					}
					return ctx
				}
				return passOn(leader, pass, req, resp)
			}
			conn := dialServer(t, listen(t, follower))
			sendClaim(t, conn, c.body)
			<-began
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			answered, err := io.ReadAll(conn) // the client closed only its sending side
			waitFor(t, func() bool { return follower.core.port.Open() == 0 })
			if got := leaderNode.Machine.Get(1).Status; got != c.want {
				t.Errorf("task is %s, want %s; answer %s, %v", got, c.want, answered, err)
			}
		})
	}
}

// TestServer_WaitingFollowerDrained checks the answer of a stopping follower: the task that the leader has claimed
// for the client, or that the node stops.
func TestServer_WaitingFollowerDrained(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"worker_id":"w","wait_ms":60000}`:                        503,
		`{"worker_id":"w","wait_ms":60000,"claim_request_id":"r"}`: 200,
	} {
		follower, leader, followerNode, leaderNode := setupPair(t)
		submitOne(t, leader, `{"params":0}`)
		leaderNode.OnClaim = func(caller context.Context, cmd command.ClaimNext, _ time.Duration) (nodes.Proposed, error) {
			<-caller.Done()
			return leaderNode.Apply(cmd)
		}
		followerNode.OnForward = func(_ context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
			follower.Drain()
			return passOn(leader, pass, req, resp)
		}
		got := follower.call(t, "POST /api/tasks/claim", body)
		if got.status != want {
			t.Errorf("%s: %+v", body, got)
		}
		if want == 503 {
			got.refused(t, wire.CodeShuttingDown)
		}
		if status := leaderNode.Machine.Get(1).Status; (status == fsm.StatusClaimed) != (want == 200) {
			t.Errorf("%s: task is %s", body, status)
		}
	}
}

// TestServer_Waited checks that a forwarded claim waits only for the remaining time, and that only nodes can say how
// much that is.
func TestServer_Waited(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	var waited time.Duration
	node.OnClaim = func(_ context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error) {
		waited = wait
		return node.Apply(cmd)
	}
	const body = `{"worker_id":"w","wait_ms":60000}`
	passed(t, s, nodes.Passing{Waited: 50 * time.Second}, "POST /api/tasks/claim", body)
	if waited > 10*time.Second || waited < time.Second {
		t.Errorf("passed on: waits %s, want 10 s", waited)
	}
	s.call(t, "POST /api/tasks/claim", body, "X-Claimq-Waited-Ms: 50000")
	if waited < 50*time.Second {
		t.Errorf("a client: waits %s, want 60 s", waited)
	}
	waited = 0
	passed(t, s, nodes.Passing{Waited: 70 * time.Second}, "POST /api/tasks/claim", body).refused(t, wire.CodeNoPendingTasks)
	if waited != 0 {
		t.Errorf("waited for long already: waits %s", waited)
	}
}

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

// TestServer_UnsentClaim checks that a claim whose worker has gone before the
// answer is released, unless it can ask for the answer again.
func TestServer_UnsentClaim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, body string
		want       int // commands: submit, claim, and release or not
		status     fsm.Status
	}{
		{"/api/tasks/claim", `{"worker_id":"w"}`, 3, fsm.StatusPending},
		{"/api/tasks/claim", `{"worker_id":"w","limit":5}`, 3, fsm.StatusPending},
		{"/api/tasks/1/claim", `{"worker_id":"w"}`, 3, fsm.StatusPending},
		{"/api/tasks/claim", `{"worker_id":"w","claim_request_id":"r"}`, 2, fsm.StatusClaimed},
	} {
		s, node := setup(t)
		submitOne(t, s, `{"params":0}`)
		began, gone := make(chan struct{}), make(chan struct{})
		node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
			if _, release := cmd.(command.Release); !release {
				close(began)
				<-gone
			}
			return node.Apply(cmd)
		}
		conn, err := net.Dial("tcp", listen(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", c.path, len(c.body), c.body); err != nil {
			t.Fatal(err)
		}
		<-began
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // close with a reset
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		close(gone)
		waitFor(t, func() bool { return s.core.port.Open() == 0 })
		node.Mu.Lock()
		if got := node.Machine.Get(1).Status; len(node.Proposed) != c.want || got != c.status {
			t.Errorf("%s %s: %d commands, task %s, want %d, %s", c.path, c.body, len(node.Proposed), got, c.want, c.status)
		}
		node.Mu.Unlock()
	}
}

// TestServer_SentClaim checks that an answered claim stays, also when the
// connection breaks at a later answer.
func TestServer_SentClaim(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":0}`)
	addr := listen(t, s)
	got := raw(t, addr, "POST /api/tasks/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n{\"worker_id\":\"w\"}")
	got.good(t, 200)
	waitFor(t, func() bool { return s.core.port.Open() == 0 })
	if len(node.Proposed) != 2 {
		t.Errorf("%d commands, want 2", len(node.Proposed))
	}

	conn := accepted(t, s, brokenConn{})
	if _, err := conn.Write([]byte("x")); err == nil || len(node.Proposed) != 2 {
		t.Errorf("a later answer: %v, %d commands", err, len(node.Proposed))
	}
}

// TestServer_SentClaimBeforeRead checks that a claim stays whose answer was
// sent, also when the connection breaks at what is written before the next
// request reaches its handler: "100 Continue", or an answer to half a request.
func TestServer_SentClaimBeforeRead(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":0}`)
	p, err := node.Apply(command.ClaimNext{WorkerID: "w", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	hold := command.Hold{ID: 1, WorkerID: "w", Token: p.Result.Claims[0].Token}
	conn := accepted(t, s, brokenConn{})
	conn.OnDelivered(func(ok bool) {
		if !ok {
			s.core.releaseUnsent([]command.Hold{hold})
		}
	})
	// The server reads on: so it has written the claim's answer.
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("a broken connection was read from")
	}
	if _, err := conn.Write([]byte("x")); err == nil {
		t.Fatal("a broken connection was written to")
	}
	if got := node.Machine.Get(1).Status; got != fsm.StatusClaimed {
		t.Errorf("the task is %s, want claimed", got)
	}
}

type brokenConn struct{ conntest.Nop }

func (brokenConn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// oneConn is a listener that has one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l oneConn) Accept() (net.Conn, error) { return l.conn, nil }

// accepted returns a connection of the server's port.
func accepted(t *testing.T, s *Server, inner net.Conn) *door.Conn {
	t.Helper()
	conn, err := s.core.port.Listen(oneConn{conn: inner}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*door.Conn)
}

// waitFor waits until cond holds.
func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	testwait.Until(t, "what is to be", cond)
}

// TestServer_UnsentThere checks that a follower has the leader release the
// claims of answers that it could not write to their client.
func TestServer_UnsentThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, body string
		want       fsm.Status
	}{
		{"/api/tasks/claim", `{"worker_id":"w"}`, fsm.StatusPending},
		{"/api/tasks/claim", `{"worker_id":"w","limit":2}`, fsm.StatusPending},
		{"/api/tasks/1/claim", `{"worker_id":"w"}`, fsm.StatusPending},
		{"/api/batch", `{"ops":[{"op":"claim","worker_id":"w"},{"op":"claim","worker_id":"v"}]}`, fsm.StatusPending},
		{"/api/tasks/claim", `{"worker_id":"w","claim_request_id":"r"}`, fsm.StatusClaimed},
	} {
		follower, leader, followerNode, leaderNode := setupPair(t)
		submitOne(t, leader, `{"params":0}`)
		submitOne(t, leader, `{"params":0}`)
		began, gone := make(chan struct{}), make(chan struct{})
		pass := followerNode.OnForward
		followerNode.OnForward = func(ctx context.Context, says nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
			close(began)
			<-gone
			return pass(ctx, says, req, resp)
		}
		conn := dialServer(t, listen(t, follower))
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", c.path, len(c.body), c.body); err != nil {
			t.Fatal(err)
		}
		<-began
		if err := errors.Join(conn.SetLinger(0), conn.Close()); err != nil {
			t.Fatal(err)
		}
		close(gone)
		waitFor(t, func() bool { return follower.core.port.Open() == 0 })
		for _, id := range []uint64{1, 2} {
			if got := leaderNode.Machine.Get(id).Status; got != fsm.StatusPending && id == 2 || got != c.want && id == 1 {
				t.Errorf("%s %s: task %d is %s", c.path, c.body, id, got)
			}
		}
	}
}

// TestServer_UnsentPeer checks that the leader releases what did not reach the
// client of a follower, and nothing that did.
func TestServer_UnsentPeer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, body string
		delivered  bool
		held       []command.Hold
	}{
		{"/api/tasks/claim", `{"worker_id":"w","limit":2}`, false, []command.Hold{{ID: 2, WorkerID: "w", Token: 2}, {ID: 3, WorkerID: "w", Token: 3}}},
		{"/api/tasks/1/complete", `{"worker_id":"w","claim":{}}`, true, []command.Hold{{ID: 2, WorkerID: "w", Token: 2}}},
		{"/api/tasks/1/complete", `{"worker_id":"w","claim":{"claim_request_id":"r"}}`, false, nil},
		{"/api/batch", `{"ops":[{"op":"claim","worker_id":"v"},{"op":"claim","worker_id":"u","claim_request_id":"r"},{"op":"complete","id":1,"worker_id":"w","claim":{"limit":3}}]}`, false, []command.Hold{{ID: 2, WorkerID: "v", Token: 2}, {ID: 4, WorkerID: "w", Token: 4}}},
		{"/api/batch", `{"claim_request_id":"r","ops":[{"op":"claim","worker_id":"v"},{"op":"complete","id":1,"worker_id":"w","claim":{}}]}`, false, nil},
	} {
		s, node := setup(t)
		for range 4 {
			submitOne(t, s, `{"params":0}`)
		}
		s.call(t, "POST /api/tasks/1/claim", `{"worker_id":"w"}`).good(t, 200)
		var req fasthttp.Request
		var resp fasthttp.Response
		setPost(&req, c.path, c.body)
		says, err := passOn(s, nodes.Passing{}, &req, &resp)
		if err != nil || resp.StatusCode() != 200 {
			t.Fatalf("%s %s: %s, %v", c.path, c.body, resp.Body(), err)
		}
		if (says.Delivered != nil) != (c.held != nil) {
			t.Errorf("%s %s: asks whether it was delivered: %v", c.path, c.body, says.Delivered != nil)
		}
		if says.Delivered != nil {
			says.Delivered(c.delivered)
		}
		want := fsm.StatusPending
		if c.delivered {
			want = fsm.StatusClaimed
		}
		for _, h := range c.held {
			if got := node.Machine.Get(h.ID).Status; got != want {
				t.Errorf("%s %s: task %d is %s, want %s", c.path, c.body, h.ID, got, want)
			}
		}
	}
}

// TestServer_UnsentRepeated checks that a claim stays with the worker that was told of it
// by the answer to a repeat, whatever comes of the first answer: at the leader, at the
// leader for a follower, and at a follower that has the leader release it.
func TestServer_UnsentRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, body string
		claimed    uint64
	}{
		{"/api/tasks/1/complete", `{"worker_id":"w","claim_token":1,"claim":{}}`, 2},
		{"/api/tasks/2/claim", `{"worker_id":"w"}`, 2},
		{"/api/batch", `{"ops":[{"op":"complete","id":1,"worker_id":"w","claim_token":1,"claim":{"limit":2}}]}`, 3},
	} {
		for _, at := range []string{"leader", "peer port", "follower"} {
			follower, leader, followerNode, leaderNode := setupPair(t)
			for range 3 {
				submitOne(t, leader, `{"params":0}`)
			}
			leader.call(t, "POST /api/tasks/1/claim", `{"worker_id":"w"}`).good(t, 200)
			repeat := func() { leader.call(t, "POST "+c.path, c.body).good(t, 200) }
			switch at {
			case "leader":
				resetAtAnswer(t, leader, c.path, c.body, func(answer func()) {
					leaderNode.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
						leaderNode.OnPropose = nil
						p, err := leaderNode.Apply(cmd)
						repeat()
						answer()
						return p, err
					}
				})
			case "peer port":
				var req fasthttp.Request
				var resp fasthttp.Response
				setPost(&req, c.path, c.body)
				says, err := passOn(leader, nodes.Passing{}, &req, &resp)
				if err != nil {
					t.Fatal(err)
				}
				repeat()
				says.Delivered(false)
			case "follower":
				resetAtAnswer(t, follower, c.path, c.body, func(answer func()) {
					pass := followerNode.OnForward
					followerNode.OnForward = func(ctx context.Context, says nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
						followerNode.OnForward = pass
						told, err := pass(ctx, says, req, resp)
						repeat()
						answer()
						return told, err
					}
				})
			}
			if got := leaderNode.Machine.Get(c.claimed); got.Status != fsm.StatusClaimed || got.WorkerID != "w" {
				t.Errorf("%s %s at the %s: a repeat was told of a claim, and the task is %s", c.path, c.body, at, got.Status)
			}
		}
	}
}

// resetAtAnswer sends a request whose connection is reset before its answer is written, and
// waits until the server is done with it. Prepare is given what resets the connection, to be
// called before the answer.
func resetAtAnswer(t *testing.T, s *Server, path, body string, prepare func(answer func())) {
	t.Helper()
	conn := dialServer(t, listen(t, s))
	answering := make(chan struct{})
	prepare(func() {
		defer close(answering)
		if err := errors.Join(conn.SetLinger(0), conn.Close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		t.Fatal(err)
	}
	<-answering
	waitFor(t, func() bool { return s.core.port.Open() == 0 })
}

// setPost makes req a POST.
func setPost(req *fasthttp.Request, path, body string) {
	req.Header.SetMethod(fasthttp.MethodPost)
	req.SetRequestURI(path)
	req.SetBodyString(body)
}

// TestServer_UnsentKeyed checks that a node that only passes on releases claims at a
// leader that asks for keys, by the key that they were made with, whether or not the
// node has keys itself.
func TestServer_UnsentKeyed(t *testing.T) {
	t.Parallel()
	for name, ofFollower := range map[string][]door.Key{"with keys": allRoles(), "without keys": nil} {
		leader, follower := setupBoth(t, []door.Key{testKey("producer"), fromAddresses(testKey("worker"), "127.0.0.0/8")}, ofFollower)
		leader.call(t, "POST /api/tasks", `{"params":0}`, with("producer")).good(t, 201)
		addr := listen(t, follower)
		claimed, gone := make(chan struct{}), make(chan struct{})
		other := follower.core.node.(*nodetest.Node)
		forward := other.OnForward
		other.OnForward = func(ctx context.Context, says nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
			told, err := forward(ctx, says, req, resp)
			close(claimed)
			<-gone
			return told, err
		}
		const body = `{"worker_id":"w"}`
		conn := dial(t, addr, fmt.Sprintf("POST /api/tasks/claim HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: %d\r\n\r\n%s", with("worker"), len(body), body))
		<-claimed
		if err := errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close()); err != nil { // with a reset
			t.Fatal(err)
		}
		close(gone)
		waitFor(t, func() bool { return follower.core.port.Open() == 0 })
		node := leader.core.node.(*nodetest.Node)
		node.Mu.Lock()
		if got := node.Machine.Get(1).Status; got != fsm.StatusPending {
			t.Errorf("a follower %s: the task is %s", name, got)
		}
		node.Mu.Unlock()
	}
}

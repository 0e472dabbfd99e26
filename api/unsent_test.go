package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/claimq/claimq/fsm"
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
		node.onPropose = func(_ context.Context, cmd fsm.Command) (fsm.Proposed, error) {
			if _, release := cmd.(fsm.Release); !release {
				close(began)
				<-gone
			}
			return node.apply(cmd)
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
		waitFor(t, func() bool { return s.open.Load() == 0 })
		node.mu.Lock()
		if got := node.machine.Get(1).Status; len(node.proposed) != c.want || got != c.status {
			t.Errorf("%s %s: %d commands, task %s, want %d, %s", c.path, c.body, len(node.proposed), got, c.want, c.status)
		}
		node.mu.Unlock()
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
	waitFor(t, func() bool { return s.open.Load() == 0 })
	if len(node.proposed) != 2 {
		t.Errorf("%d commands, want 2", len(node.proposed))
	}

	conn := &countedConn{Conn: brokenConn{}, open: &s.open, server: s, unsent: nil}
	if _, err := conn.Write([]byte("x")); err == nil || len(node.proposed) != 2 {
		t.Errorf("a later answer: %v, %d commands", err, len(node.proposed))
	}
}

// TestServer_SentClaimBeforeRead checks that a claim stays whose answer was
// sent, also when the connection breaks at what is written before the next
// request reaches its handler: "100 Continue", or an answer to half a request.
func TestServer_SentClaimBeforeRead(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":0}`)
	p, err := node.apply(fsm.ClaimNext{WorkerID: "w", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	hold := fsm.Hold{ID: 1, WorkerID: "w", Token: p.Result.Claims[0].Token}
	conn := &countedConn{Conn: brokenConn{}, open: &s.open, server: s, unsent: []fsm.Hold{hold}}
	// The server reads on: so it has written the claim's answer.
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("a broken connection was read from")
	}
	if _, err := conn.Write([]byte("x")); err == nil {
		t.Fatal("a broken connection was written to")
	}
	if got := node.machine.Get(1).Status; got != fsm.StatusClaimed {
		t.Errorf("the task is %s, want claimed", got)
	}
}

type brokenConn struct{ nopConn }

func (brokenConn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// waitFor waits until cond holds.
func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatal("waited 10 s in vain")
		}
		runtime.Gosched()
	}
}

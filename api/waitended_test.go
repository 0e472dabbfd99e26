package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// endsTask returns what waits for a task until it is completed.
func endsTask(t *testing.T, node *nodetest.Node) func(context.Context, uint64, time.Duration) error {
	return func(_ context.Context, id uint64, _ time.Duration) error {
		for _, cmd := range []command.Command{
			command.ClaimTask{ID: id, WorkerID: "w"},
			command.Complete{Hold: command.Hold{ID: id, WorkerID: "w"}, Result: []byte("7")},
		} {
			if _, err := node.Apply(cmd); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
}

// TestServer_WaitEnded checks that a GET with wait_ms answers with the
// task after the wait, and when it does not wait.
func TestServer_WaitEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target string
		waits  bool
	}{
		{"GET /api/tasks/1?wait_ms=60000", true},
		{"HEAD /api/tasks/1?wait_ms=60000", true},
		{"GET /api/tasks/1?consistency=stale&wait_ms=60000", true},
		{"GET /api/tasks/by-key/k?wait_ms=60000", true},
		{"GET /api/tasks/1?wait_ms=0", false},
		{"GET /api/tasks/1", false},
	} {
		s, node := setup(t)
		submitOne(t, s, `{"params":1,"idempotency_key":"k","unique":"active"}`)
		waited := false
		node.OnWaitEnded = func(ctx context.Context, id uint64, wait time.Duration) error {
			waited = true
			if id != 1 || wait > time.Minute || wait < 30*time.Second {
				t.Errorf("%s: waits %s for task %d", c.target, wait, id)
			}
			return endsTask(t, node)(ctx, id, wait)
		}
		task := s.call(t, c.target, "").good(t, 200).Task
		if waited != c.waits || (task.Status == "completed") != c.waits || (string(task.Result) == "7") != c.waits {
			t.Errorf("%s: waited %v, task %+v", c.target, waited, task)
		}
		node.OnWaitEnded = func(context.Context, uint64, time.Duration) error {
			t.Errorf("%s: waits for what is not to be waited for", c.target)
			return nil
		}
		if c.waits {
			s.call(t, "GET /api/tasks/1?wait_ms=60000", "").good(t, 200)
		}
		s.call(t, "GET /api/tasks/2?wait_ms=60000", "").refused(t, wire.CodeTaskNotFound)
		s.call(t, "GET /api/tasks/by-key/none?wait_ms=60000", "").refused(t, wire.CodeTaskNotFound)
	}
}

// TestServer_WaitEndedOver checks what is answered when the time is over, when
// the task is removed meanwhile, and when the wait fails.
func TestServer_WaitEndedOver(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1}`)
	const target = "GET /api/tasks/1?wait_ms=60000"
	if task := s.call(t, target, "").good(t, 200).Task; task.Status != "pending" {
		t.Errorf("the time is over: %+v", task)
	}
	for err, code := range map[error]wire.Code{nodes.ErrOverloaded: wire.CodeOverloaded, nodes.ErrShuttingDown: wire.CodeShuttingDown} {
		node.OnWaitEnded = func(context.Context, uint64, time.Duration) error { return fmt.Errorf("wait: %w", err) }
		s.call(t, target, "").refused(t, code)
	}
	node.OnWaitEnded = func(ctx context.Context, id uint64, wait time.Duration) error {
		err := endsTask(t, node)(ctx, id, wait)
		if _, deleted := node.Apply(command.Delete{ID: id}); deleted != nil {
			t.Error(deleted)
		}
		return err
	}
	s.call(t, target, "").refused(t, wire.CodeTaskNotFound)
}

// TestServer_WaitEndedLate checks that the read after a long wait has all its
// time.
func TestServer_WaitEndedLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		submitOne(t, s, `{"params":1}`)
		node.OnWaitEnded = func(_ context.Context, _ uint64, wait time.Duration) error {
			<-time.After(wait)
			return nil
		}
		reads := 0
		node.OnRead = func(ctx context.Context, _ uint64) error {
			reads++
			if deadline, _ := ctx.Deadline(); time.Until(deadline) < s.cfg.Wait-time.Second {
				t.Errorf("read %d has %s", reads, time.Until(deadline))
			}
			return ctx.Err()
		}
		start := time.Now()
		s.call(t, "GET /api/tasks/1?wait_ms=60000", "").good(t, 200)
		if took := time.Since(start); reads != 3 || took != time.Minute {
			t.Errorf("%d reads, it took %s", reads, took)
		}
	})
}

// TestServer_WaitEndedGone checks that the wait ends when the client goes, here
// and through a follower, and when the server drains.
func TestServer_WaitEndedGone(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"leader", "follower"} {
		follower, leader, _, leaderNode := setupPair(t)
		submitOne(t, leader, `{"params":1}`)
		began, ended := make(chan struct{}), make(chan struct{})
		leaderNode.OnWaitEnded = func(caller context.Context, _ uint64, _ time.Duration) error {
			defer close(ended)
			close(began)
			<-caller.Done()
			return context.Cause(caller)
		}
		s := leader
		if through == "follower" {
			s = follower
		}
		conn := dialServer(t, listen(t, s))
		sendGet(t, conn, "/api/tasks/1?wait_ms=60000")
		<-began
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		<-ended
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%s: %v", through, err)
		}
		waitFor(t, func() bool { return s.core.port.Open() == 0 })
	}
}

// TestServer_WaitEndedDrained checks that who waits is told that the server
// stops.
func TestServer_WaitEndedDrained(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	submitOne(t, s, `{"params":1}`)
	node.OnWaitEnded = func(caller context.Context, _ uint64, _ time.Duration) error {
		s.Drain()
		<-caller.Done()
		return context.Cause(caller)
	}
	s.call(t, "GET /api/tasks/1?wait_ms=60000", "").refused(t, wire.CodeShuttingDown)
}

func sendGet(t *testing.T, conn net.Conn, target string) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
}

// TestServer_WaitEndedThere checks that a follower passes the wait on, and what
// is left of it: the leader waits, and no node waits twice.
func TestServer_WaitEndedThere(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"GET /api/tasks/1?wait_ms=60000", "GET /api/tasks/by-key/k?wait_ms=60000"} {
		follower, leader, followerNode, leaderNode := setupPair(t)
		submitOne(t, leader, `{"params":1,"idempotency_key":"k"}`)
		waits := 0
		followerNode.OnForward = func(_ context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
			held := pass.Held
			pass.Held = func(wait time.Duration) context.Context {
				waits++
				return held(wait)
			}
			return passOn(leader, pass, req, resp)
		}
		leaderNode.OnWaitEnded = endsTask(t, leaderNode)
		task := follower.call(t, target, "").good(t, 200).Task
		if waits != 1 || task.Status != "completed" {
			t.Errorf("%s: it waits %d times, %+v", target, waits, task)
		}
		if follower.call(t, "GET /api/tasks/1", "").good(t, 200); waits != 1 {
			t.Error("a GET without wait_ms waits")
		}
		follower.call(t, "GET /api/tasks/1?wait_ms=x", "").refused(t, wire.CodeInvalidRequest)
	}
}

// TestServer_WaitEndedLost checks that a node that leads no more after the wait
// passes the request on with what is left.
func TestServer_WaitEndedLost(t *testing.T) {
	t.Parallel()
	for waited, want := range map[time.Duration]time.Duration{59 * time.Second: time.Second, time.Minute: 0} {
		synctest.Test(t, func(t *testing.T) {
			old, leader, oldNode, leaderNode := setupPair(t)
			submitOne(t, leader, `{"params":1}`)
			oldNode.Follower = false
			submitOne(t, old, `{"params":1}`)
			oldNode.OnWaitEnded = func(context.Context, uint64, time.Duration) error {
				<-time.After(waited)
				oldNode.Follower = true
				return nil
			}
			left := time.Duration(0)
			leaderNode.OnWaitEnded = func(_ context.Context, _ uint64, wait time.Duration) error {
				left = wait
				return nil
			}
			old.call(t, "GET /api/tasks/1?wait_ms=60000", "").good(t, 200)
			if left != want {
				t.Errorf("after %s the next leader waits %s, want %s", waited, left, want)
			}
		})
	}
}

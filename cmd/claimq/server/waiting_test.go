package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
)

// servedNode is a node with its API, in this process.
type servedNode struct {
	node     *cluster.Node
	server   *api.Server
	registry *prometheus.Registry
	addr     string // the API's address
	stop     func()
}

// metric returns the gauge's value.
func (n *servedNode) metric(t *testing.T, name string) int {
	t.Helper()
	families, err := n.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// serveThree runs a cluster of three on loopback until the test ends. It returns the leader and the followers.
func serveThree(t *testing.T) (leader, follower, other *servedNode) {
	t.Helper()
	nodes, err := openThree(t)
	for tries := 1; err != nil; tries++ {
		if tries == 5 {
			t.Fatal(err)
		}
		t.Logf("again, another process may have taken a port: %v", err)
		nodes, err = openThree(t)
	}
	within(t, "a leader that all know", func() bool {
		for i, n := range nodes {
			if n.node.IsLeader() {
				nodes[0], nodes[i] = nodes[i], nodes[0]
				return nodes[1].node.Ready() == nil && nodes[2].node.Ready() == nil
			}
		}
		return false
	})
	return nodes[0], nodes[1], nodes[2]
}

// openThree opens all nodes of a cluster, or none.
func openThree(t *testing.T) ([]*servedNode, error) {
	addrs := peerAddrs(t)
	nodes, errs := make([]*servedNode, len(addrs)), make([]error, len(addrs))
	ctx, cancel := context.WithTimeout(context.Background(), claimqtest.Patience/4)
	defer cancel()
	var opening sync.WaitGroup
	for i := range nodes {
		opening.Go(func() {
			if nodes[i], errs[i] = serveNode(ctx, t, fmt.Sprintf("n%d", i+1), addrs); errs[i] != nil {
				cancel() // the others would wait for it
			}
		})
	}
	opening.Wait()
	err := errors.Join(errs...)
	for _, n := range nodes {
		if n != nil && err != nil {
			n.stop()
		}
	}
	return nodes, err
}

// peerAddrs returns loopback addresses that no other test gets before this test ends.
func peerAddrs(t *testing.T) map[string]string {
	t.Helper()
	ports := claimqtest.TakePorts(t, 3)
	return map[string]string{
		"n1": fmt.Sprintf("127.0.0.1:%d", ports[0]), "n2": fmt.Sprintf("127.0.0.1:%d", ports[1]), "n3": fmt.Sprintf("127.0.0.1:%d", ports[2]),
	}
}

// serveNode opens a node and serves its API until the test ends.
func serveNode(ctx context.Context, t *testing.T, id string, addrs map[string]string) (*servedNode, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	cfg := cluster.DefaultConfig()
	cfg.NodeID, cfg.DataDir, cfg.PeerAddr, cfg.InitialCluster = id, t.TempDir(), addrs[id], addrs
	cfg.HTTPAdvertise = "http://" + listener.Addr().String()
	cfg.DiskFreeMin, cfg.Registerer = 1, registry
	cfg.Fatal = func(err error) { t.Errorf("%s stopped itself: %v", id, err) }
	node, err := cluster.Open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", id, err), listener.Close())
	}
	server, err := api.New(api.Config{Node: node, Registry: registry})
	if err != nil {
		return nil, errors.Join(err, listener.Close(), defaultWaits().closeNode(node))
	}
	node.SetForwardHandler(server.ForwardHandler())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	n := &servedNode{node: node, server: server, registry: registry, addr: listener.Addr().String()}
	n.stop = sync.OnceFunc(func() {
		if err := defaultWaits().stopServer(server, node, served, hclog.NewNullLogger()); err != nil {
			t.Errorf("stop %s: %v", id, err)
		}
	})
	t.Cleanup(n.stop)
	return n, nil
}

// within waits until a condition is true.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(claimqtest.Patience); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

type apiConn struct {
	*net.TCPConn
	r *bufio.Reader
}

func (n *servedNode) dial(t *testing.T) *apiConn {
	t.Helper()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * claimqtest.Patience)); err != nil {
		t.Fatal(err)
	}
	return &apiConn{TCPConn: conn.(*net.TCPConn), r: bufio.NewReader(conn)}
}

// send sends a request and reads no answer.
func (c *apiConn) send(t *testing.T, path, body string) {
	t.Helper()
	if _, err := io.WriteString(c, requestText(path, body)); err != nil {
		t.Fatal(err)
	}
}

// apiAnswer holds the parts of an answer that the tests check.
type apiAnswer struct {
	status int
	Code   string
	Task   struct {
		ID         uint64
		Status     string
		Attempts   int
		ClaimToken uint64 `json:"claim_token"`
	}
	Tasks []struct{ ID uint64 }
}

func (c *apiConn) receive() (a apiAnswer, err error) {
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	a.status = resp.StatusCode
	return a, json.Unmarshal(body, &a)
}

// post sends a request and returns the answer. It repeats the request while there is no leader.
func (n *servedNode) post(t *testing.T, path, body string) (a apiAnswer) {
	t.Helper()
	c := n.dial(t)
	within(t, "an answer of a leader", func() bool {
		c.send(t, path, body)
		var err error
		if a, err = c.receive(); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return a.Code != "no_leader"
	})
	return a
}

// waitingClaim is a client that waits for a task.
type waitingClaim struct {
	*apiConn
	done   chan struct{} // closed when answer and err are set
	answer apiAnswer
	err    error
}

// claim sends a claim that waits. It sends it again if the leader is gone, which can happen on a busy machine.
func (n *servedNode) claim(t *testing.T) *waitingClaim {
	t.Helper()
	w := &waitingClaim{apiConn: n.dial(t), done: make(chan struct{})}
	w.send(t, "/api/tasks/claim", waitClaim)
	go func() {
		defer close(w.done)
		for {
			w.answer, w.err = w.receive()
			if w.err != nil || w.answer.Code != "no_leader" {
				return
			}
			if _, w.err = io.WriteString(w, requestText("/api/tasks/claim", waitClaim)); w.err != nil {
				return
			}
		}
	}()
	return w
}

func (n *servedNode) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + n.addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// waiting waits until that many claims wait at the leader, whichever of nodes that is.
func waiting(t *testing.T, want int, nodes ...*servedNode) {
	t.Helper()
	within(t, fmt.Sprintf("%d claims to wait", want), func() bool {
		sum := 0
		for _, n := range nodes {
			sum += n.metric(t, "claimq_waiting_claims")
		}
		return sum == want
	})
}

const waitClaim = `{"worker_id":"w","wait_ms":60000,"lease_ms":86400000}`

func requestText(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// A waiting claim gets a task when one arrives, through the leader and through a follower.
func TestWaiting_claim(t *testing.T) {
	t.Parallel()
	leader, follower, other := serveThree(t)
	for _, n := range []*servedNode{leader, follower} {
		c := n.claim(t)
		waiting(t, 1, leader, follower, other)
		submitted := follower.post(t, "/api/tasks", `{"params":1}`)
		<-c.done
		if c.err != nil || c.answer.status != 200 || c.answer.Task.ID != submitted.Task.ID {
			t.Errorf("got %+v, %v, want task %d", c.answer, c.err, submitted.Task.ID)
		}
		// The connection stays usable.
		c.send(t, "/api/tasks/claim", `{"worker_id":"w","wait_ms":30}`)
		if got, err := c.receive(); err != nil || got.status != 404 {
			t.Errorf("nothing to claim: %+v, %v", got, err)
		}
	}
}

// "A waiting claim is dropped when its connection is closed": the leader notices closed sockets while nothing else
// happens, and gives them no task.
func TestWaiting_closed(t *testing.T) {
	t.Parallel()
	leader, follower, other := serveThree(t)
	for _, hangUp := range []func(*waitingClaim) error{
		func(c *waitingClaim) error { return c.Close() },
		func(c *waitingClaim) error { return errors.Join(c.SetLinger(0), c.Close()) }, // a reset
		func(c *waitingClaim) error { return c.CloseWrite() },
		func(c *waitingClaim) error {
			_, err := io.WriteString(c, "GET /api/stats HTTP/1.1\r\n")
			return errors.Join(err, c.Close())
		},
	} {
		for _, n := range []*servedNode{leader, follower} {
			c := n.claim(t)
			waiting(t, 1, leader, follower, other)
			if err := hangUp(c); err != nil {
				t.Fatal(err)
			}
			waiting(t, 0, leader, follower, other)
		}
	}
	id := other.post(t, "/api/tasks", `{"params":1}`).Task.ID
	if got := other.post(t, "/api/tasks/claim", waitClaim); got.Task.ID != id || got.Task.Attempts != 1 {
		t.Errorf("got %+v, want task %d", got, id)
	}
}

// A task that arrives just after all waiting clients have disconnected goes to the next claim.
func TestWaiting_closedJustNow(t *testing.T) {
	t.Parallel()
	leader, follower, other := serveThree(t)
	for round := range 20 {
		n := []*servedNode{leader, follower}[round%2]
		const gone = 10
		conns := make([]*waitingClaim, gone)
		for i := range conns {
			conns[i] = n.claim(t)
		}
		waiting(t, gone, leader, follower, other)
		for _, c := range conns {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		// The key makes a repeat safe. On a busy machine the outcome can be unknown.
		body := fmt.Sprintf(`{"params":1,"idempotency_key":"round-%d"}`, round)
		var id uint64
		within(t, "a known outcome", func() bool {
			id = leader.post(t, "/api/tasks", body).Task.ID
			return id != 0
		})
		got := follower.post(t, "/api/tasks/claim", waitClaim)
		if got.Task.ID != id || got.Task.Attempts != 1 {
			t.Fatalf("round %d: got %+v, want task %d at its first attempt", round, got, id)
		}
	}
}

// Many claims wait through a follower, and each gets a task.
func TestWaiting_many(t *testing.T) {
	t.Parallel()
	const count = 1_000
	leader, follower, other := serveThree(t)
	conns := make([]*waitingClaim, count)
	for i := range conns {
		conns[i] = follower.claim(t)
	}
	waiting(t, count, leader, follower, other)
	var tasks []string
	for i := range count {
		tasks = append(tasks, fmt.Sprintf(`{"params":1,"idempotency_key":"many-%d"}`, i))
	}
	// The keys make a repeat safe. On a busy machine the outcome can be unknown.
	body := `{"tasks":[` + strings.Join(tasks, ",") + `]}`
	for a := leader.post(t, "/api/tasks", body); a.status != 200; a = leader.post(t, "/api/tasks", body) {
		if t.Context().Err() != nil || a.status < 500 {
			t.Fatalf("submit: %+v", a)
		}
	}
	seen := make(map[uint64]bool)
	for _, c := range conns {
		<-c.done
		if c.err != nil || c.answer.status != 200 || seen[c.answer.Task.ID] {
			t.Fatalf("got %+v, %v", c.answer, c.err)
		}
		seen[c.answer.Task.ID] = true
	}
}

// "shutting_down: nothing was written": waiting clients get this answer at once.
func TestWaiting_shutdown(t *testing.T) {
	t.Parallel()
	leader, follower, other := serveThree(t)
	running := []*servedNode{leader, other, follower}
	for _, n := range []*servedNode{follower, leader} {
		c := n.claim(t)
		waiting(t, 1, running...)
		n.stop()
		running = running[:2]
		<-c.done
		if c.err != nil || c.answer.status != 503 || c.answer.Code != "shutting_down" {
			t.Errorf("got %+v, %v", c.answer, c.err)
		}
	}
}

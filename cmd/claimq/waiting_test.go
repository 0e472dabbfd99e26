package main

import (
	"bufio"
	"context"
	"encoding/json"
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
)

// servedNode is a node and its API, in this process.
type servedNode struct {
	node   *cluster.Node
	server *api.Server
	addr   string // of its API
	stop   func()
}

// serveThree runs a cluster of three on loopback until the test ends, and
// returns its leader and its followers.
func serveThree(t *testing.T) (leader, follower, other *servedNode) {
	t.Helper()
	addrs := peerAddrs(t)
	nodes := make([]*servedNode, 0, len(addrs))
	var mu sync.Mutex
	var opening sync.WaitGroup
	for id, addr := range addrs {
		opening.Go(func() {
			if n := serveNode(t, id, addr, addrs); n != nil {
				mu.Lock()
				nodes = append(nodes, n)
				mu.Unlock()
			}
		})
	}
	opening.Wait()
	if len(nodes) != 3 {
		t.Fatal("not all nodes run")
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

// peerAddrs returns loopback addresses that are free now.
func peerAddrs(t *testing.T) map[string]string {
	t.Helper()
	addrs := make(map[string]string)
	for _, id := range []string{"n1", "n2", "n3"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addrs[id] = l.Addr().String()
	}
	return addrs
}

// serveNode opens a node and serves its API; nil if that failed.
func serveNode(t *testing.T, id, peerAddr string, all map[string]string) *servedNode {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil
	}
	registry := prometheus.NewRegistry()
	cfg := cluster.DefaultConfig()
	cfg.NodeID, cfg.DataDir, cfg.PeerAddr, cfg.InitialCluster = id, t.TempDir(), peerAddr, all
	cfg.HTTPAdvertise = "http://" + listener.Addr().String()
	cfg.DiskFreeMin, cfg.Registerer = 0, registry
	cfg.Fatal = func(err error) { t.Errorf("%s stopped itself: %v", id, err) }
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	node, err := cluster.Open(ctx, cfg)
	if err != nil {
		t.Errorf("open %s: %v", id, err)
		return nil
	}
	server, err := api.New(api.Config{Node: node, Registry: registry})
	if err != nil {
		t.Error(err)
		return nil
	}
	node.SetForwardHandler(server.ForwardHandler())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	n := &servedNode{node: node, server: server, addr: listener.Addr().String()}
	n.stop = sync.OnceFunc(func() {
		if err := stopServer(server, node, served, hclog.NewNullLogger()); err != nil {
			t.Errorf("stop %s: %v", id, err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

// within waits until a condition holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// apiConn is a client's connection.
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
	if err := conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	return &apiConn{TCPConn: conn.(*net.TCPConn), r: bufio.NewReader(conn)}
}

// send sends a request and reads no answer.
func (c *apiConn) send(t *testing.T, path, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		t.Fatal(err)
	}
}

// apiAnswer is what the tests look at of an answer.
type apiAnswer struct {
	status int
	header http.Header
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
	a.status, a.header = resp.StatusCode, resp.Header
	return a, json.Unmarshal(body, &a)
}

func (n *servedNode) post(t *testing.T, path, body string) apiAnswer {
	t.Helper()
	c := n.dial(t)
	c.send(t, path, body)
	a, err := c.receive()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
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

// waiting returns how many claims wait at the leader.
func (n *servedNode) waiting(t *testing.T) (count int) {
	t.Helper()
	for line := range strings.Lines(n.get(t, "/metrics")) {
		if _, err := fmt.Sscanf(line, "claimq_waiting_claims %d", &count); err == nil {
			return count
		}
	}
	t.Fatal("no claimq_waiting_claims on /metrics")
	return 0
}

const waitClaim = `{"worker_id":"w","wait_ms":60000,"lease_ms":86400000}`

// A waiting claim has a task when there is one, through the leader and through
// a follower.
func TestWaiting_claim(t *testing.T) {
	t.Parallel()
	leader, follower, _ := serveThree(t)
	for _, n := range []*servedNode{leader, follower} {
		c := n.dial(t)
		c.send(t, "/api/tasks/claim", waitClaim)
		within(t, "the claim to wait", func() bool { return leader.waiting(t) == 1 })
		submitted := follower.post(t, "/api/tasks", `{"params":1}`)
		got, err := c.receive()
		if err != nil || got.status != 200 || got.Task.ID != submitted.Task.ID {
			t.Errorf("got %+v, %v, want task %d", got, err, submitted.Task.ID)
		}
		for name := range got.header {
			switch name {
			case "X-Claimq-Holds", "X-Claimq-Given-Up":
				t.Errorf("the client sees %s", name)
			}
		}
		// The connection goes on.
		c.send(t, "/api/tasks/claim", `{"worker_id":"w","wait_ms":30}`)
		if got, err := c.receive(); err != nil || got.status != 404 {
			t.Errorf("nothing to claim: %+v, %v", got, err)
		}
	}
}

// "A waiting claim is dropped when its connection is closed": closed sockets are
// noticed while nothing happens, and swallow no task.
func TestWaiting_closed(t *testing.T) {
	t.Parallel()
	leader, follower, other := serveThree(t)
	closings := map[string]func(*apiConn) error{
		"close": func(c *apiConn) error { return c.Close() },
		"reset": func(c *apiConn) error {
			if err := c.SetLinger(0); err != nil {
				return err
			}
			return c.Close()
		},
		"half close": func(c *apiConn) error { return c.CloseWrite() },
		"after a pipelined request": func(c *apiConn) error {
			if _, err := io.WriteString(c, "GET /api/stats HTTP/1.1\r\n"); err != nil {
				return err
			}
			return c.Close()
		},
	}
	for name, hangUp := range closings {
		for _, n := range []*servedNode{leader, follower} {
			c := n.dial(t)
			c.send(t, "/api/tasks/claim", waitClaim)
			within(t, "the claim to wait", func() bool { return leader.waiting(t) == 1 })
			if err := hangUp(c); err != nil {
				t.Fatal(err)
			}
			within(t, name+" to be noticed", func() bool { return leader.waiting(t) == 0 })
		}
	}
	id := other.post(t, "/api/tasks", `{"params":1}`).Task.ID
	if got := other.post(t, "/api/tasks/claim", waitClaim); got.Task.ID != id || got.Task.Attempts != 1 {
		t.Errorf("got %+v, want task %d", got, id)
	}
}

// A task that arrives as soon as all have hung up that waited goes to the next
// one who asks.
func TestWaiting_closedJustNow(t *testing.T) {
	t.Parallel()
	leader, follower, _ := serveThree(t)
	for round := range 20 {
		n := []*servedNode{leader, follower}[round%2]
		const gone = 10
		conns := make([]*apiConn, gone)
		for i := range conns {
			conns[i] = n.dial(t)
			conns[i].send(t, "/api/tasks/claim", waitClaim)
		}
		within(t, "the claims to wait", func() bool { return leader.waiting(t) == gone })
		for _, c := range conns {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		id := leader.post(t, "/api/tasks", `{"params":1}`).Task.ID
		got := follower.post(t, "/api/tasks/claim", waitClaim)
		if got.Task.ID != id || got.Task.Attempts != 1 {
			t.Fatalf("round %d: got %+v, want task %d at its first attempt", round, got, id)
		}
	}
}

// Many claims wait through a follower over one connection, cost the log
// nothing, and get a task each.
func TestWaiting_many(t *testing.T) {
	t.Parallel()
	const count = 2_000
	leader, follower, _ := serveThree(t)
	conns := make([]*apiConn, count)
	for i := range conns {
		conns[i] = follower.dial(t)
		conns[i].send(t, "/api/tasks/claim", waitClaim)
	}
	within(t, "the claims to wait", func() bool { return leader.waiting(t) == count })
	for range 2 {
		var tasks []string
		for range count / 2 {
			tasks = append(tasks, `{"params":1}`)
		}
		if a := leader.post(t, "/api/tasks", `{"tasks":[`+strings.Join(tasks, ",")+`]}`); a.status != 200 {
			t.Fatalf("submit: %+v", a)
		}
	}
	seen := make(map[uint64]bool)
	for _, c := range conns {
		got, err := c.receive()
		if err != nil || got.status != 200 || seen[got.Task.ID] {
			t.Fatalf("got %+v, %v", got, err)
		}
		seen[got.Task.ID] = true
	}
}

// "shutting_down: nothing was written": those who wait are told at once.
func TestWaiting_shutdown(t *testing.T) {
	t.Parallel()
	leader, follower, _ := serveThree(t)
	for _, n := range []*servedNode{follower, leader} {
		c := n.dial(t)
		c.send(t, "/api/tasks/claim", waitClaim)
		within(t, "the claim to wait", func() bool { return leader.waiting(t) == 1 })
		n.stop()
		if got, err := c.receive(); err != nil || got.status != 503 || got.Code != "shutting_down" {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

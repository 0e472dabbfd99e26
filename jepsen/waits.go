package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/procs"
)

// How long a claim has waited when its task is submitted: long enough to be with
// the leader, and so long that the machine's cores have gone to sleep.
const (
	handoffPause = 2 * time.Millisecond
	handoffIdle  = 40 * time.Millisecond
)

// waitsConfig says what to show of waiting claims.
type waitsConfig struct {
	waiting  int           // claims that wait through the followers
	handoffs int           // tasks that are handed to a waiting worker, for the time it takes
	idle     time.Duration // that nothing happens
}

// runWaits shows on three real nodes what waiting claims cost: how long a
// submitted task takes to a waiting worker, what many of them cost an idle
// cluster, and that closed connections are noticed and swallow no task.
func runWaits(ctx context.Context, c *call) error {
	cfg := waitsConfig{}
	c.onNodes()
	c.IntVar(&cfg.waiting, "waiting", 10_000, "claims that wait through the followers")
	c.IntVar(&cfg.handoffs, "handoffs", 500, "tasks handed to a waiting worker, at the leader and at a follower")
	c.DurationVar(&cfg.idle, "idle", 20*time.Second, "how long the cluster is idle under the waiting claims")
	if err := c.parse(nil); err != nil {
		return err
	}
	return c.with(ctx, 3, func(nodes *procs.Cluster) error { return showWaits(ctx, cfg, nodes, c.out) })
}

// showWaits shows it on the nodes.
func showWaits(ctx context.Context, cfg waitsConfig, c *procs.Cluster, out io.Writer) error {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	followers := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *procs.Node) bool { return n == leader })
	// First, because claims that live make the leader log the time.
	if err := crowd(ctx, cfg, c, leader, followers, out); err != nil {
		return err
	}
	for _, pause := range []time.Duration{handoffPause, handoffIdle} {
		for _, at := range []struct {
			name string
			node *procs.Node
		}{{"the leader", leader}, {"a follower", followers[0]}} {
			took, err := handoffs(ctx, leader, at.node, cfg.handoffs, pause)
			if err != nil {
				return err
			}
			slices.Sort(took)
			fmt.Fprintf(out, "submit to claim by a worker that has waited %v at %s: median %v, p95 %v of %d tasks\n", pause, at.name,
				took[len(took)/2].Round(10*time.Microsecond), took[len(took)*95/100].Round(10*time.Microsecond), len(took))
		}
	}
	return nil
}

// handoffs submits tasks at the leader, one after the other, each so long after a
// claim for it was sent to node, and returns how long each took from before its
// submit until the claim's answer.
func handoffs(ctx context.Context, leader, node *procs.Node, count int, pause time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, 0, count)
	for i := range count {
		taskType := fmt.Sprintf("handoff-%s-%d", node.ID, i)
		answered := make(chan error, 1)
		go func() {
			_, err := post(ctx, node, "/api/tasks/claim", fmt.Sprintf(`{"worker_id":"w","task_types":[%q],"wait_ms":60000}`, taskType))
			answered <- err
		}()
		<-time.After(pause)
		begun := time.Now()
		if _, err := post(ctx, leader, "/api/tasks", fmt.Sprintf(`{"task_type":%q,"params":1}`, taskType)); err != nil {
			return nil, err
		}
		if err := <-answered; err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// crowd lets many claims wait through the followers.
func crowd(ctx context.Context, cfg waitsConfig, c *procs.Cluster, leader *procs.Node, followers []*procs.Node, out io.Writer) error {
	alone, err := idle(ctx, cfg, c)
	if err != nil {
		return err
	}
	var crowd waitingCrowd
	defer crowd.close()
	for i := range cfg.waiting {
		if err := crowd.join(followers[i%len(followers)]); err != nil {
			return err
		}
	}
	if err := untilWaiting(ctx, leader, func(n int) bool { return n == cfg.waiting }); err != nil {
		return err
	}
	together, err := idle(ctx, cfg, c)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d claims wait through %d followers: %d log entries in %v, %.1f %% of a core on all nodes together, %.1f %% without them\n",
		cfg.waiting, len(followers), together.index, cfg.idle, together.percent, alone.percent)

	gone := cfg.waiting / 2
	begun := time.Now()
	crowd.leave(gone)
	if err := untilWaiting(ctx, leader, func(n int) bool { return n == cfg.waiting-gone }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d closed connections: all noticed within %v\n", gone, time.Since(begun).Round(time.Millisecond))
	return crowd.serve(ctx, leader, cfg.waiting-gone, out)
}

// idleCost is what the nodes did while nothing happened.
type idleCost struct {
	percent float64 // of a core, all nodes together
	index   uint64  // log entries
}

// idle lets the cluster be idle and returns what that cost.
func idle(ctx context.Context, cfg waitsConfig, c *procs.Cluster) (idleCost, error) {
	before, err := usageOf(ctx, c)
	if err != nil {
		return idleCost{}, err
	}
	select {
	case <-time.After(cfg.idle):
	case <-ctx.Done():
		return idleCost{}, ctx.Err()
	}
	after, err := usageOf(ctx, c)
	return idleCost{
		percent: 100 * (after.cpu - before.cpu) / after.at.Sub(before.at).Seconds(),
		index:   after.index - before.index,
	}, err
}

// waitingCrowd is connections on which a claim waits.
type waitingCrowd struct {
	conns   []net.Conn
	reading sync.WaitGroup
	served  atomic.Int64
}

// join sends a claim that waits to the node.
func (w *waitingCrowd) join(n *procs.Node) error {
	conn, err := net.Dial("tcp", n.HTTPAddr)
	if err != nil {
		return err
	}
	w.conns = append(w.conns, conn)
	body := fmt.Sprintf(`{"worker_id":"w%d","task_types":["crowd"],"wait_ms":60000}`, len(w.conns))
	_, err = fmt.Fprintf(conn, "POST /api/tasks/claim HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", n.HTTPAddr, len(body), body)
	if err != nil {
		return err
	}
	w.reading.Go(func() {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil && resp.StatusCode == http.StatusOK {
			w.served.Add(1)
		}
	})
	return nil
}

// leave closes the first connections.
func (w *waitingCrowd) leave(count int) {
	for _, conn := range w.conns[:count] {
		_ = conn.Close() // whatever it says, it is closed
	}
	w.conns = w.conns[count:]
}

func (w *waitingCrowd) close() {
	w.leave(len(w.conns))
	w.reading.Wait()
}

// serve submits a task for each that still waits: all must get one, and nobody
// else.
func (w *waitingCrowd) serve(ctx context.Context, leader *procs.Node, waiting int, out io.Writer) error {
	begun := time.Now()
	for left := waiting; left > 0; left -= 1000 {
		tasks := strings.Repeat(`{"task_type":"crowd","params":1},`, min(left, 1000))
		if _, err := post(ctx, leader, "/api/tasks", `{"tasks":[`+strings.TrimSuffix(tasks, ",")+`]}`); err != nil {
			return err
		}
	}
	for w.served.Load() < int64(waiting) {
		if time.Since(begun) > 50*time.Second {
			return fmt.Errorf("%d of %d tasks reached who waited", w.served.Load(), waiting)
		}
		<-time.After(time.Millisecond)
	}
	fmt.Fprintf(out, "%d tasks for those who still wait: each has one after %v, none is lost\n", waiting, time.Since(begun).Round(time.Millisecond))
	return nil
}

// untilWaiting waits until the leader says that so many claims wait.
func untilWaiting(ctx context.Context, leader *procs.Node, enough func(int) bool) error {
	for {
		n, err := leader.Metric(ctx, "claimq_waiting_claims")
		if err != nil {
			return err
		}
		if enough(int(n)) {
			return nil
		}
		select {
		case <-time.After(200 * time.Microsecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nodesUsage is what the nodes have used.
type nodesUsage struct {
	at    time.Time
	cpu   float64 // seconds
	index uint64  // of the leader's state
}

func usageOf(ctx context.Context, c *procs.Cluster) (nodesUsage, error) {
	u := nodesUsage{at: time.Now()}
	for _, n := range c.Nodes {
		cpu, err := n.Metric(ctx, "process_cpu_seconds_total")
		if err != nil {
			return u, err
		}
		u.cpu += cpu
		view, err := procs.View(ctx, n)
		if err != nil {
			return u, err
		}
		for _, node := range view.Nodes {
			u.index = max(u.index, node.AppliedIndex)
		}
	}
	return u, nil
}

// post sends a body and returns the answer, which must be a success.
func post(ctx context.Context, n *procs.Node, target, body string) (wire.Answer, error) {
	var a wire.Answer
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL()+target, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, err
	}
	if resp.StatusCode >= 300 {
		return a, fmt.Errorf("%s: status %d", target, resp.StatusCode)
	}
	return a, nil
}

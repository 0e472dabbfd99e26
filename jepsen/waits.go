package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/bench/figures"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

const (
	// The wait of a claim before its task is submitted: long enough to reach the leader, or
	// so long that the machine's cores have gone to sleep.
	handoffPause = 2 * time.Millisecond
	handoffIdle  = 40 * time.Millisecond
	// crowdPace is the pause between two waiting claims, because the cost of the waits is
	// measured, not that of all arriving at once.
	crowdPace = 200 * time.Microsecond
	// submitMax bounds the tasks submitted at a time.
	submitMax = 1000
)

// waits measures the cost of waiting claims.
type waits struct {
	nodes  *procs.Cluster
	leader *procs.Node
	others []*procs.Node
	out    io.Writer

	waiting  int           // claims that wait through the followers
	handoffs int           // tasks handed to a waiting worker, to measure the time
	idle     time.Duration // length of the idle time
}

// runWaits measures the cost of waiting claims on three real nodes: the time until a
// submitted task reaches a waiting worker, the cost of many of them for an idle cluster;
// and it checks that closed connections are noticed and swallow no task.
func runWaits(ctx context.Context, c *call) error {
	w := waits{out: c.out}
	c.onNodes(&c.plant)
	c.IntVar(&w.waiting, "waiting", 10_000, "claims that wait through the followers")
	c.IntVar(&w.handoffs, "handoffs", 500, "tasks handed to a waiting worker, at the leader and at a follower")
	c.DurationVar(&w.idle, "idle", 20*time.Second, "how long the cluster is idle under the waiting claims")
	return c.with(ctx, func() bool { return w.waiting > 1 && w.handoffs > 0 }, func(nodes *procs.Cluster) (err error) {
		if w.leader, err = nodes.WaitLeader(ctx); err != nil {
			return err
		}
		w.nodes = nodes
		w.others = slices.DeleteFunc(slices.Clone(nodes.Nodes), func(n *procs.Node) bool { return n == w.leader })
		// First, because live claims make the leader log the time.
		if err := w.crowd(ctx); err != nil {
			return err
		}
		for _, pause := range []time.Duration{handoffPause, handoffIdle} {
			for _, at := range []*procs.Node{w.leader, w.others[0]} {
				if err := w.handOff(at, pause); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// handOff submits tasks at the leader, one after the other, each that long after a claim
// for it was sent to node, and prints the times from before the submit until the claim's
// answer.
func (w *waits) handOff(node *procs.Node, after time.Duration) error {
	took := make([]float64, w.handoffs) // ms
	for i := range took {
		taskType := fmt.Sprintf("handoff-%s-%v-%d", node.ID, after, i)
		answered := make(chan error, 1)
		go func() {
			answered <- post(node, "/api/tasks/claim", fmt.Sprintf(`{"worker_id":"w","task_types":[%q],"wait_ms":60000}`, taskType))
		}()
		<-time.After(after)
		begun := time.Now()
		if err := post(w.leader, "/api/tasks", fmt.Sprintf(`{"task_type":%q,"params":1}`, taskType)); err != nil {
			return err
		}
		if err := <-answered; err != nil {
			return err
		}
		took[i] = time.Since(begun).Seconds() * 1000
	}
	at := map[bool]string{true: "the leader", false: "a follower"}[node == w.leader]
	fmt.Fprintf(w.out, "submit to claim by a worker that has waited %v at %s: median %.2fms, p95 %.2fms of %d tasks\n",
		after, at, figures.Median(took), figures.Quantile(took, 0.95), len(took))
	return nil
}

// post sends a body to the node over a kept-alive connection, because connecting would be
// part of the measured time.
func post(n *procs.Node, path, body string) error {
	resp, err := http.Post(n.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: status %d", path, resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// crowd lets many claims wait through the followers, half of which are gone before there is
// a task for each of the others: all of those must get one, and no others.
func (w *waits) crowd(ctx context.Context) error {
	alone, _, err := w.idleCost(ctx)
	if err != nil {
		return err
	}
	staying, end := context.WithCancel(ctx)
	leaving, leave := context.WithCancel(staying)
	defer leave()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer end()
	var served atomic.Int64
	gone := w.waiting / 2
	for i := range w.waiting {
		pause.For(ctx, crowdPace)
		waits := staying
		if i < gone {
			waits = leaving
		}
		waiting.Go(func() {
			claim := wire.Claim{WorkerID: fmt.Sprintf("w%d", i), TaskTypes: []string{"crowd"}, WaitMS: 60_000}
			err := pause.Until(waits, handoffIdle, func() error { // a busy machine may have no leader for a moment
				return w.others[i%len(w.others)].Ask(waits, http.MethodPost, "/api/tasks/claim", claim, nil)
			})
			if err == nil {
				served.Add(1)
			}
		})
	}
	if err := w.until(ctx, w.waiting); err != nil {
		return err
	}
	together, entries, err := w.idleCost(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%d claims wait through %d followers: %.0f log entries in %v, %.1f %% of a core on all nodes together, %.1f %% without them\n",
		w.waiting, len(w.others), entries, w.idle, together, alone)

	begun := time.Now()
	leave()
	if err := w.until(ctx, w.waiting-gone); err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%d closed connections: all noticed within %v\n", gone, time.Since(begun).Round(time.Millisecond))
	return w.serve(ctx, w.waiting-gone, &served)
}

// serve submits a task for each waiting claim.
func (w *waits) serve(ctx context.Context, waiting int, served *atomic.Int64) error {
	begun := time.Now()
	for left := waiting; left > 0; left -= submitMax {
		tasks := slices.Repeat([]wire.NewTask{{TaskType: "crowd", Params: json.RawMessage("1")}}, min(left, submitMax))
		if err := w.leader.Ask(ctx, http.MethodPost, "/api/tasks", wire.SubmitMany{Tasks: tasks}, nil); err != nil {
			return err
		}
	}
	err := counted(ctx, "tasks reached who waited", waiting, func(context.Context) (float64, error) { return float64(served.Load()), nil })
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%d tasks for those who still wait: each has one after %v, none is lost\n", waiting, time.Since(begun).Round(time.Millisecond))
	return nil
}

// until waits until the leader reports that number of waiting claims.
func (w *waits) until(ctx context.Context, waiting int) error {
	return counted(ctx, "claims wait", waiting, func(ctx context.Context) (float64, error) {
		return w.leader.Metric(ctx, "claimq_waiting_claims")
	})
}

// idleCost lets the cluster be idle and returns the cost: percent of a core for all nodes
// together, and log entries.
func (w *waits) idleCost(ctx context.Context) (percent, entries float64, err error) {
	cpu, index, err := w.used(ctx)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	if !pause.For(ctx, w.idle) {
		return 0, 0, ctx.Err()
	}
	took := time.Since(begun)
	cpuAfter, indexAfter, err := w.used(ctx)
	return 100 * (cpuAfter - cpu) / took.Seconds(), indexAfter - index, err
}

// used returns the seconds of CPU that the nodes have used, and their applied index.
func (w *waits) used(ctx context.Context) (cpu, index float64, err error) {
	for _, n := range w.nodes.Nodes {
		values, err := n.Metrics(ctx)
		if err != nil {
			return 0, 0, err
		}
		cpu += values["process_cpu_seconds_total"]
		index = max(index, values["claimq_raft_applied_index"])
	}
	return cpu, index, nil
}

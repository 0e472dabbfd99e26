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
	"github.com/claimq/claimq/jepsen/procs"
)

const (
	// How long a claim has waited when its task is submitted: long enough to be with
	// the leader, and so long that the machine's cores have gone to sleep.
	handoffPause = 2 * time.Millisecond
	handoffIdle  = 40 * time.Millisecond
	// crowdPace is between two claims of those that wait: what they cost is asked, not what
	// it costs that all come at once.
	crowdPace = 200 * time.Microsecond
	// submitMax is how many tasks are submitted at a time.
	submitMax = 1000
)

// waits shows what waiting claims cost.
type waits struct {
	nodes  *procs.Cluster
	leader *procs.Node
	others []*procs.Node
	out    io.Writer

	waiting  int           // claims that wait through the followers
	handoffs int           // tasks that are handed to a waiting worker, for the time it takes
	idle     time.Duration // that nothing happens
}

// runWaits shows on three real nodes what waiting claims cost: how long a
// submitted task takes to a waiting worker, what many of them cost an idle
// cluster, and that closed connections are noticed and swallow no task.
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
		// First, because claims that live make the leader log the time.
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

// handOff submits tasks at the leader, one after the other, each so long after a
// claim for it was sent to node, and tells how long each took from before its
// submit until the claim's answer.
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

// post sends a body to the node over a connection that is kept: to make one takes a part of
// what is measured.
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

// crowd lets many claims wait through the followers, half of which are gone before there
// is a task for each of the others: all must get one, and nobody else.
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

// serve submits a task for each that still waits.
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

// until waits until the leader says that so many claims wait.
func (w *waits) until(ctx context.Context, waiting int) error {
	return counted(ctx, "claims wait", waiting, func(ctx context.Context) (float64, error) {
		return w.leader.Metric(ctx, "claimq_waiting_claims")
	})
}

// idleCost lets the cluster be idle and returns what that cost: of a core, all nodes
// together, in percent, and in log entries.
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

// used returns the seconds of CPU that the nodes have used, and how far they have applied.
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

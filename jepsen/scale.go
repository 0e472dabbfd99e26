package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/bench/reads"
	"github.com/claimq/claimq/cmd/claimq/bench"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

const (
	// snapshotWait bounds the time that the nodes may take for a snapshot.
	snapshotWait = 10 * time.Minute
	// snapshotLook is the interval between checks whether a node has finished. Listing its
	// metrics takes the node a millisecond or two, which would disturb timed requests.
	snapshotLook = 250 * time.Millisecond
	// scaleLogBytes is the amount of log that makes a snapshot due: so large that snapshots
	// are only taken on request, and none in a window without.
	scaleLogBytes = "64GiB"
)

// scaling is a measurement of nodes that hold many tasks.
type scaling struct {
	measuring
	held    int           // waiting tasks
	reading time.Duration // length of the measurement of reads
}

// runScale fills real nodes with tasks and measures what depends on their number: memory,
// snapshots and their cost for the load, reads, and the time that killed nodes take to come
// back.
func runScale(ctx context.Context, c *call) error {
	s := scaling{measuring: measuring{out: c.out}}
	c.onNodes(&c.plant)
	c.IntVar(&s.held, "tasks", 1_000_000, "tasks that wait, at least 1,000")
	c.IntVar(&c.nodes, "nodes", c.nodes, "nodes: 1 or 3")
	s.flags(c, 3)
	c.DurationVar(&s.reading, "reading", 5*time.Second, "how long reads are counted")
	fit := func() bool { return s.held >= 1000 && (c.nodes == 1 || c.nodes == 3) && s.pairs >= 0 && s.conns > 0 }
	return c.with(ctx, fit, func(nodes *procs.Cluster) error {
		s.binary, s.nodes = c.binary, nodes
		return s.measure(ctx)
	}, "--log-level", "warn", "--snapshot-log-bytes", scaleLogBytes)
}

// measure measures and prints, one thing after the other.
func (s *scaling) measure(ctx context.Context) error {
	steps := []func(context.Context) error{s.fill, s.takeSnapshots, s.countReads}
	if s.pairs > 0 { // they leave log after the first snapshot
		steps = append(steps, s.besideSnapshots, s.takeSnapshots, s.besideSearch)
	}
	for _, step := range append(steps, s.restart) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill submits the waiting tasks.
func (s *scaling) fill(ctx context.Context) error {
	begun := time.Now()
	// The load ends when the last task is submitted, so there is hardly a warm-up.
	if _, err := s.bench(ctx, "--mode", "submit", "--tasks", strconv.Itoa(s.held), "--batch", "1000", "--conns", "2", "--warm-up", "1ms"); err != nil {
		return err
	}
	took := time.Since(begun)
	fmt.Fprintf(s.out, "%d tasks of 256 bytes, submitted by 1,000 on %d nodes in %.1f s: %.0f a second\n",
		s.held, len(s.nodes.Nodes), took.Seconds(), float64(s.held)/took.Seconds())
	return nil
}

// show prints the memory and time used by each node's process.
func (s *scaling) show(ctx context.Context) error {
	for _, n := range s.nodes.Nodes {
		v, err := n.Metrics(ctx)
		if err != nil {
			return err
		}
		state := v["claimq_state_bytes"]
		fmt.Fprintf(s.out, "%s has %.0f MB resident; its state takes %.0f MB by the estimate, %.0f bytes a task, its snapshot %.0f MB; %.1f s of CPU\n",
			n.ID, v["process_resident_memory_bytes"]/1e6, state/1e6, state/float64(s.held), v["claimq_raft_snapshot_bytes"]/1e6, v["process_cpu_seconds_total"])
	}
	return nil
}

// takeSnapshots lets all nodes write a snapshot, and prints the time.
func (s *scaling) takeSnapshots(ctx context.Context) error {
	begun := time.Now()
	if err := snapshotNow(ctx, s.nodes); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "snapshots: all nodes done after %.1f s\n", time.Since(begun).Seconds())
	return s.show(ctx)
}

// snapshotNow lets all nodes write a snapshot and waits until they have. A large one takes
// longer than the call may.
func snapshotNow(ctx context.Context, c *procs.Cluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, snapshotWait, fmt.Errorf("no snapshot after %v", snapshotWait))
	defer cancel()
	const written = "claimq_raft_snapshot_seconds_count"
	before := make([]float64, len(c.Nodes))
	for i, n := range c.Nodes {
		var err error
		if before[i], err = n.Metric(ctx, written); err != nil {
			return err
		}
	}
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return err
	}
	_ = leader.Ask(ctx, http.MethodPost, "/api/snapshots", struct{}{}, nil) // the metrics show the result
	for i, n := range c.Nodes {
		err := pause.Until(ctx, snapshotLook, func() error {
			count, err := n.Metric(ctx, written)
			if err == nil && count == before[i] {
				err = fmt.Errorf("%s has written none", n.ID)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// countReads reads tasks linearizably at the leader, one after the other on as many
// connections as the load has, and prints the rate.
func (s *scaling) countReads(ctx context.Context) error {
	leader, err := s.nodes.WaitLeader(ctx)
	if err != nil {
		return err
	}
	rate, err := reads.Rate(leader.URL(), s.conns, s.reading, func(conn, i int) string {
		return fmt.Sprintf("/api/tasks/%d", 1+(s.held/s.conns*conn+i%1000)%s.held)
	})
	if err != nil {
		return fmt.Errorf("read tasks: %w", err)
	}
	fmt.Fprintf(s.out, "%d connections: %.0f linearizable reads of a task a second\n", s.conns, rate)
	return nil
}

// besideSnapshots measures the load during snapshots of all nodes, one after the other.
func (s *scaling) besideSnapshots(ctx context.Context) error {
	return s.compare(ctx, "the snapshots of all nodes", bench.Lifecycle, func(ctx context.Context) (func() (string, error), error) {
		ctx, stop := context.WithCancel(ctx)
		taken, ended := 0, make(chan error, 1)
		go func() {
			err := snapshotNow(ctx, s.nodes)
			for ; err == nil; err = snapshotNow(ctx, s.nodes) {
				taken++
			}
			if ctx.Err() != nil { // as expected
				err = nil
			}
			ended <- err
		}()
		return func() (string, error) {
			stop()
			err := <-ended
			return fmt.Sprintf(", %d of which were whole", taken), err
		}, nil
	})
}

// besideSearch measures submits while the leader searches the params of all tasks, again and again.
func (s *scaling) besideSearch(ctx context.Context) error {
	leader, err := s.nodes.WaitLeader(ctx)
	if err != nil {
		return err
	}
	return s.compare(ctx, "a search of all tasks", bench.Submit, func(ctx context.Context) (func() (string, error), error) {
		ctx, stop := context.WithCancel(ctx)
		pages, begun, ended := 0, time.Now(), make(chan error, 1)
		go func() {
			cursor, err := searchPage(ctx, leader, "")
			for ; err == nil; cursor, err = searchPage(ctx, leader, cursor) {
				pages++
			}
			if ctx.Err() != nil { // as expected
				err = nil
			}
			ended <- err
		}()
		return func() (string, error) {
			stop()
			err := <-ended
			return fmt.Sprintf(", %d pages of up to 10,000 tasks in %.1f s", pages, time.Since(begun).Seconds()), err
		}, nil
	})
}

// searchPage searches a page of tasks for a text that none has, and returns the cursor of the next page, "" after the last.
func searchPage(ctx context.Context, n *procs.Node, cursor string) (next string, err error) {
	query := url.Values{"contains": {"a text that no task has"}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var page struct {
		Next string `json:"next_cursor"`
	}
	err = n.Ask(ctx, http.MethodGet, "/api/tasks?"+query.Encode(), nil, &page)
	return page.Next, err
}

// restart kills all nodes at once, starts them again, and prints the time until they are
// ready.
func (s *scaling) restart(ctx context.Context) error {
	if err := procs.KillAll(s.nodes.Nodes...); err != nil {
		return err
	}
	begun := time.Now()
	if err := s.nodes.StartAll(ctx); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "restarted: each node is ready %.1f s after all were started\n", time.Since(begun).Seconds())
	return s.show(ctx)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

const (
	// snapshotWait bounds how long the nodes may take for a snapshot.
	snapshotWait = 10 * time.Minute
	// snapshotLook is how often a node is asked whether it has. To list its metrics
	// costs it a millisecond or two, beside which requests are timed.
	snapshotLook = 250 * time.Millisecond
)

// scaleLogBytes is how much log makes a snapshot due: so much that all are taken
// when they are asked for, and none in a window without.
const scaleLogBytes = "64GiB"

// scaling are nodes that hold many tasks.
type scaling struct {
	measuring
	held    int           // tasks that wait
	reading time.Duration // how long reads are counted
}

// runScale fills real nodes with tasks and measures what depends on how many there
// are: memory, snapshots and what these cost the load beside them, reads, and
// how long nodes that were killed take to be back.
func runScale(ctx context.Context, c *call) error {
	s := scaling{measuring: measuring{out: c.out}}
	c.onNodes()
	c.IntVar(&s.held, "tasks", 1_000_000, "tasks that wait, at least 1,000")
	nodes := c.Int("nodes", 3, "nodes: 1 or 3")
	s.flags(c, 3)
	c.DurationVar(&s.reading, "reading", 5*time.Second, "how long reads are counted")
	if err := c.parse(func() bool { return s.held >= 1000 && (*nodes == 1 || *nodes == 3) && s.pairs >= 0 && s.conns > 0 }); err != nil {
		return err
	}
	return c.with(ctx, *nodes, func(nodes *procs.Cluster) error {
		s.binary, s.nodes = c.binary, nodes
		return s.measure(ctx)
	}, "--log-level", "warn", "--snapshot-log-bytes", scaleLogBytes)
}

// measure measures and prints, one thing after the other.
func (s *scaling) measure(ctx context.Context) error {
	steps := []func(context.Context) error{s.fill, s.showMemory, s.takeSnapshots, s.countReads}
	if s.pairs > 0 { // which leave log behind the first snapshot
		steps = append(steps, s.besideSnapshots, s.takeSnapshots)
	}
	for _, step := range append(steps, s.restart, s.showMemory) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// besideSnapshots measures the load beside snapshots of all nodes, one after the other.
func (s *scaling) besideSnapshots(ctx context.Context) error {
	return s.beside(ctx, "the snapshots of all nodes", func(ctx context.Context) (func() (string, error), error) {
		ctx, stop := context.WithCancel(ctx)
		taken, ended := 0, make(chan error, 1)
		go func() {
			for ; ; taken++ {
				if err := snapshotNow(ctx, s.nodes); ctx.Err() != nil {
					ended <- nil
					return
				} else if err != nil {
					ended <- err
					return
				}
			}
		}()
		return func() (string, error) {
			stop()
			err := <-ended
			return fmt.Sprintf(", %d of which were whole", taken), err
		}, nil
	})
}

// fill submits the tasks that wait.
func (s *scaling) fill(ctx context.Context) error {
	begun := time.Now()
	// It ends when the last is submitted: so there is hardly a warm-up.
	if _, err := s.bench(ctx, "--mode", "submit", "--tasks", strconv.Itoa(s.held), "--batch", "1000", "--conns", "2", "--warm-up", "1ms"); err != nil {
		return err
	}
	took := time.Since(begun)
	fmt.Fprintf(s.out, "%d tasks of 256 bytes, submitted by 1,000 on %d nodes in %.1f s: %.0f a second\n",
		s.held, len(s.nodes.Nodes), took.Seconds(), float64(s.held)/took.Seconds())
	return nil
}

// showMemory prints what each node's process takes.
func (s *scaling) showMemory(ctx context.Context) error {
	for _, n := range s.nodes.Nodes {
		rss, err := n.Metric(ctx, "process_resident_memory_bytes")
		if err != nil {
			return err
		}
		state, err := n.Metric(ctx, "claimq_state_bytes")
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s has %.0f MB resident; its state takes %.0f MB by the estimate, %.0f bytes a task\n",
			n.ID, rss/1e6, state/1e6, state/float64(s.held))
	}
	return nil
}

// takeSnapshots has all nodes write a snapshot, and prints how long that took and
// how long the state was held still for it.
func (s *scaling) takeSnapshots(ctx context.Context) error {
	begun := time.Now()
	if err := snapshotNow(ctx, s.nodes); err != nil {
		return err
	}
	took := time.Since(begun)
	for _, n := range s.nodes.Nodes {
		count, err := n.Metric(ctx, "claimq_raft_snapshot_capture_seconds_count")
		if err != nil {
			return err
		}
		sum, err := n.Metric(ctx, "claimq_raft_snapshot_capture_seconds_sum")
		if err != nil {
			return err
		}
		size, err := n.Metric(ctx, "claimq_raft_snapshot_bytes")
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "snapshot of %.0f MB at %s: all nodes done after %.1f s; %.0f captures of %.3f ms on average\n",
			size/1e6, n.ID, took.Seconds(), count, 1000*sum/max(count, 1))
	}
	return nil
}

// snapshotNow has all nodes write a snapshot and waits until they have. A large one
// takes longer than the call for it may.
func snapshotNow(ctx context.Context, c *procs.Cluster) error {
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
	_, refused := post(ctx, leader, "/api/snapshots", "{}")
	for i, n := range c.Nodes {
		for giveUp := time.Now().Add(snapshotWait); ; {
			count, err := n.Metric(ctx, written)
			if err != nil {
				return err
			}
			if count > before[i] {
				break
			}
			if time.Now().After(giveUp) {
				return errors.Join(fmt.Errorf("%s has written no snapshot after %v", n.ID, snapshotWait), refused)
			}
			select {
			case <-time.After(snapshotLook):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// restart kills all nodes at once and starts them again.
func (s *scaling) restart(ctx context.Context) error {
	for _, n := range s.nodes.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	for _, n := range s.nodes.Nodes {
		if err := n.WaitExit(ctx); err != nil {
			return err
		}
	}
	begun := time.Now()
	for _, n := range s.nodes.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	ready := make(chan error, len(s.nodes.Nodes))
	for _, n := range s.nodes.Nodes {
		go func() {
			err := n.WaitReady(ctx)
			took := time.Since(begun)
			cpu, cpuErr := n.Metric(ctx, "process_cpu_seconds_total")
			fmt.Fprintf(s.out, "restarted: %s is ready %.1f s after all were started, for %.1f s of CPU\n", n.ID, took.Seconds(), cpu)
			ready <- errors.Join(err, cpuErr)
		}()
	}
	var err error
	for range s.nodes.Nodes {
		err = errors.Join(err, <-ready)
	}
	return err
}

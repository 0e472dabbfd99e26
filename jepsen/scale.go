package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// scaleConfig says what to measure of nodes that hold many tasks.
type scaleConfig struct {
	binary  string
	tasks   int
	nodes   int
	pairs   int
	window  time.Duration // how long load is counted without a snapshot beside it
	conns   int           // of load and reads
	reading time.Duration // how long reads are counted
	out     io.Writer
}

// runScale fills real nodes with tasks and measures what depends on how many there
// are: memory, snapshots and what these cost the requests beside them, reads, and
// how long nodes that were killed take to be back.
func runScale(ctx context.Context, c *call) error {
	cfg := scaleConfig{out: c.out}
	c.onNodes()
	c.IntVar(&cfg.tasks, "tasks", 1_000_000, "tasks that wait, at least 1,000")
	c.IntVar(&cfg.nodes, "nodes", 3, "nodes: 1 or 3")
	c.IntVar(&cfg.pairs, "pairs", 6, "pairs of windows in which load is counted, one beside the snapshots of all nodes and one without")
	c.DurationVar(&cfg.window, "window", 5*time.Second, "how long a window without snapshots is; one with them is as long as they take")
	c.IntVar(&cfg.conns, "conns", 64, "connections of load and reads")
	c.DurationVar(&cfg.reading, "reading", 5*time.Second, "how long reads are counted")
	if err := c.parse(func() bool {
		return cfg.tasks >= 1000 && (cfg.nodes == 1 || cfg.nodes == 3) && cfg.pairs >= 0 && cfg.window > 0 && cfg.conns > 0
	}); err != nil {
		return err
	}
	return c.with(ctx, cfg.nodes, func(nodes *procs.Cluster) error {
		cfg.binary = c.binary // of the load, too
		return measureScale(ctx, cfg, nodes)
	}, "--log-level", "warn", "--snapshot-log-bytes", scaleLogBytes)
}

// measureScale measures and prints, one thing after the other.
func measureScale(ctx context.Context, cfg scaleConfig, c *procs.Cluster) error {
	if err := fillNodes(ctx, cfg, c); err != nil {
		return err
	}
	if err := showMemory(ctx, cfg, c, "filled"); err != nil {
		return err
	}
	if err := takeSnapshots(ctx, cfg, c); err != nil {
		return err
	}
	if cfg.pairs > 0 {
		if err := loadInWindows(ctx, cfg, c); err != nil {
			return err
		}
	}
	if cfg.reading > 0 {
		if err := countReads(ctx, cfg, c); err != nil {
			return err
		}
	}
	if cfg.pairs > 0 { // there is log behind the first
		if err := takeSnapshots(ctx, cfg, c); err != nil {
			return err
		}
	}
	if err := restartNodes(ctx, cfg, c); err != nil {
		return err
	}
	return showMemory(ctx, cfg, c, "restarted")
}

// fillNodes submits the tasks that wait.
func fillNodes(ctx context.Context, cfg scaleConfig, c *procs.Cluster) error {
	begun := time.Now()
	// It ends when the last is submitted: so there is hardly a warm-up.
	cmd := exec.CommandContext(ctx, cfg.binary, "bench", "--mode", "submit", "--tasks", strconv.Itoa(cfg.tasks), "--batch", "1000", "--conns", "2", "--warm-up", "1ms")
	for _, url := range c.URLs() {
		cmd.Args = append(cmd.Args, "--endpoint", url)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("submit the tasks: %w", err)
	}
	took := time.Since(begun)
	fmt.Fprintf(cfg.out, "%d tasks of 256 bytes, submitted by 1,000 on %d nodes in %.1f s: %.0f a second\n",
		cfg.tasks, cfg.nodes, took.Seconds(), float64(cfg.tasks)/took.Seconds())
	return nil
}

// showMemory prints what each node's process takes.
func showMemory(ctx context.Context, cfg scaleConfig, c *procs.Cluster, when string) error {
	for _, n := range c.Nodes {
		rss, err := n.Metric(ctx, "process_resident_memory_bytes")
		if err != nil {
			return err
		}
		state, err := n.Metric(ctx, "claimq_state_bytes")
		if err != nil {
			return err
		}
		fmt.Fprintf(cfg.out, "%s: %s has %.0f MB resident; its state takes %.0f MB by the estimate, %.0f bytes a task\n",
			when, n.ID, rss/1e6, state/1e6, state/float64(cfg.tasks))
	}
	return nil
}

// takeSnapshots has all nodes write a snapshot, and prints how long that took and
// how long the state was held still for it.
func takeSnapshots(ctx context.Context, cfg scaleConfig, c *procs.Cluster) error {
	begun := time.Now()
	if err := snapshotNow(ctx, c); err != nil {
		return err
	}
	took := time.Since(begun)
	for _, n := range c.Nodes {
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
		fmt.Fprintf(cfg.out, "snapshot of %.0f MB at %s: all nodes done after %.1f s; %.0f captures of %.3f ms on average\n",
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

// restartNodes kills all nodes at once and starts them again.
func restartNodes(ctx context.Context, cfg scaleConfig, c *procs.Cluster) error {
	for _, n := range c.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if err := n.WaitExit(ctx); err != nil {
			return err
		}
	}
	begun := time.Now()
	for _, n := range c.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	ready := make(chan error, len(c.Nodes))
	for _, n := range c.Nodes {
		go func() {
			err := n.WaitReady(ctx)
			took := time.Since(begun)
			cpu, cpuErr := n.Metric(ctx, "process_cpu_seconds_total")
			fmt.Fprintf(cfg.out, "restarted: %s is ready %.1f s after all were started, for %.1f s of CPU\n", n.ID, took.Seconds(), cpu)
			ready <- errors.Join(err, cpuErr)
		}()
	}
	var err error
	for range c.Nodes {
		err = errors.Join(err, <-ready)
	}
	return err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// snapshotWait bounds how long the nodes may take for a snapshot.
const snapshotWait = 10 * time.Minute

// scaleConfig says what to measure of nodes that hold many tasks.
type scaleConfig struct {
	binary  string
	tasks   int
	nodes   int
	pairs   int
	load    int           // tasks of each run of load
	conns   int           // of load and reads
	reading time.Duration // how long reads are counted
	out     io.Writer
}

// runScale fills real nodes with tasks and measures what depends on how many there
// are: memory, snapshots and what these cost the requests beside them, reads, and
// how long nodes that were killed take to be back.
func runScale(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	cfg := scaleConfig{out: out}
	flags.StringVar(&cfg.binary, "binary", "", "the claimq binary; built if not given")
	flags.IntVar(&cfg.tasks, "tasks", 1_000_000, "tasks that wait")
	flags.IntVar(&cfg.nodes, "nodes", 3, "nodes: 1 or 3")
	flags.IntVar(&cfg.pairs, "pairs", 3, "pairs of runs of load, one beside a snapshot and one without")
	flags.IntVar(&cfg.load, "load", 30_000, "tasks of a run of load, each submitted, claimed and completed")
	flags.IntVar(&cfg.conns, "conns", 64, "connections of load and reads")
	flags.DurationVar(&cfg.reading, "reading", 5*time.Second, "how long reads are counted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.tasks < 1000 || cfg.nodes != 1 && cfg.nodes != 3 || cfg.pairs < 0 || cfg.load < 1 || cfg.conns < 1 {
		return fmt.Errorf("--tasks is %d, --nodes %d, --pairs %d, --load %d, --conns %d\n%s", cfg.tasks, cfg.nodes, cfg.pairs, cfg.load, cfg.conns, usage)
	}
	w, err := openWorkspace(ctx, "scale", cfg.binary)
	if err != nil {
		return err
	}
	cfg.binary = w.binary
	cluster, err := procs.Start(ctx, procs.Config{Binary: w.binary, Dir: w.dir, Nodes: cfg.nodes, Flags: []string{"--log-level", "warn"}})
	if err != nil {
		return fmt.Errorf("start the nodes: %w", err)
	}
	err = measureScale(ctx, cfg, cluster)
	cluster.Close()
	if err != nil {
		return fmt.Errorf("%w\nlogs of the nodes: %s", err, w.dir)
	}
	return w.remove()
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
	for range cfg.pairs {
		for _, beside := range []bool{false, true} {
			if err := loadBesideSnapshot(ctx, cfg, c, beside); err != nil {
				return err
			}
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

// loadReport is what of the report of claimq bench is shown.
type loadReport struct {
	Tasks     int     `json:"tasks"`
	TasksPerS float64 `json:"tasks_per_s"`
	Calls     []struct {
		Call string  `json:"call"`
		P99  float64 `json:"p99_ms"`
		Max  float64 `json:"max_ms"`
	} `json:"calls"`
}

// runLoad runs claimq bench against the nodes.
func runLoad(ctx context.Context, cfg scaleConfig, c *procs.Cluster, args ...string) (loadReport, error) {
	var report loadReport
	cmd := exec.CommandContext(ctx, cfg.binary, append([]string{"bench", "--output", "json"}, args...)...)
	for _, url := range c.URLs() {
		cmd.Args = append(cmd.Args, "--endpoint", url)
	}
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return report, fmt.Errorf("run the load: %w", err)
	}
	if err := json.Unmarshal(b, &report); err != nil {
		return report, fmt.Errorf("read the load's report: %w", err)
	}
	return report, nil
}

// fillNodes submits the tasks that wait.
func fillNodes(ctx context.Context, cfg scaleConfig, c *procs.Cluster) error {
	begun := time.Now()
	// It ends when the last is submitted: so there is hardly a warm-up.
	_, err := runLoad(ctx, cfg, c, "--mode", "submit", "--tasks", strconv.Itoa(cfg.tasks), "--batch", "1000", "--conns", "2", "--warm-up", "1ms")
	took := time.Since(begun)
	fmt.Fprintf(cfg.out, "%d tasks of 256 bytes, submitted by 1,000 on %d nodes in %.1f s: %.0f a second\n",
		cfg.tasks, cfg.nodes, took.Seconds(), float64(cfg.tasks)/took.Seconds())
	return err
}

// showMemory prints what each node's process takes.
func showMemory(ctx context.Context, cfg scaleConfig, c *procs.Cluster, when string) error {
	for _, n := range c.Nodes {
		rss, err := metric(ctx, n, "process_resident_memory_bytes")
		if err != nil {
			return err
		}
		state, err := metric(ctx, n, "claimq_state_bytes")
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
		count, err := metric(ctx, n, "claimq_raft_snapshot_capture_seconds_count")
		if err != nil {
			return err
		}
		sum, err := metric(ctx, n, "claimq_raft_snapshot_capture_seconds_sum")
		if err != nil {
			return err
		}
		size, err := metric(ctx, n, "claimq_raft_snapshot_bytes")
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
		if before[i], err = metric(ctx, n, written); err != nil {
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
			count, err := metric(ctx, n, written)
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
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// loadBesideSnapshot runs load and prints its latencies. Meanwhile all nodes write a
// snapshot, if that is asked for.
func loadBesideSnapshot(ctx context.Context, cfg scaleConfig, c *procs.Cluster, beside bool) error {
	taken := make(chan error, 1)
	go func() {
		if beside {
			taken <- snapshotNow(ctx, c)
		} else {
			taken <- nil
		}
	}()
	report, err := runLoad(ctx, cfg, c, "--conns", strconv.Itoa(cfg.conns), "--tasks", strconv.Itoa(cfg.load), "--warm-up", "1ms")
	if err = errors.Join(err, <-taken); err != nil {
		return err
	}
	how := "alone"
	if beside {
		how = "beside a snapshot"
	}
	fmt.Fprintf(cfg.out, "%d connections %s: %.0f tasks/s", cfg.conns, how, report.TasksPerS)
	for _, call := range report.Calls {
		fmt.Fprintf(cfg.out, "; %s p99 %.1f ms, max %.1f ms", call.Call, call.P99, call.Max)
	}
	fmt.Fprintln(cfg.out)
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
			cpu, cpuErr := metric(ctx, n, "process_cpu_seconds_total")
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

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// trailConfig says what to measure of followers of the trail.
type trailConfig struct {
	binary    string
	followers int
	at        string // the nodes that they follow at: leader, followers or all
	plain     bool   // they do not accept gzip
	pairs     int
	tasks     int // of one measurement
	conns     int // of the load
}

// runTrail measures on three real nodes what followers of the trail cost the
// load beside them: pairs of measurements, one with them and one without, in
// turn the one and the other first.
func runTrail(ctx context.Context, c *call) error {
	cfg := trailConfig{}
	c.onNodes()
	c.IntVar(&cfg.followers, "followers", 100, "followers of the whole trail")
	c.StringVar(&cfg.at, "at", "leader", "the nodes that they follow at: leader, followers or all")
	c.BoolVar(&cfg.plain, "plain", false, "they do not accept gzip, as the first of them never does")
	c.IntVar(&cfg.pairs, "pairs", 5, "pairs of measurements")
	c.IntVar(&cfg.tasks, "tasks", 50_000, "tasks of a measurement, each submitted, claimed and completed")
	c.IntVar(&cfg.conns, "conns", 64, "connections of the load")
	if err := c.parse(func() bool { return slices.Contains([]string{"leader", "followers", "all"}, cfg.at) && cfg.pairs > 0 }); err != nil {
		return err
	}
	return c.with(ctx, 3, func(nodes *procs.Cluster) error {
		cfg.binary = c.binary // of the load, too
		return measurePairs(ctx, cfg, nodes, c.out)
	}, "--log-level", "warn")
}

// measurePairs measures and prints.
func measurePairs(ctx context.Context, cfg trailConfig, c *procs.Cluster, out io.Writer) error {
	if _, err := measureTrail(ctx, cfg, c, 0); err != nil { // the first one is slower
		return err
	}
	var ratios []float64
	for pair := range cfg.pairs {
		var runs [2]trailRun // without and with
		for i := range 2 {
			with := (pair + i) % 2
			run, err := measureTrail(ctx, cfg, c, with*cfg.followers)
			if err != nil {
				return err
			}
			runs[with] = run
		}
		alone, beside := runs[0], runs[1]
		ratios = append(ratios, beside.rate/alone.rate)
		fmt.Fprintf(out, "%6.0f tasks/s alone, %6.0f beside %d followers, ratio %.3f; each got %d events, all %.1f MB; servers: %.1f and %.1f µs of CPU a task\n",
			alone.rate, beside.rate, cfg.followers, beside.rate/alone.rate, beside.events, float64(beside.bytes)/1e6, alone.cpu, beside.cpu)
	}
	slices.Sort(ratios)
	fmt.Fprintf(out, "%d followers at %s: median ratio %.3f of %d pairs, from %.3f to %.3f\n",
		cfg.followers, cfg.at, ratios[len(ratios)/2], len(ratios), ratios[0], ratios[len(ratios)-1])
	return nil
}

// trailRun is one measurement.
type trailRun struct {
	rate   float64 // tasks/s
	cpu    float64 // of all servers, µs a task
	events int64   // that a follower got
	bytes  int64   // that all of them got
}

// measureTrail measures the load beside followers.
func measureTrail(ctx context.Context, cfg trailConfig, c *procs.Cluster, followers int) (trailRun, error) {
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		return trailRun{}, err
	}
	nodes := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *procs.Node) bool {
		return cfg.at == "leader" && n != leader || cfg.at == "followers" && n == leader
	})
	var crowd trailCrowd
	defer crowd.close()
	for i := range followers {
		if err := crowd.join(nodes[i%len(nodes)], cfg.plain || i == 0); err != nil {
			return trailRun{}, err
		}
	}
	cmd := exec.CommandContext(ctx, cfg.binary, "bench", "--output", "json", "--tasks", strconv.Itoa(cfg.tasks), "--conns", strconv.Itoa(cfg.conns))
	for _, url := range c.URLs() {
		cmd.Args = append(cmd.Args, "--endpoint", url)
	}
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return trailRun{}, fmt.Errorf("run the load: %w", err)
	}
	var report struct {
		Tasks        int     `json:"tasks"`
		TasksPerS    float64 `json:"tasks_per_s"`
		ServerCPUSec float64 `json:"server_cpu_s"`
	}
	if err := json.Unmarshal(b, &report); err != nil {
		return trailRun{}, fmt.Errorf("read the load's report: %w", err)
	}
	run := trailRun{rate: report.TasksPerS, cpu: report.ServerCPUSec * 1e6 / float64(max(report.Tasks, 1))}
	if followers > 0 {
		// Each task of the load leaves three events, also in its warm-up.
		if err := crowd.level(ctx, int64(3*cfg.tasks)); err != nil {
			return run, err
		}
		run.events, run.bytes = crowd.events.Load(), crowd.bytes.Load()
	}
	return run, nil
}

// trailCrowd is followers that read what comes and drop it. The first one counts
// events.
type trailCrowd struct {
	conns   []net.Conn
	events  atomic.Int64
	bytes   atomic.Int64 // of all
	reading sync.WaitGroup
}

// join follows the whole trail at the node from now on.
func (w *trailCrowd) join(n *procs.Node, plain bool) error {
	conn, err := net.Dial("tcp", n.HTTPAddr)
	if err != nil {
		return err
	}
	counts := len(w.conns) == 0
	w.conns = append(w.conns, conn)
	request := "GET /api/events HTTP/1.1\r\nHost: " + n.HTTPAddr + "\r\nAccept: text/event-stream\r\n"
	if !plain {
		request += "Accept-Encoding: gzip\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	first := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 200" {
		return fmt.Errorf("%s answers a follower of the trail %q, %w", n.ID, first, err)
	}
	w.reading.Go(func() {
		buf, eventEnd := make([]byte, 64<<10), []byte("}\n")
		for {
			n, err := conn.Read(buf)
			w.bytes.Add(int64(n))
			if counts {
				w.events.Add(int64(bytes.Count(buf[:n], eventEnd)))
			}
			if err != nil {
				return
			}
		}
	})
	return nil
}

// level waits until the first follower has the events of the load, but for some
// whose end was cut between two reads and was not counted.
func (w *trailCrowd) level(ctx context.Context, least int64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for w.events.Load() < least-least/100 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("a follower got %d of %d events: %w", w.events.Load(), least, ctx.Err())
		}
	}
	return nil
}

func (w *trailCrowd) close() {
	for _, conn := range w.conns {
		_ = conn.Close() // whatever it says, it is closed
	}
	w.reading.Wait()
}

// Command pairs compares two builds of claimq:
//
//	go run ./bench/pairs --rounds 24 OLD NEW
//
// It starts a cluster of three nodes for each build, in a new folder in --dir. It measures them in turn while the
// other one is idle, so that both see the same state of the machine. A measurement first reads a task linearizably
// for 1.5 s over 64 connections. Then NEW's `claimq bench` does --tasks tasks over 64 connections: submit, claim and
// complete. The order changes with each round, and the first round is not counted. The command prints the medians,
// and the median and the quartiles of the ratio NEW/OLD per round. With each rate it prints the CPU time of the three
// nodes per request or task in µs, which varies less with the state of the machine.
//
// The place of the code in a build alone changes either figure by up to 5 %. Before you trust a difference of that
// size, build both with -ldflags=-randlayout=N for several N, and measure each pair.
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
	"path/filepath"
	"strconv"
	"time"

	"github.com/claimq/claimq/bench/figures"
	"github.com/claimq/claimq/internal/procs"
)

const (
	conns    = 64
	readTime = 1500 * time.Millisecond
	warmUp   = 300 * time.Millisecond
)

func main() {
	rounds := flag.Int("rounds", 24, "how many pairs of each kind")
	tasks := flag.Int("tasks", 6000, "tasks of a measurement")
	dir := flag.String("dir", ".", "folder whose file system the nodes write to")
	flag.Parse()
	if flag.NArg() != 2 || *rounds < 1 || *tasks < 1 {
		fmt.Fprintln(os.Stderr, "usage: pairs [--rounds N] [--tasks N] [--dir DIR] OLD NEW, two claimq binaries")
		os.Exit(2)
	}
	p := pairs{old: flag.Arg(0), changed: flag.Arg(1), rounds: *rounds, tasks: *tasks, dir: *dir, readTime: readTime, warmUp: warmUp}
	if err := p.run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
		os.Exit(1)
	}
}

// pairs holds the settings of a run.
type pairs struct {
	old, changed  string // binaries
	rounds, tasks int
	dir           string
	readTime      time.Duration
	warmUp        time.Duration // for the tasks, before the counted ones
}

// pair holds the figures of one round, for the old build and for the new one.
type pair [2]figure

// figure is the result of one measurement.
type figure struct {
	rate float64 // per second
	cpu  float64 // µs of the nodes' CPU per request or task
}

// run measures and prints to out.
func (p *pairs) run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(p.dir, "pairs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var targets [2]target
	for i, binary := range []string{p.old, p.changed} {
		nodes := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(nodes, 0o700); err != nil {
			return err
		}
		if targets[i].cluster, err = procs.Start(ctx, procs.Config{Binary: binary, Dir: nodes, Nodes: 3}); err != nil {
			return fmt.Errorf("start %s: %w", binary, err)
		}
		defer targets[i].cluster.Close()
		if err := targets[i].prepare(ctx); err != nil {
			return fmt.Errorf("%s: %w", binary, err)
		}
	}
	var reads, tasks []pair
	for round := range p.rounds + 1 {
		r, err := inTurn(round, func(i int) (figure, error) { return targets[i].reads(p.readTime) })
		if err != nil {
			return fmt.Errorf("reads: %w", err)
		}
		t, err := inTurn(round, func(i int) (figure, error) { return p.tasksOf(ctx, &targets[i]) })
		if err != nil {
			return fmt.Errorf("tasks: %w", err)
		}
		if round > 0 {
			reads, tasks = append(reads, r), append(tasks, t)
		}
	}
	say(out, "reads", reads)
	say(out, "tasks", tasks)
	return nil
}

// inTurn measures both builds. The round decides which one comes first.
func inTurn(round int, measure func(i int) (figure, error)) (r pair, err error) {
	for i := range r {
		i = (i + round) % len(r)
		if r[i], err = measure(i); err != nil {
			return r, err
		}
	}
	return r, nil
}

// taskRate runs the new build's load on the cluster whose leader is at url.
func (p *pairs) taskRate(ctx context.Context, url string) (float64, error) {
	bench := exec.CommandContext(ctx, p.changed, "bench", "--endpoint", url, "--conns", strconv.Itoa(conns),
		"--tasks", strconv.Itoa(p.tasks), "--warm-up", p.warmUp.String(), "--output", "json")
	bench.Stderr = os.Stderr
	text, err := bench.Output()
	if err != nil {
		return 0, err
	}
	var result struct {
		TasksPerS float64 `json:"tasks_per_s"`
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return 0, fmt.Errorf("read what claimq bench printed: %w", err)
	}
	return result.TasksPerS, nil
}

// tasksOf measures the target's tasks. claimq bench does not count the tasks of the warm-up, so their number is
// estimated from the rate.
func (p *pairs) tasksOf(ctx context.Context, t *target) (figure, error) {
	return t.measure(func() (rate, count float64, err error) {
		rate, err = p.taskRate(ctx, t.url)
		return rate, float64(p.tasks) + rate*p.warmUp.Seconds(), err
	})
}

// say prints two lines for one kind of measurement.
func say(out io.Writer, what string, all []pair) {
	sayOne(out, what+"/s", all, func(f figure) float64 { return f.rate })
	sayOne(out, what+" µs", all, func(f figure) float64 { return f.cpu })
}

// sayOne prints the line for one field of a figure.
func sayOne(out io.Writer, what string, all []pair, field func(figure) float64) {
	var of [3][]float64
	for _, r := range all {
		before, after := field(r[0]), field(r[1])
		of[0], of[1], of[2] = append(of[0], before), append(of[1], after), append(of[2], after/before)
	}
	fmt.Fprintf(out, "%s  %8.0f before, %8.0f after; ratio %.3f in the median of %d pairs, quartiles %.3f and %.3f\n",
		what, figures.Median(of[0]), figures.Median(of[1]), figures.Median(of[2]), len(all), figures.Quantile(of[2], 0.25), figures.Quantile(of[2], 0.75))
}

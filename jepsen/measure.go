package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/claimq/claimq/bench/figures"
	"github.com/claimq/claimq/cmd/claimq/bench"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

// measuring configures the load of `claimq bench` on some nodes, which is measured alone
// and together with something else.
type measuring struct {
	binary string // claimq
	nodes  *procs.Cluster
	out    io.Writer
	pairs  int           // of measurements
	tasks  int           // in a measurement, each submitted, claimed and completed
	conns  int           // of the load
	warmUp time.Duration // of each measurement
}

// flags defines the flags of a measurement.
func (m *measuring) flags(c *call, pairs int) {
	c.IntVar(&m.pairs, "pairs", pairs, "pairs of measurements of load, one beside that and one without")
	c.IntVar(&m.tasks, "load", 50_000, "tasks of a measurement, each submitted, claimed and completed")
	c.IntVar(&m.conns, "conns", 64, "connections of the load")
	c.DurationVar(&m.warmUp, "warm-up", time.Second, "how long the load goes on before it counts")
}

// reported holds the results of the load.
type reported struct {
	Tasks     int     `json:"tasks"`
	Rate      float64 `json:"tasks_per_s"`
	ServerCPU float64 `json:"server_cpu_s"`
	Calls     []struct {
		Call  string  `json:"call"`
		Count int     `json:"count"`
		P50   float64 `json:"p50_ms"`
		P99   float64 `json:"p99_ms"`
		Max   float64 `json:"max_ms"`
	} `json:"calls"`
}

// String formats them in lines.
func (f *reported) String() string {
	s := fmt.Sprintf("%.0f tasks/s, %.1f µs of the servers' CPU a task\n", f.Rate, f.ServerCPU*1e6/float64(max(f.Tasks, 1)))
	for _, c := range f.Calls {
		s += fmt.Sprintf("    %-10s %8d  p50 %.2f  p99 %.2f  max %.2f ms\n", c.Call, c.Count, c.P50, c.P99, c.Max)
	}
	return s
}

// begin starts something. end stops it and describes it in words.
type begin func(context.Context) (end func() (string, error), err error)

// compare measures pairs of loads of a kind, one alone and one with the work that begin starts, in
// alternating order, and prints the results.
func (m *measuring) compare(ctx context.Context, what string, kind bench.Mode, begin begin) error {
	if _, err := m.load(ctx, kind); err != nil { // the first one is slower
		return err
	}
	var ratios []float64
	for pair := range m.pairs {
		var rates [2]float64 // without and with
		for i := range rates {
			with, said, end := (pair+i)%2, "alone", func() (string, error) { return "", nil }
			if with == 1 {
				var err error
				if end, err = begin(ctx); err != nil {
					return err
				}
				said = "beside " + what
			}
			found, err := m.load(ctx, kind)
			more, errEnd := end()
			if err := errors.Join(err, errEnd); err != nil {
				return err
			}
			rates[with] = found.Rate
			fmt.Fprintf(m.out, "%s%s: %s", said, more, found)
		}
		ratios = append(ratios, rates[1]/rates[0])
	}
	fmt.Fprintf(m.out, "beside %s: median ratio %.3f of %d pairs, from %.3f to %.3f\n", what, figures.Median(ratios), len(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

const (
	// countedWait bounds the wait for a count, and countedPoll is the interval between
	// checks.
	countedWait = 50 * time.Second
	countedPoll = time.Millisecond
)

// counted waits until count returns want.
func counted(ctx context.Context, what string, want int, count func(context.Context) (float64, error)) error {
	return pause.Within(ctx, countedWait, func(ctx context.Context) error {
		return pause.Until(ctx, countedPoll, func() error {
			n, err := count(ctx)
			if err == nil && int(n) != want {
				err = fmt.Errorf("%.0f %s, not %d", n, what, want)
			}
			return err
		})
	})
}

// load is one measurement of a kind of load.
func (m *measuring) load(ctx context.Context, kind bench.Mode) (*reported, error) {
	printed, err := m.bench(ctx, "--output", "json", "--mode", string(kind), "--tasks", strconv.Itoa(m.tasks), "--conns", strconv.Itoa(m.conns), "--warm-up", m.warmUp.String())
	if err != nil {
		return nil, err
	}
	var found reported
	if err := json.Unmarshal([]byte(printed), &found); err != nil {
		return nil, fmt.Errorf("read the load's report: %w", err)
	}
	return &found, nil
}

// bench runs `claimq bench` against the nodes and returns its output.
func (m *measuring) bench(ctx context.Context, args ...string) (string, error) {
	return procs.Command(ctx, m.binary, m.nodes.Nodes, append([]string{"bench"}, args...)...)
}

// Command goclient compares the Go client with the bare connections of claimq bench:
//
//	make bench-client
//
// In each round `claimq bench` does the same work with --client and without, each time on three new nodes, one after
// the other. The order changes with each round. It prints a Markdown table with the medians, the median of each
// round's ratio, and the command, to which --client is added or not.
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
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/claimq/claimq/bench/figures"
)

func main() {
	binary := flag.String("binary", "bin/claimq", "claimq")
	rounds := flag.Int("rounds", 3, "how many pairs of each kind")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		fmt.Fprintln(os.Stderr, "usage: goclient [--binary BINARY] [--rounds N], N above 0")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *rounds, works(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "goclient:", err)
		os.Exit(1)
	}
}

// work is a row of the table.
type work struct {
	what   string
	args   string // for claimq bench
	figure func(r report) float64
	digits int // digits of its fraction
}

// report is the output of claimq bench with --output json.
type report struct {
	TasksPerSecond float64 `json:"tasks_per_s"`
	Tasks          float64 `json:"tasks"`
	LoadCPU        float64 `json:"load_cpu_s"`
	Calls          []struct {
		Call string  `json:"call"`
		P50  float64 `json:"p50_ms"`
	} `json:"calls"`
}

// works returns all rows.
func works() []work {
	rate := func(r report) float64 { return r.TasksPerSecond }
	cpu := func(r report) float64 { return r.LoadCPU / r.Tasks * 1e6 }
	return []work{
		{what: "submit and Worker, 64 goroutines and slots: tasks/s", args: "--conns 64 --tasks 60000", figure: rate},
		{what: "256", args: "--conns 256 --tasks 100000", figure: rate},
		{what: "1,000", args: "--conns 1000 --tasks 100000", figure: rate},
		{what: "the Worker alone on a backlog, 256: tasks/s", args: "--mode drain --conns 256 --tasks 150000", figure: rate},
		{what: "submit alone, 256: tasks/s", args: "--mode submit --conns 256 --tasks 150000", figure: rate},
		{what: "one lone submit: p50, ms", args: "--mode submit --conns 1 --tasks 10000", figure: submitP50, digits: 2},
		{what: "the load's processor time of a task, 256: µs", args: "--conns 256 --tasks 100000", figure: cpu},
	}
}

// submitP50 returns the median time of a submit, in ms.
func submitP50(r report) float64 {
	for _, c := range r.Calls {
		if c.Call == "submit" {
			return c.P50
		}
	}
	return 0
}

// run measures, prints the table to out, and reports how far it is to progress. Rows with the same arguments are
// measured once.
func run(ctx context.Context, binary string, rounds int, rows []work, out, progress io.Writer) error {
	sides := []string{" --client", ""}
	reports := make([]map[string]report, rounds)
	for round := range reports {
		reports[round] = map[string]report{}
		for _, w := range rows {
			for k := range sides {
				args := w.args + sides[(k+round)%len(sides)]
				if _, done := reports[round][args]; done {
					continue
				}
				r, err := bench(ctx, binary, args)
				if err != nil {
					return err
				}
				fmt.Fprintf(progress, "round %d of %d: claimq bench --nodes 3 %s: %.0f tasks/s\n", round+1, rounds, args, r.TasksPerSecond)
				reports[round][args] = r
			}
		}
	}
	var b strings.Builder
	b.WriteString("| what | Go client | bare connections | ratio | command, with `--client` and without |\n| --- | --- | --- | --- | --- |\n")
	for _, w := range rows {
		var with, without, ratios []float64
		for _, of := range reports {
			a, b := w.figure(of[w.args+sides[0]]), w.figure(of[w.args+sides[1]])
			with, without, ratios = append(with, a), append(without, b), append(ratios, a/b)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f | `claimq bench --nodes 3 %s` |\n", w.what, w.write(with), w.write(without), figures.Median(ratios), w.args)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// write formats the median.
func (w work) write(all []float64) string {
	if w.digits > 0 {
		return strconv.FormatFloat(figures.Median(all), 'f', w.digits, 64)
	}
	return figures.Thousands(figures.Median(all))
}

// bench runs claimq bench with the arguments on its own three nodes.
func bench(ctx context.Context, binary, args string) (r report, err error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{"bench", "--nodes", "3", "--output", "json"}, strings.Fields(args)...)...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it then stops its nodes
	text, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("claimq bench %s: %w", args, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read what claimq bench %s printed: %w", args, err)
	}
	if r.TasksPerSecond <= 0 || r.Tasks <= 0 {
		return r, errors.New("claimq bench " + args + " measured nothing")
	}
	return r, nil
}

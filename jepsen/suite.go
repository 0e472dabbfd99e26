package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/judge"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/runner"
)

// mix is a cluster and the faults that come to it.
type mix struct {
	nodes  int
	faults string // "" = pairs that the seed draws
}

// pairsOfRun is how many pairs a run draws.
const pairsOfRun = 12

// names returns the faults of a run with the seed.
func (m mix) names(seed int64) []string {
	if m.faults != "" {
		return faultNames(m.faults)
	}
	var names []string
	for _, f := range faults.Pairs(pairsOfRun, rand.New(rand.NewSource(seed))) {
		names = append(names, f.Name())
	}
	return names
}

// mixes are what a suite goes through, again and again.
func mixes() []mix {
	return []mix{
		{3, "kill*,pause*,rolling*"},
		{3, "partition*"},
		{3, "power*"},
		{3, "net*"},
		{3, "disk*,kill-one"},
		{3, "clock*,kill-leader"},
		{3, "member*,kill-one"},
		{3, "cpu*,snapshot*,partition-flap*"},
		{3, ""},
		{5, "kill*,partition*,pause*"},
		{3, "power*,partition*,kill*"},
		{5, "power*,partition*"},
		{5, "member*,disk*,clock*"},
		{5, ""},
		{3, "*"},
		{5, "*"},
	}
}

// runSuite makes runs, one after the other, each with a seed of its own.
func runSuite(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	runs := flags.Int("runs", 30, "how many runs")
	length := flags.Duration("time", 60*time.Second, "how long the load of each lasts")
	seed := flags.Int64("seed", 1, "of the first run; each has the next one")
	binary := flags.String("binary", "", "the claimq binary; built if not given")
	dir := flags.String("out", "", "folder for what the runs leave; a new one if not given")
	keep := flags.Bool("keep", false, "keep the nodes' data of runs that pass, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		var err error
		if *dir, err = os.MkdirTemp("", "claimq-suite-"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	if *binary == "" {
		var err error
		if *binary, err = procs.Build(ctx, *dir, faults.BuildTag); err != nil {
			return err
		}
	}
	id := revision(ctx)
	all := mixes()
	failed := 0
	for i := range *runs {
		m := all[i%len(all)]
		cfg := runner.Config{
			Binary: *binary, Nodes: m.nodes, Time: *length, Faults: m.names(*seed + int64(i)), Seed: *seed + int64(i), Revision: id, Out: out,
		}
		folder := filepath.Join(*dir, fmt.Sprintf("seed-%d", cfg.Seed))
		verdict, err := oneRun(ctx, cfg, folder)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		said := said(verdict, err)
		if err != nil || !verdict.OK() {
			failed++
		} else if !*keep {
			if err := os.RemoveAll(filepath.Join(folder, nodesName)); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "RUN %d/%d | seed %d | %d nodes | %s | %s\n\n", i+1, *runs, cfg.Seed, m.nodes, strings.Join(cfg.Faults, ","), said)
	}
	fmt.Fprintf(out, "%d runs, %d failed; in %s\n", *runs, failed, *dir)
	if failed > 0 {
		return errFails
	}
	return nil
}

// said is the outcome of a run, in a line.
func said(v judge.Verdict, err error) string {
	switch {
	case err != nil:
		return "could not be made: " + err.Error()
	case v.OK():
		return "passes: " + v.Parts[0].Summary
	}
	var parts []string
	for _, p := range v.Parts {
		if !p.OK() {
			parts = append(parts, fmt.Sprintf("%s (%d)", p.Name, p.ViolationCount))
		}
	}
	return "FAILS: " + strings.Join(parts, ", ")
}

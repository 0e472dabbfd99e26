package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/neighbours"
	"github.com/claimq/claimq/jepsen/report"
	"github.com/claimq/claimq/jepsen/runner"
)

// Names in the folder of a run.
const (
	historyName = "history.json"
	reportName  = "report.html"
	verdictName = "verdict.txt"
	nodesName   = "nodes" // folder of the nodes' data and logs
)

// running returns the command that makes one run. cfg, the faults and the number of killed
// leaders are the defaults of its flags.
func running(cfg runner.Config, names string, kills int) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		cfg := cfg
		c.onNodes(&c.plant)
		c.leaving()
		c.IntVar(&cfg.Nodes, "nodes", 3, "nodes of the cluster")
		c.DurationVar(&cfg.Time, "time", cfg.Time, "how long the load under faults lasts, with --tasks at most")
		c.IntVar(&cfg.Tasks, "tasks", cfg.Tasks, "the load ends once so many were submitted; 0 = with --time")
		c.IntVar(&cfg.Parents, "parents", cfg.Parents, "how many of a hundred tasks are parents; 0 = 10")
		c.IntVar(&cfg.Steps, "steps", cfg.Steps, "steps of each parent; 0 = 2 to 5")
		c.IntVar(&cfg.Rate, "rate", cfg.Rate, "calls per second in all, about; 0 = 500")
		c.IntVar(&cfg.Clients, "clients", cfg.Clients, "callers; 0 = 24")
		c.IntVar(&cfg.Readers, "readers", neighbours.Readers, "connections of heavy reads beside the callers")
		c.StringVar(&names, "faults", names, "names of faults, separated by commas; a * at the end stands for all that begin so; none = no faults; list = say which there are")
		c.IntVar(&kills, "kills", kills, "with --tasks: how many times the leader is killed, and all nodes in the middle, in place of --faults")
		if err := c.parse(func() bool { return kills == 0 || cfg.Tasks > 0 }); err != nil {
			return err
		}
		if names == "list" {
			fmt.Fprintln(c.out, strings.Join(faults.Names(), "\n"))
			return nil
		}
		if err := c.open(ctx); err != nil {
			return err
		}
		cfg.Faults = faultNames(names)
		if kills > 0 {
			cfg.Faults = slices.Insert(slices.Repeat([]string{"kill-leader"}, kills), (kills+1)/2, "kill-all")
		}
		cfg.Binary, cfg.Seed, cfg.Plant, cfg.Out = c.binary, c.seed, c.plant, c.out
		verdict, err := oneRun(ctx, cfg, c.dir)
		if err == nil && !verdict.OK() {
			err = errFails
		}
		return c.end(nil, err)
	}
}

// faultNames splits the list in a flag.
func faultNames(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && name != "none" {
			names = append(names, name)
		}
	}
	return names
}

// revision returns the commit of the source, "" if unknown.
func revision(ctx context.Context) string {
	id, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// oneRun makes a run, judges it, and writes history, report and verdict to dir.
func oneRun(ctx context.Context, cfg runner.Config, dir string) (check.Verdict, error) {
	cfg.Dir, cfg.Revision = filepath.Join(dir, nodesName), revision(ctx)
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return check.Verdict{}, err
	}
	fmt.Fprintf(cfg.Out, "%d nodes, %v, faults %s, seed %d, in %s\n", cfg.Nodes, cfg.Time, strings.Join(cfg.Faults, ","), cfg.Seed, dir)
	h, err := runner.Run(ctx, cfg)
	if h == nil {
		return check.Verdict{}, err
	}
	if err != nil {
		h.Run.Failed = err.Error()
	}
	verdict := check.Judge(h)
	fmt.Fprint(cfg.Out, verdict)
	errs := []error{
		h.WriteFile(filepath.Join(dir, historyName)),
		os.WriteFile(filepath.Join(dir, verdictName), []byte(verdict.String()), 0o644),
		report.WriteFile(filepath.Join(dir, reportName), h, verdict),
	}
	fmt.Fprintf(cfg.Out, "see %s; check it again: go -C jepsen run . check %s\n", filepath.Join(dir, reportName), filepath.Join(dir, historyName))
	return verdict, errors.Join(errs...)
}

// mix is a cluster with its faults.
type mix struct {
	nodes  int
	faults string // "" = pairs drawn by the seed
}

// pairsOfRun is the number of pairs that a run draws.
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

// mixes returns the mixes that a suite goes through repeatedly.
func mixes() []mix {
	return []mix{
		{3, "kill*,pause*,rolling*,stop*"},
		{3, "partition*"},
		{3, "power*"},
		{3, "net*"},
		{3, "disk*,kill-one"},
		{3, "clock*,kill-leader"},
		{3, "member*,kill-one"},
		{3, "cpu*,snapshot*,partition-flap*"},
		{3, "log*,files*,kill-one"},
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

// runSuite makes runs one after the other, each with a different seed.
func runSuite(ctx context.Context, c *call) error {
	c.onNodes(&c.plant)
	c.leaving()
	runs := c.Int("runs", 30, "how many runs")
	length := c.Duration("time", time.Minute, "how long the load of each lasts")
	readers := c.Int("readers", neighbours.Readers, "connections of heavy reads beside the callers of each")
	keep := c.Bool("keep", false, "keep the nodes' data of runs that pass, too")
	if err := c.begin(ctx, nil); err != nil {
		return err
	}
	all, failed := mixes(), 0
	for i := range *runs {
		m, seed := all[i%len(all)], c.seed+int64(i)
		cfg := runner.Config{Binary: c.binary, Nodes: m.nodes, Time: *length, Faults: m.names(seed), Seed: seed, Readers: *readers, Out: c.out}
		folder := filepath.Join(c.dir, fmt.Sprintf("seed-%d", seed))
		verdict, err := oneRun(ctx, cfg, folder)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !verdict.OK() {
			failed++
		} else if !*keep {
			if err := os.RemoveAll(filepath.Join(folder, nodesName)); err != nil {
				return err
			}
		}
		fmt.Fprintf(c.out, "RUN %d/%d | seed %d | %d nodes | %s | %s\n\n", i+1, *runs, seed, m.nodes, strings.Join(cfg.Faults, ","), said(verdict, err))
	}
	fmt.Fprintf(c.out, "%d runs, %d failed; in %s\n", *runs, failed, c.dir)
	if failed > 0 {
		return errFails
	}
	return nil
}

// said describes the outcome of a run in a line.
func said(v check.Verdict, err error) string {
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

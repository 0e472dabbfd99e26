package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/judge"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/report"
	"github.com/claimq/claimq/jepsen/runner"
)

// What a run leaves in its folder.
const (
	historyName = "history.jsonl"
	reportName  = "report.html"
	verdictName = "verdict.txt"
	nodesName   = "nodes" // folder of the nodes' data and logs
)

// errFails is returned when a run does not pass.
var errFails = errors.New("the run fails")

// runRun is one run under faults.
func runRun(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	cfg := runner.Config{Out: out}
	flags.IntVar(&cfg.Nodes, "nodes", 3, "nodes of the cluster")
	flags.DurationVar(&cfg.Time, "time", 60*time.Second, "how long the load under faults lasts")
	flags.Int64Var(&cfg.Seed, "seed", time.Now().Unix(), "of all that is chosen at random")
	flags.IntVar(&cfg.Rate, "rate", 0, "calls per second in all, about; 0 = 500")
	flags.IntVar(&cfg.Clients, "clients", 0, "callers; 0 = 24")
	names := flags.String("faults", "kill*,pause*", "names of faults, separated by commas; a * at the end stands for all that begin so; none = no faults; list = say which there are")
	binary := flags.String("binary", "", "the claimq binary; built if not given")
	dir := flags.String("out", "", "folder for history, report, verdict and logs; a new one if not given")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *names == "list" {
		fmt.Fprintln(out, strings.Join(faults.Names(), "\n"))
		return nil
	}
	cfg.Faults = faultNames(*names)
	if *dir == "" {
		var err error
		if *dir, err = os.MkdirTemp("", "claimq-jepsen-"); err != nil {
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
	cfg.Binary, cfg.Revision = *binary, revision(ctx)
	verdict, err := oneRun(ctx, cfg, *dir)
	if err != nil {
		return err
	}
	if !verdict.OK() {
		return errFails
	}
	return nil
}

// faultNames splits the list of a flag.
func faultNames(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && name != "none" {
			names = append(names, name)
		}
	}
	return names
}

// revision names the commit that the source is at, "" if that is not known.
func revision(ctx context.Context) string {
	id, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// oneRun makes a run, judges it, and leaves history, report and verdict in dir.
func oneRun(ctx context.Context, cfg runner.Config, dir string) (judge.Verdict, error) {
	cfg.Dir = filepath.Join(dir, nodesName)
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return judge.Verdict{}, err
	}
	fmt.Fprintf(cfg.Out, "%d nodes, %v, faults %s, seed %d, in %s\n", cfg.Nodes, cfg.Time, strings.Join(cfg.Faults, ","), cfg.Seed, dir)
	h, err := runner.Run(ctx, cfg)
	if h == nil {
		return judge.Verdict{}, err
	}
	h.Run.Failed = text(err)
	verdict := judge.Judge(h)
	fmt.Fprint(cfg.Out, verdict)
	errs := []error{
		h.WriteFile(filepath.Join(dir, historyName)),
		os.WriteFile(filepath.Join(dir, verdictName), []byte(verdict.String()), 0o644),
		report.WriteFile(filepath.Join(dir, reportName), h, verdict),
	}
	fmt.Fprintf(cfg.Out, "see %s; check it again: go run ./jepsen check %s; try again: go run ./jepsen run --nodes %d --time %v --faults %s --seed %d\n",
		filepath.Join(dir, reportName), filepath.Join(dir, historyName), cfg.Nodes, cfg.Time, strings.Join(cfg.Faults, ","), cfg.Seed)
	return verdict, errors.Join(errs...)
}

// text is the error in words, "" of none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

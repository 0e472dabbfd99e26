package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/judge"
	"github.com/claimq/claimq/jepsen/sim"
)

const usage = `usage: go run ./jepsen run [--nodes 3|5] [--time 60s] [--faults LIST|list|none] [--seed S] [--binary PATH] [--out DIR]
       go run ./jepsen suite [--runs N] [--time 60s] [--seed S] [--binary PATH] [--out DIR]
       go run ./jepsen selftest [--only PLANT,...] [--tries N] [--time 40s] [--seed S] [--out DIR]
       go run ./jepsen rules [--only PLANT,...]
       go run ./jepsen waits [--waiting N] [--handoffs N] [--idle 20s] [--binary PATH]
       go run ./jepsen trail [--followers N] [--at leader|followers|all] [--pairs N] [--tasks N] [--conns N] [--binary PATH]
       go run ./jepsen scale [--tasks N] [--nodes 1|3] [--pairs N] [--window 5s] [--conns N] [--reading 5s] [--binary PATH]
       go run ./jepsen kill [--tasks N] [--kills K] [--workers W] [--seed S] [--binary PATH] [--out FILE] [--all]
       go run ./jepsen steps [--parents N] [--steps S] [--workers W] [--processors P] [--kills K] [--seed S] [--limit 45m] [--binary PATH | --plant NAME] [--all]
       go run ./jepsen finalizers [--parents N] [--finalizers F] [--output table|json] [--binary PATH]
       go run ./jepsen operations [--producers N] [--workers N] [--rate N] [--pause 5s] [--seed S] [--binary PATH]
       go run ./jepsen restore [--tasks N,...] [--runs N] [--seed S] [--binary PATH]
       go run ./jepsen workers [--workers N] [--rate N] [--time 2m] [--lease 1s] [--seed S] [--binary PATH] [--plant NAME]
       go run ./jepsen fuzz [--requests N] [--senders N] [--secure] [--seed S] [--binary PATH]
       go run ./jepsen upgrade [--from LEVEL,...] [--rate N] [--rest 3s] [--seed S] [--binary PATH]
       go run ./jepsen check [--drained=false] FILE
       go run ./jepsen sim [--seeds N] [--from S] [--steps K] [--only 1,4-7] [--trace]`

// errViolations is returned when a history does not pass.
var errViolations = errors.New("the history does not pass")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jepsen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	switch args[0] {
	case "run":
		return runRun(ctx, args[1:], out)
	case "suite":
		return runSuite(ctx, args[1:], out)
	case "selftest":
		return runSelftest(ctx, args[1:], out)
	case "rules":
		return runRules(ctx, args[1:], out)
	case "waits":
		return runWaits(ctx, args[1:], out)
	case "trail":
		return runTrail(ctx, args[1:], out)
	case "scale":
		return runScale(ctx, args[1:], out)
	case "kill":
		return runKill(ctx, args[1:], out)
	case "steps":
		return runSteps(ctx, args[1:], out)
	case "finalizers":
		return runFinalizers(ctx, args[1:], out)
	case "operations":
		return runOperations(ctx, args[1:], out)
	case "restore":
		return runRestore(ctx, args[1:], out)
	case "workers":
		return runWorkers(ctx, args[1:], out)
	case "fuzz":
		return runFuzz(ctx, args[1:], out)
	case "upgrade":
		return runUpgrade(ctx, args[1:], out)
	case "check":
		return runCheck(args[1:], out)
	case "sim":
		return sim.Main(ctx, args[1:], out)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

// runKill is the long kill test.
func runKill(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("kill", flag.ContinueOnError)
	cfg := killConfig{Out: out}
	flags.IntVar(&cfg.Tasks, "tasks", 50_000, "tasks to submit")
	flags.IntVar(&cfg.Kills, "kills", 20, "how many times the leader is killed")
	flags.IntVar(&cfg.Workers, "workers", 20, "workers")
	flags.IntVar(&cfg.Producers, "producers", 8, "producers")
	flags.Int64Var(&cfg.Seed, "seed", time.Now().Unix(), "of all that is chosen at random")
	flags.BoolVar(&cfg.KillAll, "all", true, "kill all nodes at once in the middle, too")
	binary := flags.String("binary", "", "the claimq binary; built if not given")
	file := flags.String("out", "", "where the history goes; a temporary file if not given")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w, err := openWorkspace(ctx, "kill", *binary)
	if err != nil {
		return err
	}
	cfg.Binary, cfg.Dir = w.binary, w.dir
	keep := *file == "" // the history goes where the logs are
	if keep {
		*file = filepath.Join(w.dir, "history.jsonl")
	}
	result, err := kill(ctx, cfg)
	if result.History != nil {
		err = errors.Join(err, result.History.WriteFile(*file))
		fmt.Fprintf(out, "history: %s (check it again with: go run ./jepsen check %s)\n", *file, *file)
	}
	if err != nil {
		return fmt.Errorf("%w\nlogs of the nodes: %s", err, w.dir)
	}
	fmt.Fprint(out, result)
	if !result.OK() {
		return fmt.Errorf("%w\nlogs of the nodes: %s; try again with: go run ./jepsen kill --tasks %d --kills %d --seed %d",
			errViolations, w.dir, cfg.Tasks, cfg.Kills, cfg.Seed)
	}
	if keep {
		return nil
	}
	return w.remove()
}

// runCheck checks a stored history again.
func runCheck(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	drained := flags.Bool("drained", true, "every task must have ended")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("one history file is needed\n%s", usage)
	}
	h, err := history.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	if h.Run == nil { // of the kill test
		h.Run = &history.Run{Drained: *drained, AnswersOnly: true}
	}
	verdict := judge.Judge(h)
	fmt.Fprint(out, verdict)
	if !verdict.OK() {
		return errViolations
	}
	return nil
}

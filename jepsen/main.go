package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/plants"
	"github.com/claimq/claimq/jepsen/runner"
)

// runArgs are the arguments of all runs that are judged by their history.
const runArgs = "[--nodes 3|5] [--time 60s] [--faults LIST|list|none] [--tasks N] [--kills K] [--parents PERCENT] [--steps S] [--clients N] [--rate N] [--plant NAME] [--seed S] [--binary PATH] [--out DIR]"

// commands lists all commands.
func commands() []command {
	return []command{
		{"demo", "[--tasks N] [--binary PATH]", runDemo},
		{"run", runArgs, running(runner.Config{Time: time.Minute}, "kill*,pause*", 0)},
		{"kill", runArgs, running(runner.Config{Tasks: 20_000, Time: 2 * time.Hour, Rate: 5000, Clients: 64}, "none", 20)},
		{"steps", runArgs, running(runner.Config{Tasks: 2_000, Parents: 100, Steps: 5, Time: 2 * time.Hour, Rate: 5000, Clients: 64}, "none", 10)},
		{"suite", "[--runs N] [--time 60s] [--seed S] [--binary PATH] [--out DIR]", runSuite},
		{"selftest", "[--only PLANT,...] [--tries N] [--time 40s] [--seed S] [--out DIR]", planting(plants.All)},
		{"rules", "[--only PLANT,...]", planting(plants.Rules)},
		{"waits", "[--waiting N] [--handoffs N] [--idle 20s] [--binary PATH]", runWaits},
		{"trail", "[--followers N] [--pairs N] [--load N] [--conns N] [--binary PATH]", runTrail},
		{"scale", "[--tasks N] [--nodes 1|3] [--pairs N] [--load N] [--conns N] [--reading 5s] [--binary PATH]", runScale},
		{"operations", "[--producers N] [--workers N] [--rate N] [--pause 5s] [--seed S] [--binary PATH]", runOperations},
		{"workers", "[--workers N] [--rate N] [--time 2m] [--lease 1s] [--seed S] [--binary PATH] [--plant NAME]", runWorkers},
		{"memory", "[--calls NAME,...] [--follower] [--nodes N] [--conns N] [--hold 6s] [--binary PATH]", runMemory},
		{"fuzz", "[--requests N] [--senders N] [--secure] [--foes N] [--hold 12s] [--seed S] [--binary PATH]", runFuzz},
		{"upgrade", "[--from LEVEL,...] [--rate N] [--rest 3s] [--seed S] [--binary PATH]", runUpgrade},
		{"check", "FILE", runCheck},
	}
}

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
	var all strings.Builder
	for _, cmd := range commands() {
		if len(args) > 0 && cmd.name == args[0] {
			return cmd.run(ctx, newCall(cmd, args[1:], out))
		}
		fmt.Fprintf(&all, "\n  go -C jepsen run . %s %s", cmd.name, cmd.args)
	}
	return fmt.Errorf("%w:%s", errUsage, &all)
}

// runCheck judges a stored history again.
func runCheck(_ context.Context, c *call) error {
	if err := c.parse(func() bool { return c.NArg() == 1 }); err != nil {
		return err
	}
	h, err := history.ReadFile(c.Arg(0))
	if err != nil {
		return err
	}
	verdict := check.Judge(h)
	fmt.Fprint(c.out, verdict)
	if !verdict.OK() {
		return errFails
	}
	return nil
}

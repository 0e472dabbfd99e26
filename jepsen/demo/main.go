package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// errCount is returned when the count does not add up.
var errCount = errors.New("it does not add up")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demoTimeout bounds the whole demo.
const demoTimeout = 2 * time.Minute

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	binary := flags.String("binary", "", "the claimq binary; built if not given")
	tasks := flags.Int("tasks", 3000, "tasks to submit")
	workers := flags.Int("workers", 8, "workers")
	rounds := flags.Int("rounds", 4000, "how long a task is: times a text is hashed")
	keep := flags.Bool("keep", false, "keep data and logs of the nodes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, demoTimeout, fmt.Errorf("the demo took longer than %v", demoTimeout))
	defer cancel()
	dir, err := os.MkdirTemp("", "claimq-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if *keep || err != nil {
			fmt.Fprintf(out, "\nData and logs of the nodes: %s\n", dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	if *binary == "" {
		if *binary, err = procs.Build(ctx, dir); err != nil {
			return err
		}
	}
	d := demo{out: out, binary: *binary, dir: dir, tasks: *tasks, workers: *workers, rounds: *rounds, tally: newTally()}
	return d.run(ctx)
}

// Command peers compares claimq with NATS JetStream, RabbitMQ and beanstalkd:
//
//	make bench-peers
//
// It starts those that are installed, on loopback and in empty folders in --dir. Each one is set to be as durable as
// it can be and does the same work through its own Go client. N producers submit tasks of 256 bytes, each the next one
// when the last is confirmed. N consumers take a task, acknowledge it, and take the next. In each round all systems
// are measured, one after another and never together. The first one changes with each round. Each number of producers
// has a new, empty system: claimq keeps ended tasks, and a later number would have those of all before. After a second
// that is not counted, producers submit for --time. The result is the number of tasks divided by the time until the
// last one was acknowledged. A lost or repeated task ends the run. It prints a Markdown table of the medians, with the
// median of each round's ratio to claimq in brackets. With --figures it also writes all rates to a file, which
// bench/callers draws.
//
// With --fair it compares instead how long tasks of small tenants wait behind those of a large one:
//
//	make bench-fair
//
// Programs are looked for in $(go env GOPATH)/bin, on PATH, and in /usr/sbin and /usr/lib/rabbitmq/bin. If a program
// is not installed or cannot sync before it confirms, the output says how to get it. Debian's nats-server, 2.9, is
// too old for that.
//
// This is a separate module, so that the peers' clients are not dependencies of claimq.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := arguments(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = c.run(ctx, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// comparison holds the settings of a run.
type comparison struct {
	binary string // claimq
	dir    string
	rounds int
	time   time.Duration
	warmUp time.Duration
	counts []int // of producers, and of consumers
	// figures is the file for all rates; "": none.
	figures string
	find    finder
	fair    *fairness // nil: compare rates
}

// countMax bounds the producers.
const countMax = 4000

// arguments reads the command line.
func arguments(args []string, usage io.Writer) (comparison, error) {
	c := comparison{warmUp: time.Second, find: finder{dirs: programDirs()}}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&c.binary, "binary", "../../bin/claimq", "claimq")
	flags.StringVar(&c.dir, "dir", ".", "folder whose file system all write to")
	flags.IntVar(&c.rounds, "rounds", 5, "how often each is measured")
	flags.DurationVar(&c.time, "time", 5*time.Second, "how long producers submit")
	counts := flags.String("counts", "1,64,256", "how many producers, and as many consumers; several, separated by commas")
	only := flags.String("peers", "", "programs to compare with, separated by commas (default: all)")
	flags.StringVar(&c.figures, "figures", "", "file for all rates, as CSV")
	fair := flags.Bool("fair", false, "compare how long small tenants wait behind a large one, in claimq and RabbitMQ; only with --binary, --dir and --rounds")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if c.rounds < 1 || c.time <= 0 {
		return c, fmt.Errorf("--rounds is %d and --time is %v: both must be above 0", c.rounds, c.time)
	}
	for text := range strings.SplitSeq(*counts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > countMax {
			return c, fmt.Errorf("--counts has %q: each must be a number from 1 to %d", text, countMax)
		}
		c.counts = append(c.counts, n)
	}
	c.find.count = slices.Max(c.counts)
	if *only != "" {
		c.find.only = strings.Split(*only, ",")
	}
	if *fair {
		c.fair, c.find.only, c.find.count = new(asMeasured()), []string{rabbitMQ().program}, 0
	}
	for _, program := range c.find.only {
		if !slices.ContainsFunc(peers(), func(s system) bool { return s.program == program }) {
			return c, fmt.Errorf("--peers has %q: there are nats-server, rabbitmq-server and beanstalkd", program)
		}
	}
	return c, nil
}

// run measures, prints the table to out, and reports how far it is to progress.
func (c *comparison) run(ctx context.Context, out, progress io.Writer) (err error) {
	binary, err := filepath.Abs(c.binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(c.dir, "peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	found, missing, err := c.find.all(ctx, binary)
	if err != nil {
		return err
	}
	if c.fair != nil {
		return c.runFair(ctx, dir, found, missing, out, progress)
	}
	t := newTable(c.counts, found)
	for round := range c.rounds {
		for i := range found {
			s := found[(i+round)%len(found)]
			rates, err := c.measure(ctx, s, filepath.Join(dir, strconv.Itoa(round), s.name))
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Fprintf(progress, "round %d of %d: %s, tasks/s %.0f\n", round+1, c.rounds, s.name, rates)
			t.add(s.name, rates)
		}
	}
	if c.figures != "" {
		if err := os.WriteFile(c.figures, t.csv(), 0o644); err != nil { //nolint:gosec // everyone may read them
			return fmt.Errorf("write figures: %w", err)
		}
	}
	return t.print(out, missing)
}

// measure returns a system's rates, one per count.
func (c *comparison) measure(ctx context.Context, s installed, dir string) (rates []float64, err error) {
	for _, n := range c.counts {
		rate, err := c.measureOne(ctx, s, filepath.Join(dir, strconv.Itoa(n)), n)
		if err != nil {
			return nil, fmt.Errorf("%d producers: %w", n, err)
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

// measureOne starts the system in a new folder and returns its rate with n producers. The folder is empty again
// afterwards.
func (c *comparison) measureOne(ctx context.Context, s installed, dir string, n int) (rate float64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	at := &site{dir: dir}
	defer func() { err = errors.Join(err, at.end(), os.RemoveAll(dir)) }()
	q, err := s.start(ctx, s.path, at)
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	if _, err := measure(ctx, q, n, c.warmUp); err != nil {
		return 0, fmt.Errorf("warm-up: %w", err)
	}
	return measure(ctx, q, n, c.time)
}

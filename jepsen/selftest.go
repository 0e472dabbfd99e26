package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/jepsen/plants"
	"github.com/claimq/claimq/jepsen/runner"
)

// errNotCaught is returned when the harness passed a run with a planted bug.
var errNotCaught = errors.New("a planted bug was not caught")

// caught is the outcome of one plant.
type caught struct {
	plant plants.Plant
	by    string        // the tests, or check and rule, "" = not caught
	at    time.Duration // of the tests, their build with them, or of a run's load until the calls had happened that show it
	runs  int           // until it was caught; 0 = by tests
	seed  int64
}

// runSelftest shows that each planted bug is caught: by tests of a package or the soak,
// built with it, or by a run of claimq that is.
func runSelftest(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("selftest", flag.ContinueOnError)
	only := flags.String("only", "", "names of plants, separated by commas; all if not given")
	length := flags.Duration("time", 40*time.Second, "how long the load of a run lasts")
	tries := flags.Int("tries", 4, "runs of a plant at most")
	seed := flags.Int64("seed", 1, "of each plant's first run")
	dir := flags.String("out", "", "folder for what the runs leave; a new one if not given")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		var err error
		if *dir, err = os.MkdirTemp("", "claimq-selftest-"); err != nil {
			return err
		}
	}
	chosen := plants.All()
	if *only != "" {
		chosen = nil
		for name := range strings.SplitSeq(*only, ",") {
			p, ok := plants.ByName(name)
			if !ok {
				return fmt.Errorf("no plant is called %q", name)
			}
			chosen = append(chosen, p)
		}
	}
	var all []caught
	for _, p := range chosen {
		c, err := catch(ctx, p, *length, *tries, *seed, filepath.Join(*dir, p.Name), out)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	return sayCaught(out, all)
}

// catch runs the tests that are to find the planted bug, which takes the
// least, then the soak, if that is; with neither, or when they pass, it makes runs until
// one fails.
func catch(ctx context.Context, p plants.Plant, length time.Duration, tries int, seed int64, dir string, out io.Writer) (caught, error) {
	c := caught{plant: p}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return c, err
	}
	if err := c.byTests(ctx, dir); err != nil {
		return c, err
	}
	if c.by == "" {
		if err := c.byRuns(ctx, length, tries, seed, dir, out); err != nil {
			return c, err
		}
	}
	if c.by != "" {
		fmt.Fprintf(out, "%s: caught by %s after %v\n", p.Name, c.by, c.at.Round(100*time.Millisecond))
	}
	return c, nil
}

// byTests runs the plant's tests, and the soak, if it has any.
func (c *caught) byTests(ctx context.Context, dir string) error {
	started := time.Now()
	if c.plant.Test != "" {
		failed, err := c.plant.RunTest(ctx, dir)
		if err != nil {
			return err
		}
		if len(failed) > 0 {
			c.by = c.plant.TestPackage() + "'s tests: " + strings.Join(failed, ", ")
		}
	}
	if c.by == "" && c.plant.Soak != "" {
		failed, err := c.plant.RunSoak(ctx, dir)
		if err != nil {
			return err
		}
		if len(failed) > 0 {
			c.by = "the soak: seed " + strings.Join(failed, ", ")
		}
	}
	c.at = time.Since(started)
	return nil
}

// byRuns makes runs until one fails.
func (c *caught) byRuns(ctx context.Context, length time.Duration, tries int, seed int64, dir string, out io.Writer) error {
	p := c.plant
	binary, err := p.Build(ctx, dir)
	if err != nil {
		return err
	}
	for i := range tries {
		c.runs, c.seed = i+1, seed+int64(i)
		cfg := runner.Config{
			Binary: binary, Nodes: p.Nodes, Time: length, Faults: faultNames(p.Faults), Seed: c.seed, Plant: p.Name,
			Clients: p.Clients, Rate: p.Rate,
			Revision: revision(ctx), Out: io.Discard,
		}
		verdict, err := oneRun(ctx, cfg, filepath.Join(dir, fmt.Sprintf("seed-%d", c.seed)))
		if err != nil {
			return err
		}
		if part, rule, found := verdict.First(); found {
			c.at, c.by = verdict.CaughtAfter(), fmt.Sprintf("%s: %s, run %d, seed %d", part, rule, c.runs, c.seed)
			return nil
		}
		fmt.Fprintf(out, "%s: not caught with seed %d\n", p.Name, c.seed)
	}
	return nil
}

// sayCaught prints the table.
func sayCaught(out io.Writer, all []caught) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nplanted bug\tfaults\tcaught by\tafter\trun")
	missed := 0
	for _, c := range all {
		if c.by == "" {
			missed++
			fmt.Fprintf(table, "%s\t%s\tNOT CAUGHT\t\t%d runs\n", c.plant.What, c.plant.Faults, c.runs)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%d\n", c.plant.What, c.plant.Faults, c.by, c.at.Round(100*time.Millisecond), c.runs)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%w: %d of %d", errNotCaught, missed, len(all))
	}
	return nil
}

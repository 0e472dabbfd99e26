package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/jepsen/neighbours"
	"github.com/claimq/claimq/jepsen/operations"
	"github.com/claimq/claimq/jepsen/plants"
	"github.com/claimq/claimq/jepsen/runner"
)

// Errors of planting.
var (
	// errNotCaught is returned when a planted bug is not detected.
	errNotCaught = errors.New("a planted bug was not caught")
	// errBlind is returned when a planted bug was detected, but not by the tests that it names.
	errBlind = errors.New("the tests of a planted bug pass with the bug in")
)

// catching is the search for a test or run that detects one plant.
type catching struct {
	plant plants.Plant
	dir   string // of the plant
	out   io.Writer
	// For the runs: the length of the load, the maximum number, and the first seed.
	length time.Duration
	tries  int
	seed   int64

	by    string        // tests, rows, or check and rule, "" = not caught
	blind bool          // the tests that the plant names passed
	after time.Duration // for tests including their build; for runs the load until the calls that show it
	runs  int           // until it was caught; 0 = by tests
}

// planting returns the command that shows that each of the bugs is caught: by rows of the
// contract, by tests of a package or the soak, or by a run, all built with the bug.
func planting(all func() []plants.Plant) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		c.leaving()
		only := c.String("only", "", "names of plants, separated by commas; all if not given")
		length := c.Duration("time", 40*time.Second, "how long the load of a run lasts")
		tries := c.Int("tries", 4, "runs of a plant at most")
		seed := c.Int64("seed", 1, "of each plant's first run")
		c.binary = "of each plant"
		if err := c.begin(ctx, nil); err != nil {
			return err
		}
		table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "planted bug\tfaults\tcaught by\tafter\trun")
		tried, missed, blind := 0, 0, 0
		for _, p := range all() {
			if *only != "" && !slices.Contains(strings.Split(*only, ","), p.Name) {
				continue
			}
			tried++
			one := catching{plant: p, dir: filepath.Join(c.dir, p.Name), out: c.out, length: *length, tries: *tries, seed: *seed}
			if err := one.find(ctx); err != nil {
				return err
			}
			if one.by == "" {
				missed++
				one.by = "NOT CAUGHT"
			}
			if one.blind {
				blind++
				one.by += ", NOT BY " + p.Test
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%d\n", p.What, p.Faults, one.by, one.after.Round(100*time.Millisecond), one.runs)
			if err := table.Flush(); err != nil {
				return err
			}
		}
		if tried == 0 {
			return fmt.Errorf("no plant is called %q", *only)
		}
		if missed > 0 {
			return fmt.Errorf("%w: %d of %d", errNotCaught, missed, tried)
		}
		if blind > 0 {
			return fmt.Errorf("%w: %d of %d", errBlind, blind, tried)
		}
		return nil
	}
}

// find tries the ways to detect the bug, cheapest first.
func (c *catching) find(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	p := c.plant
	if p.Row != "" {
		return c.byRows(ctx)
	}
	if p.Test != "" {
		if err := c.byTests(ctx, p.Package+"'s tests: ", p.RunTest); err != nil || c.by != "" {
			return err
		}
		c.blind = true
	}
	if p.Soak != "" {
		if err := c.byTests(ctx, "the soak: seed ", p.RunSoak); err != nil || c.by != "" {
			return err
		}
	}
	return c.byRuns(ctx)
}

// byTests runs tests with the bug.
func (c *catching) byTests(ctx context.Context, what string, failing func(ctx context.Context, dir string) ([]string, error)) error {
	started := time.Now()
	failed, err := failing(ctx, c.dir)
	if len(failed) > 0 {
		c.by, c.after = what+strings.Join(failed, ", "), time.Since(started)
	}
	return err
}

// byRows runs the row of the contract that the plant names against a build with the bug. It runs
// alone, in the smallest number of requests that must show the bug, so that all plants take minutes.
func (c *catching) byRows(ctx context.Context) error {
	started := time.Now()
	binary, err := c.plant.Build(ctx, c.dir)
	if err != nil {
		return err
	}
	alone := "^TestContract$/^" + strings.ReplaceAll(c.plant.Row, "/", "$/^") + "$"
	test := exec.CommandContext(ctx, "go", "test", "-buildvcs=false", "-count=1", "-run", alone, "./contract")
	test.Env = append(os.Environ(), "CLAIMQ_BINARY="+binary)
	text, err := test.CombinedOutput()
	switch {
	case strings.Contains(string(text), "--- FAIL: TestContract/"+c.plant.Row+" "):
		c.by, c.after = c.plant.Row, time.Since(started)
	case err != nil:
		return fmt.Errorf("plant %s: run row %s: %w\n%s", c.plant.Name, c.plant.Row, err, text)
	}
	return os.Remove(binary) // there are many
}

// byRuns makes runs until one fails.
func (c *catching) byRuns(ctx context.Context) error {
	p := c.plant
	binary, err := p.Build(ctx, c.dir)
	if err != nil {
		return err
	}
	for i := range c.tries {
		seed := c.seed + int64(i)
		dir := filepath.Join(c.dir, fmt.Sprintf("seed-%d", seed))
		c.runs = i + 1
		if p.Operations {
			if err := c.byOperations(ctx, binary, dir, seed); err != nil || c.by != "" {
				return err
			}
			continue
		}
		verdict, err := oneRun(ctx, runner.Config{
			Binary: binary, Nodes: plants.Nodes, Time: c.length, Faults: faultNames(p.Faults), Seed: seed, Plant: p.Name,
			Clients: p.Clients, Rate: p.Rate, Readers: cmp.Or(p.Readers, neighbours.Readers), Out: io.Discard,
		}, dir)
		if err != nil {
			return err
		}
		if part, rule, shown, found := verdict.First(); found {
			c.after, c.by = shown, fmt.Sprintf("%s: %s, run %d, seed %d", part, rule, c.runs, seed)
			return nil
		}
		fmt.Fprintf(c.out, "%s: not caught with seed %d\n", p.Name, seed)
	}
	return nil
}

// Settings of byOperations: the same as the short form of make test-operations.
const (
	operationsClients, operationsRate = 36, 200
	operationsPause                   = 500 * time.Millisecond
)

// byOperations makes a run of operations.
func (c *catching) byOperations(ctx context.Context, binary, dir string, seed int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	started := time.Now()
	report, err := operations.Run(ctx, operations.Config{
		Binary: binary, Dir: dir, Seed: seed, Clients: operationsClients, Rate: operationsRate, Pause: operationsPause, Patient: true, Out: io.Discard,
	})
	if err != nil {
		return err
	}
	if rule := report.First(); rule != "" {
		c.after, c.by = time.Since(started), fmt.Sprintf("operations: %s, run %d, seed %d", rule, c.runs, seed)
		return nil
	}
	fmt.Fprintf(c.out, "%s: not caught with seed %d\n", c.plant.Name, seed)
	return nil
}

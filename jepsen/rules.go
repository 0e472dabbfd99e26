package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/claimq/claimq/jepsen/plants"
)

// runRules builds claimq with each bug in its rules and shows that the rows of
// the contract catch it.
func runRules(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("rules", flag.ContinueOnError)
	only := flags.String("only", "", "names of plants, separated by commas; all if not given")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "claimq-rules-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "planted bug\tcaught by")
	tried, missed := 0, 0
	for _, p := range plants.Rules() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), p.Name) {
			continue
		}
		tried++
		rows, err := brokenRows(ctx, p, dir)
		if err != nil {
			return err
		}
		by := strings.Join(rows, ", ")
		if !slices.Contains(rows, p.Rows) {
			missed++
			by = fmt.Sprintf("NOT CAUGHT by %s (%s)", p.Rows, by)
		}
		fmt.Fprintf(table, "%s\t%s\n", p.What, by)
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
	return nil
}

// brokenRows returns the rows that fail with the bug in.
func brokenRows(ctx context.Context, p plants.Plant, dir string) ([]string, error) {
	binary, err := p.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	test := exec.CommandContext(ctx, "go", "test", "-buildvcs=false", "-count=1", "-run", "^TestContract$", "./jepsen/contract")
	test.Env = append(os.Environ(), "CLAIMQ_BINARY="+binary)
	text, err := test.CombinedOutput()
	var rows []string
	for line := range strings.Lines(string(text)) {
		if row, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: TestContract/"); ok {
			rows = append(rows, strings.Fields(row)[0])
		}
	}
	if err != nil && len(rows) == 0 {
		return nil, fmt.Errorf("plant %s: run the rows: %w\n%s", p.Name, err, text)
	}
	return rows, nil
}

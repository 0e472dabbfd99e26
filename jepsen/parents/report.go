package parents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/jepsen/check"
)

// Report is what a run found.
type Report struct {
	Violations     []string // the first ones
	ViolationCount int

	rows [][2]string
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return r.ViolationCount == 0 }

// String is the table, and below it what was found.
func (r *Report) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range r.rows {
		fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	_ = table.Flush() // into memory
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\n%s\n", v)
	}
	if more := r.ViolationCount - len(r.Violations); more > 0 {
		fmt.Fprintf(&b, "\n... and %d more\n", more)
	}
	return b.String()
}

// Kills adds how many nodes were killed.
func (r *Report) Kills(leaders int, all bool) {
	r.row("leaders killed", "%d%s", leaders, map[bool]string{true: ", and all nodes at once"}[all && leaders > 0])
}

func (r *Report) row(name, format string, args ...any) {
	r.rows = append(r.rows, [2]string{name, fmt.Sprintf(format, args...)})
}

// Judge reads the state at the end, if the run was drained, holds everything
// against what must be, and says what was found. Everybody must have stopped.
func (l *Load) Judge(ctx context.Context, drained bool) (*Report, error) {
	var at *state
	if drained {
		var err error
		if at, err = readState(ctx, l.caller(0)); err != nil {
			return nil, err
		}
	}
	l.ledger.judge(l.cfg.Seed, at)
	finals := check.Finalizers(l.rec.History())
	l.ledger.mu.Lock()
	defer l.ledger.mu.Unlock()
	for _, v := range finals.Violations {
		if p := l.ledger.byID[v.Task]; p != nil && p.cancelled && v.Rule == check.RuleFinalizers {
			continue // the cancel, which is not in the history, took the claim from its holder
		}
		l.ledger.violate("[%s] %s", v.Rule, v.Text)
	}
	r := &Report{Violations: l.ledger.violations, ViolationCount: l.ledger.violationCount + finals.ViolationCount - len(finals.Violations)}
	l.describe(r, finals, at)
	return r, nil
}

// describe fills in the table.
func (l *Load) describe(r *Report, finals check.FinalizersReport, at *state) {
	led := l.ledger
	ends := map[string]int{}
	forms := map[string]int{}
	byClaim, goOn, bad, steps := 0, 0, 0, 0
	for _, p := range led.parents {
		ends[led.tasks[p.id].status.String()]++
		forms[p.Form]++
		steps += len(p.DependsOn)
		byClaim += one(p.ByClaim)
		goOn += one(p.Continue)
		bad += one(p.Bad >= 0)
	}
	r.row("parents submitted", "%d, with %d steps: %s", len(led.parents), steps, counts(forms))
	r.row("of these", "%d finalized by claim, the others automatically; %d with continue; %d with a step that fails", byClaim, goOn, bad)
	r.row("parents ended", "%s", counts(ends))
	r.row("events of the trail", "%d: %s", led.events, counts(led.kinds))
	r.row("finalizations", "%d claims asked for, %d got, %d contended; %d ends asked for, %d done, %d told what was done, %d refused",
		finals.Claims, finals.Got, finals.Contended, finals.Finalizes, finals.Done, finals.Already, finals.Refused)
	r.row("processors that died", "%d, each with a claim", l.abandons.Load())
	r.row("workers that died", "with %d steps in their hands; %d ops came after the lease", l.dropped.Load(), l.late.Load())
	r.row("calls of unknown outcome", "%d, all repeated", l.unknown.Load())
	if at != nil {
		r.row("held at the end", "%d tasks, the same on %d nodes: %s", len(at.tasks), len(at.hashes), counts(at.counts))
	}
	r.row("wall time", "%v", time.Since(l.began).Round(100*time.Millisecond))
	r.row("violations", "%d", r.ViolationCount)
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// counts says how many there are of each.
func counts[N int | int64](of map[string]N) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] > 0 {
			all = append(all, fmt.Sprintf("%d %s", of[name], name))
		}
	}
	return strings.Join(all, ", ")
}

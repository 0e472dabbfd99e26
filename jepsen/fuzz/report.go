package fuzz

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// String formats the report: the table, and below it the findings.
func (r *Report) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	total := 0
	for _, n := range r.Requests {
		total += n
	}
	fmt.Fprintf(table, "requests\t%d to %d operations, seed %d, %.0f s\n", total, r.Operations, r.Seed, r.Seconds)
	for _, name := range kindNames {
		fmt.Fprintf(table, "  %s\t%d\n", name, r.Requests[name])
	}
	for _, s := range slices.Sorted(maps.Keys(r.Statuses)) {
		name := fmt.Sprint(s)
		if s == 0 {
			name = "no answer"
		}
		fmt.Fprintf(table, "answers %s\t%d\n", name, r.Statuses[s])
	}
	fmt.Fprintf(table, "done over peer ports\t%d\n", r.PassedOn)
	for _, s := range r.Sieges {
		fmt.Fprintf(table, "beside %s\t%d foes, %d calls answered, %d tried again, the slowest after %d ms, resident at most %.0f MB\n", s.Name, s.Foes, s.Calls, s.Cut, s.Slowest.Milliseconds(), s.ResidentMB)
	}
	never := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Done)), func(op string) bool { return r.Done[op] > 0 })
	fmt.Fprintf(table, "never a success\t%s\n", strings.Join(never, ", "))
	for i := range r.After {
		fmt.Fprintf(table, "node %d uses\t%s\n", i+1, r.After[i].since(r.Before[i]))
	}
	fmt.Fprintf(table, "violations\t%d\n", r.ViolationCount)
	_ = table.Flush() // into memory
	return b.String() + r.Found(nil)
}

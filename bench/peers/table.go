package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/claimq/claimq/bench/figures"
)

// table collects the rates by system.
type table struct {
	counts  []int
	systems []installed
	rates   map[string][][]float64 // by name, round and count
}

func newTable(counts []int, systems []installed) *table {
	return &table{counts: counts, systems: systems, rates: map[string][][]float64{}}
}

// add adds the rates of a round.
func (t *table) add(name string, rates []float64) { t.rates[name] = append(t.rates[name], rates) }

// print prints the table in Markdown. It also says which systems were faster than the first, with which the others
// are compared, and which are missing.
func (t *table) print(out io.Writer, missing []string) error {
	var b strings.Builder
	b.WriteString("| | version | a confirmation waits for |")
	for _, n := range t.counts {
		fmt.Fprintf(&b, " %d and %d, tasks/s |", n, n)
	}
	b.WriteString("\n| --- | --- | --- |" + strings.Repeat(" --- |", len(t.counts)) + "\n")
	var faster []string
	for i, s := range t.systems {
		fmt.Fprintf(&b, "| %s | %s | %s |", s.name, s.release, s.durable)
		for k, n := range t.counts {
			rate, ratio := t.medians(s.name, k)
			fmt.Fprintf(&b, " %s", figures.Thousands(rate))
			if i > 0 {
				fmt.Fprintf(&b, " (%.2f)", ratio)
			}
			if ratio > 1 {
				faster = append(faster, fmt.Sprintf("%s at %d and %d", s.name, n, n))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	if len(faster) == 0 {
		faster = []string{"none"}
	}
	fmt.Fprintf(&b, "\nFaster than %s: %s.\n", t.systems[0].name, strings.Join(faster, ", "))
	for _, what := range missing {
		fmt.Fprintf(&b, "\nNot measured: %s\n", what)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// csv returns all rates, in the form that bench/callers reads.
func (t *table) csv() []byte {
	b := []byte("system,version,callers,tasks_per_s\n")
	for _, s := range t.systems {
		for _, rates := range t.rates[s.name] {
			for k, n := range t.counts {
				b = fmt.Appendf(b, "%s,%s,%d,%.0f\n", s.name, s.release, n, rates[k])
			}
		}
	}
	return b
}

// medians returns the medians of the system's rates for the k-th count, and of their ratios to the first system's.
func (t *table) medians(name string, k int) (rate, ratio float64) {
	var rates, ratios []float64
	for round, r := range t.rates[name] {
		rates, ratios = append(rates, r[k]), append(ratios, r[k]/t.rates[t.systems[0].name][round][k])
	}
	return figures.Median(rates), figures.Median(ratios)
}

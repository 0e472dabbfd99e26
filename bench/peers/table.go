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
	rates   map[string][][]float64 // by name, of each round, of each count
}

func newTable(counts []int, systems []installed) *table {
	return &table{counts: counts, systems: systems, rates: map[string][][]float64{}}
}

// add adds the rates of a round.
func (t *table) add(name string, rates []float64) { t.rates[name] = append(t.rates[name], rates) }

// print prints the table in Markdown, and what is missing in it. The first of the systems
// is the one that the others are compared with.
func (t *table) print(out io.Writer, missing []string) error {
	var b strings.Builder
	b.WriteString("| | version | a confirmation waits for |")
	for _, n := range t.counts {
		fmt.Fprintf(&b, " %d and %d |", n, n)
	}
	b.WriteString("\n| --- | --- | --- |" + strings.Repeat(" --- |", len(t.counts)) + "\n")
	for i, s := range t.systems {
		fmt.Fprintf(&b, "| %s | %s | %s |", s.name, s.release, s.durable)
		for k := range t.counts {
			var rates, ratios []float64
			for round, r := range t.rates[s.name] {
				rates = append(rates, r[k])
				ratios = append(ratios, r[k]/t.rates[t.systems[0].name][round][k])
			}
			fmt.Fprintf(&b, " %s", figures.Thousands(figures.Median(rates)))
			if i > 0 {
				fmt.Fprintf(&b, " (%.2f)", figures.Median(ratios))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	for _, what := range missing {
		fmt.Fprintf(&b, "\nNot measured: %s\n", what)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

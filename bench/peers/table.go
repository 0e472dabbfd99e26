package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
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
			fmt.Fprintf(&b, " %s", thousands(median(rates)))
			if i > 0 {
				fmt.Fprintf(&b, " (%.2f)", median(ratios))
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

// median returns the one in the middle, of two their mean.
func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// thousands writes the number without a fraction, in groups of three digits.
func thousands(f float64) string {
	digits := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

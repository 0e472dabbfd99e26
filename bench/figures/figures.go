// Package figures is what the programs that measure have in common: how many figures
// become one, and how it is written.
package figures

import (
	"slices"
	"strconv"
)

// Quantile returns the value below which that share of all lies, between two neighbours
// in proportion. There must be one at least.
func Quantile(all []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	at := share * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Median returns the one in the middle, of two their mean.
func Median(all []float64) float64 { return Quantile(all, 0.5) }

// Thousands writes what is not below 0 without a fraction, in groups of three digits.
func Thousands(f float64) string {
	digits := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

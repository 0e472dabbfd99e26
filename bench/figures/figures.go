// Package figures has what the measuring programs share: it combines several figures into one and formats figures.
package figures

import (
	"slices"
	"strconv"
)

// Quantile returns the value below which that share of all lies. It interpolates between two neighbors. all must not
// be empty.
func Quantile(all []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	at := share * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Median returns the middle value, or the mean of the two in the middle.
func Median(all []float64) float64 { return Quantile(all, 0.5) }

// Thousands formats f without a fraction, in groups of three digits. f must not be negative.
func Thousands(f float64) string {
	digits := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

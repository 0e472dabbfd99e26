// Package memory tells how much memory this process may use.
package memory

import "math"

// Total returns how many bytes this process may use: the machine's
// memory, or a bound of its cgroups if that is lower.
func Total() uint64 {
	total := uint64(math.MaxInt64)
	if bytes, ok := machine(); ok {
		total = bytes
	}
	if bytes, ok := cgroup("/"); ok {
		total = min(total, bytes)
	}
	return total
}

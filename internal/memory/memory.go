// Package memory determines how much memory this process may use.
package memory

import "math"

// Total returns the number of bytes that this process may use: the machine's memory, or a
// lower limit of its cgroups.
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

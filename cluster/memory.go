package cluster

import "math"

// DefaultMemoryLimit returns the MemoryLimit that 0 stands for, in bytes: half
// of what this process may use, for restoring a snapshot needs room beside the
// state.
func DefaultMemoryLimit() int64 { return int64(memoryTotal() / 2) }

// memoryTotal returns how many bytes this process may use: the machine's
// memory, or a bound of its cgroups if that is lower.
func memoryTotal() uint64 {
	total := uint64(math.MaxInt64)
	if bytes, ok := machineMemory(); ok {
		total = bytes
	}
	if bytes, ok := cgroupMemory("/"); ok {
		total = min(total, bytes)
	}
	return total
}

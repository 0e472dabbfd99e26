package cluster

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// DefaultMemoryLimit returns the MemoryLimit that 0 stands for, in bytes: half
// of what this process may use, for restoring a snapshot needs room beside the
// state.
func DefaultMemoryLimit() int64 { return int64(memoryTotal() / 2) }

// memoryTotal returns how many bytes this process may use: the machine's
// memory, or the cgroup's bound if that is lower.
func memoryTotal() uint64 {
	total := uint64(math.MaxInt64)
	if bytes, ok := machineMemory(); ok {
		total = bytes
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// "max" does not parse and bounds nothing.
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil && n < total {
			total = n
		}
	}
	return total
}

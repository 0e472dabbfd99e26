//go:build !linux

package serve

// MemoryKnown says whether the memory of processes can be measured.
const MemoryKnown = false

// memoryOf returns the resident memory of a process, 0 if unknown.
func memoryOf(int) int64 { return 0 }

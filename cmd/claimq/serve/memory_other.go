//go:build !linux

package serve

// MemoryKnown says that the memory of processes can be told.
const MemoryKnown = false

// memoryOf returns the resident memory of a process, 0 if it is not known.
func memoryOf(int) int64 { return 0 }

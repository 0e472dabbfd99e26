package serve

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// MemoryKnown says whether the memory of processes can be measured.
const MemoryKnown = true

// memoryOf returns the resident memory of a process, 0 if unknown.
func memoryOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}

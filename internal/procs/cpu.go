package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPUTime returns the CPU time of the process's threads in ns, as Linux counts it in /proc/PID/task/*/schedstat.
// Threads that have ended are not included, but a node ends none.
func CPUTime(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("CPU time of process %d: no thread is found: %w", pid, err)
	}
	var sum time.Duration
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %s: %w", pid, path, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

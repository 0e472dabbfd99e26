package server

import (
	"runtime/debug"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// The collector's settings. A collection costs by what is live, and the state
// lives long: so it may wait until the heap is five times that. With few tasks
// this gains little (docs/benchmarks.md). Near the
// soft limit it no longer waits: above a fifth of it the limit decides.
const (
	gcPercent = 400
	// The soft limit is gcLimitParts/2 of the tasks' memory limit.
	gcLimitParts = 3
)

// tuneGC sets the collector for a server whose tasks may hold memoryLimit
// bytes. Go's own variables win.
func tuneGC(a *term.App, memoryLimit int64) {
	if a.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if a.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit / 2 * gcLimitParts)
	}
}

package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/pause"
)

// How large the heap may grow until the next collection. A collection costs by what is
// live, and the state lives long; but most of the state is bytes, which the collector
// does not look at. So with little that is live the heap may be five times that, up to
// gcSmallHeap; with more it may be gcLargePercent larger than what lives.
const (
	gcSmallPercent = 400
	gcSmallHeap    = 192 << 20
	gcLargePercent = 20
	// The soft limit is gcLimitParts/2 of the tasks' memory limit.
	gcLimitParts = 3
)

const (
	// gcLook is how often the collector's target is compared with what is live.
	gcLook = time.Second
	// A node that has allocated less than gcIdleBytes in gcIdleLooks looks is idle: it
	// gives its free memory back to the system, once until it is busy again.
	gcIdleBytes = 8 << 20
	gcIdleLooks = 10
)

// tuneGC sets the collector for a server whose tasks may hold memoryLimit bytes, and
// lets its target follow what is live until stop is called, which waits for that to end.
// Go's own variables win.
func tuneGC(a *term.App, memoryLimit int64) (stop func()) {
	if a.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit / 2 * gcLimitParts)
	}
	if a.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(gcSmallPercent)
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { followLive(ctx) })
	return func() {
		cancel()
		following.Wait()
	}
}

// gcPercent returns the collector's percentage for a heap of which so many bytes are
// live: what it may grow by until the next collection, by what is live.
func gcPercent(live uint64) int {
	if live == 0 {
		return gcSmallPercent
	}
	small := min(gcSmallPercent, (gcSmallHeap-int64(min(live, gcSmallHeap)))*100/int64(live))
	return int(max(small, gcLargePercent))
}

// followLive sets the collector's target by what is live, and gives memory back while
// the node is idle, until ctx ends.
func followLive(ctx context.Context) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	percent := gcSmallPercent
	var allocated [gcIdleLooks]uint64 // by the look, in turn
	idle := false
	for look := 0; pause.For(ctx, pause.Beat(gcLook)); look++ {
		metrics.Read(samples)
		live, allocs := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		if want := gcPercent(live); differs(percent, want) {
			percent = want
			debug.SetGCPercent(percent)
		}
		before := allocated[look%gcIdleLooks]
		allocated[look%gcIdleLooks] = allocs
		switch quiet := before > 0 && allocs-before < gcIdleBytes; {
		case quiet && !idle:
			debug.FreeOSMemory()
			idle = true
		case !quiet:
			idle = false
		}
	}
}

// differs reports whether two percentages differ by more than an eighth: to set one stops
// the process for a moment.
func differs(a, b int) bool { return 8*max(a, b) > 9*min(a, b) }

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

// How far the heap may grow until the next collection. The cost of a collection depends on the live objects, and the
// state lives long; but most of it is bytes, which the collector does not scan. A small heap may therefore grow to
// five times the live bytes, up to gcSmallHeap; a large one by gcLargePercent.
const (
	gcSmallPercent = 400
	gcSmallHeap    = 192 << 20
	gcLargePercent = 20
	// The soft limit is gcLimitParts/2 of the tasks' memory limit.
	gcLimitParts = 3
)

const (
	// gcLook is the interval at which the collector's target is adapted to the live bytes.
	gcLook = time.Second
	// A node that has allocated less than gcIdleBytes in gcIdleLooks looks is idle. It returns its free memory to the
	// system once, until it is busy again.
	gcIdleBytes = 8 << 20
	gcIdleLooks = 10
)

// tuneGC configures the collector for a server whose tasks may use memoryLimit bytes, and adapts its target to the
// live bytes until stop is called, which waits for the end. Go's own variables take precedence.
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

// gcPercent returns the collector's percentage for a heap with that many live bytes: how far it may grow until the
// next collection.
func gcPercent(live uint64) int {
	if live == 0 {
		return gcSmallPercent
	}
	small := min(gcSmallPercent, (gcSmallHeap-int64(min(live, gcSmallHeap)))*100/int64(live))
	return int(max(small, gcLargePercent))
}

// followLive adapts the collector's target to the live bytes, and returns memory while the node is idle, until ctx
// ends.
func followLive(ctx context.Context) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	percent := gcSmallPercent
	var allocated [gcIdleLooks]uint64 // by look, as a ring
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

// differs reports whether two percentages differ by more than an eighth, because changing the percentage stops the
// process for a moment.
func differs(a, b int) bool { return 8*max(a, b) > 9*min(a, b) }

package cluster

import (
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
)

// ClockSource is where a node takes its time from. Tests inject one.
type ClockSource interface {
	// Wall returns the wall clock, in nanoseconds since the Unix epoch. It may
	// jump either way.
	Wall() int64
	// Mono returns a monotonic clock, from any start. It never goes back.
	Mono() time.Duration
}

// systemClock is the machine's clocks.
type systemClock struct{ start time.Time }

func newSystemClock() *systemClock { return &systemClock{start: time.Now()} }

func (c *systemClock) Wall() int64 { return time.Now().UnixNano() }

// Mono relies on start's monotonic reading.
func (c *systemClock) Mono() time.Duration { return time.Since(c.start) }

// leaderClock is the two clocks of one leadership (docs/architecture.md). It
// is safe for concurrent use.
//
// U is the state's U at the barrier plus monotonic time since: it cannot be
// faster than real time, whatever the wall clock does, and time without a
// leader does not count. T follows the wall clock forward at once; when the
// wall is behind T, T runs at half speed until the wall has caught up: it
// never stops and never goes back.
type leaderClock struct {
	source ClockSource
	baseU  int64 // ms: the state's U at the barrier
	start  time.Duration

	mu       sync.Mutex
	calendar int64         // guarded by mu; T in ns, as of mono
	mono     time.Duration // guarded by mu
}

// newLeaderClock starts the clocks from what the state had at the barrier.
func newLeaderClock(source ClockSource, state fsm.Stamp) *leaderClock {
	now := source.Mono()
	return &leaderClock{
		source:   source,
		baseU:    state.U,
		start:    now,
		calendar: state.T * int64(time.Millisecond),
		mono:     now,
	}
}

// now returns both clocks. Each call returns at least what earlier ones did.
func (c *leaderClock) now() fsm.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono := c.source.Mono()
	// Half of real time is the least that T moves: also when the wall stands
	// still, or runs slower than that.
	c.calendar += int64(mono-c.mono) / 2
	c.mono = mono
	if wall := c.source.Wall(); wall > c.calendar {
		c.calendar = wall
	}
	return fsm.Stamp{
		U: c.baseU + (mono - c.start).Milliseconds(),
		T: c.calendar / int64(time.Millisecond),
	}
}

// laterOf returns the later of each clock.
func laterOf(a, b fsm.Stamp) fsm.Stamp {
	return fsm.Stamp{U: max(a.U, b.U), T: max(a.T, b.T)}
}

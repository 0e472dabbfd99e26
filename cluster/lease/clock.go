package lease

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

// Clock is the two clocks of one leadership (docs/architecture.md). It is safe
// for concurrent use.
//
// U is the state's U at the barrier plus monotonic time since: it cannot be
// faster than real time, whatever the wall clock does, and time without a
// leader does not count. T follows the wall clock forward at once; when the
// wall is behind T, T runs at half speed until the wall has caught up: it
// never stops and never goes back.
type Clock struct {
	source ClockSource
	baseU  int64 // ms: the state's U at the barrier
	start  time.Duration

	mu       sync.Mutex
	calendar int64         // guarded by mu; T in ns, as of mono
	mono     time.Duration // guarded by mu
}

// NewClock starts the clocks from what the state had at the barrier.
func NewClock(source ClockSource, state fsm.Stamp) *Clock {
	now := source.Mono()
	return &Clock{
		source:   source,
		baseU:    state.U,
		start:    now,
		calendar: state.T * int64(time.Millisecond),
		mono:     now,
	}
}

// Now returns both clocks. Each call returns at least what earlier ones did.
func (c *Clock) Now() fsm.Stamp {
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

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
// U is what StartU says of the state and the hints plus monotonic time since: it
// cannot be faster than real time, whatever the wall clock does, and time without
// a leader does not count.
//
// T follows the wall clock forward at once; when the wall is behind T, T runs at
// half speed until the wall has caught up: it never stops and never goes back.
// The wall clock is this node's own while that is within WallBound of the
// majority's, else the majority's: one clock that is wrong moves T by WallBound at
// most. Until the majority's is known T goes on by monotonic time.
type Clock struct {
	source ClockSource
	baseU  int64 // ms: U at start
	start  time.Duration

	mu       sync.Mutex
	calendar int64         // guarded by mu; T in ns, as of mono
	mono     time.Duration // guarded by mu
	majority Wall          // guarded by mu
	known    bool          // guarded by mu: majority is
}

// NewClock starts the clocks: T from the state's at the barrier, U from what
// StartU returned.
func NewClock(source ClockSource, start fsm.Stamp) *Clock {
	now := source.Mono()
	return &Clock{
		source:   source,
		baseU:    start.U,
		start:    now,
		calendar: start.T * int64(time.Millisecond),
		mono:     now,
	}
}

// SetMajority says what MajorityWall made of the voters' clocks, this node's among
// them. It holds until the next call.
func (c *Clock) SetMajority(majority Wall, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked() // what has passed goes by what was known
	c.majority, c.known = majority, ok
}

// Now returns both clocks. Each call returns at least what earlier ones did.
func (c *Clock) Now() fsm.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked()
	return fsm.Stamp{
		U: c.baseU + (c.mono - c.start).Milliseconds(),
		T: c.calendar / int64(time.Millisecond),
	}
}

// AtLeast is Now of a clock that is not behind the state's.
func (c *Clock) AtLeast(state fsm.Stamp) fsm.Stamp {
	now := c.Now()
	return fsm.Stamp{U: max(now.U, state.U), T: max(now.T, state.T)}
}

// Ahead returns how far this node's wall clock is ahead of the majority's now, below 0
// if behind. ok is false while the majority's is not known.
func (c *Clock) Ahead() (ahead time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aheadLocked(c.source.Mono()), c.known
}

func (c *Clock) aheadLocked(mono time.Duration) time.Duration {
	return time.Duration(c.source.Wall() - c.majority.At(mono))
}

// advanceLocked moves the calendar on to this moment.
func (c *Clock) advanceLocked() {
	mono := c.source.Mono()
	passed := int64(mono - c.mono)
	c.mono = mono
	if !c.known {
		c.calendar += passed
		return
	}
	wall := c.majority.At(mono)
	if ahead := c.aheadLocked(mono); Follows(ahead) {
		wall += int64(ahead)
	}
	// Half of real time is the least that T moves: also when the wall stands
	// still, or runs slower than that.
	c.calendar = max(c.calendar+passed/2, wall)
}

// Follows reports whether T follows the leader's wall clock when that is so far
// ahead of the majority's, or behind if below 0.
func Follows(ahead time.Duration) bool { return ahead.Abs() <= WallBound }

// Package lease tells a leader when a lease has run out: it has the two clocks of a
// leadership, and the timers of live claims. It has no goroutine, runtime timer
// or log: package cluster runs its loops.
//
// It does not end claims. It names those whose time has come; the caller proposes their
// expiry, and the log decides.
package lease

import (
	"slices"
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
)

// ClockSource provides a node's time. Tests inject their own.
type ClockSource interface {
	// Wall returns the wall clock, in nanoseconds since the Unix epoch. It may jump either
	// way.
	Wall() int64
	// Mono returns a monotonic clock with any start. It never goes back.
	Mono() time.Duration
}

// Clock has the two clocks of one leadership (docs/architecture.md). It is safe for
// concurrent use.
//
// U starts at StartU and continues with monotonic time. So it is never faster than real
// time, whatever the wall clock does, and time without a leader does not count.
//
// T follows the wall clock forward at once. While the wall clock is behind T, T runs at
// half speed: it never stops and never goes back. The wall clock is this node's own if it
// is within WallBound of the majority's, else the majority's, so that a single wrong clock
// moves T by at most WallBound. Until the majority's is known, T continues with monotonic
// time.
type Clock struct {
	source ClockSource
	baseU  int64 // ms: U at start
	start  time.Duration

	mu       sync.Mutex
	calendar int64         // guarded by mu; T in ns, as of mono
	mono     time.Duration // guarded by mu
	majority Wall          // guarded by mu
	known    bool          // guarded by mu: majority is set
}

// NewClock starts the clocks at start: its T is the state's at the barrier, its U is from StartU.
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

// SetMajority sets the result of MajorityWall for the voters' clocks, including this
// node's. It applies until the next call.
func (c *Clock) SetMajority(majority Wall, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked() // the time until now goes by what was known before
	c.majority, c.known = majority, ok
}

// Now returns both clocks. They never go back between calls.
func (c *Clock) Now() fsm.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked()
	return fsm.Stamp{
		U: c.baseU + (c.mono - c.start).Milliseconds(),
		T: c.calendar / int64(time.Millisecond),
	}
}

// AtLeast is Now, but not less than the state's clocks.
func (c *Clock) AtLeast(state fsm.Stamp) fsm.Stamp {
	now := c.Now()
	return fsm.Stamp{U: max(now.U, state.U), T: max(now.T, state.T)}
}

// Ahead returns how far this node's wall clock is ahead of the majority's, negative if
// behind. ok is false while the majority's is unknown.
func (c *Clock) Ahead() (ahead time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aheadLocked(c.source.Mono()), c.known
}

func (c *Clock) aheadLocked(mono time.Duration) time.Duration {
	return time.Duration(c.source.Wall() - c.majority.At(mono))
}

// advanceLocked advances the calendar to now.
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
	// T moves at half speed at least, even if the wall clock stands still or is slower.
	c.calendar = max(c.calendar+passed/2, wall)
}

// Follows reports whether T follows the leader's wall clock if that is ahead of the
// majority's by this much, or behind if negative.
func Follows(ahead time.Duration) bool { return ahead.Abs() <= WallBound }

const (
	// tickClaimedAfter bounds the age of U in the state while claims exist, in
	// milliseconds. A change of leader extends a lease by at most this, plus the interval
	// of TickDue checks and the election.
	tickClaimedAfter = 4_000
	// tickIdleAfter is the same while there are no claims, when a tick only drops claim
	// requests and advances the calendar.
	tickIdleAfter = 60_000
)

// TickDue reports whether the state's clocks are so old that the leader should log a tick.
// claims counts its claims of tasks and finalizations. Any entry advances the clocks.
func TickDue(now, state fsm.Stamp, claims int) bool {
	after := int64(tickIdleAfter)
	if claims > 0 {
		after = tickClaimedAfter
	}
	return now.U-state.U >= after
}

// WallBound is the largest difference from the clocks of a majority of voters at which the
// leader's wall clock is still followed. Clocks set by NTP differ by some milliseconds.
const WallBound = 10 * time.Second

// Wall is a wall clock read at some moment: the time that it shows when this node's
// monotonic clock shows 0, in nanoseconds since the Unix epoch. So what it shows later can
// be computed, whatever this node's own wall clock did.
type Wall int64

// ReadWall returns the clock that showed wall when this node's monotonic clock showed mono.
func ReadWall(wall int64, mono time.Duration) Wall { return Wall(wall - int64(mono)) }

// At returns the time that the clock shows when this node's monotonic clock shows mono.
func (w Wall) At(mono time.Duration) int64 { return int64(w) + int64(mono) }

// MajorityWall returns the latest time that a majority of the voters' clocks have reached,
// given those that were read: with three, the middle one, and with two of three, the
// earlier. So a minority of clocks that are ahead cannot move it, regardless of missing
// answers. ok is false if fewer than a majority were read.
func MajorityWall(walls []Wall, voters int) (majority Wall, ok bool) {
	most := voters/2 + 1
	if voters < 1 || len(walls) < most {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(walls))
	return sorted[len(sorted)-most], true
}

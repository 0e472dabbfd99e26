package lease

import (
	"slices"
	"time"
)

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

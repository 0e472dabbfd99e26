package lease

import (
	"slices"
	"time"
)

// WallBound is how far the leader's wall clock may be from what the clocks of a
// majority of voters say and still be followed. Clocks that NTP sets are some
// milliseconds apart.
const WallBound = 10 * time.Second

// Wall is a wall clock as it was read at one moment: what it shows when this
// node's monotonic clock shows 0, in nanoseconds since the Unix epoch. So it can
// be told later what it shows by then, whatever this node's own wall clock did.
type Wall int64

// ReadWall returns the clock that showed wall when this node's monotonic clock
// showed mono.
func ReadWall(wall int64, mono time.Duration) Wall { return Wall(wall - int64(mono)) }

// At returns what the clock shows when this node's monotonic clock shows mono.
func (w Wall) At(mono time.Duration) int64 { return int64(w) + int64(mono) }

// MajorityWall returns the latest time that the clocks of a majority of so many
// voters have reached, of the walls of those that were read; with three it is
// the one in the middle, and of two of three the earlier. So a minority of clocks
// that are ahead cannot move it, whoever does not answer. ok is false if fewer
// than a majority were read.
func MajorityWall(walls []Wall, voters int) (majority Wall, ok bool) {
	most := voters/2 + 1
	if voters < 1 || len(walls) < most {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(walls))
	return sorted[len(sorted)-most], true
}

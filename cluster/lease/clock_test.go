package lease

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/proof"
)

type fakeClock struct {
	wall time.Duration
	mono time.Duration
}

func (c *fakeClock) Wall() int64         { return int64(c.wall) }
func (c *fakeClock) Mono() time.Duration { return c.mono }

// Neither clock goes back, U is exactly monotonic time, and T runs at least at half of real
// time, whatever the wall clock does. T is neither behind the wall clock that it follows,
// nor ahead of it except while it runs at half speed. If the wall clock is too far from the
// majority's, it follows the majority's, and while that is not known it follows none.
func TestClock(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		source := &fakeClock{wall: 1000 * time.Hour, mono: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "mono"))}
		state := fsm.Stamp{U: rapid.Int64Range(0, 1e9).Draw(t, "u"), T: rapid.Int64Range(0, 8e9).Draw(t, "t")}
		c := NewClock(source, state)
		start, last := source.mono, state
		var majority Wall
		known := false
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "read") == 0 {
				known = rapid.Bool().Draw(t, "known")
				off := time.Duration(rapid.Int64Range(-2e10, 2e10).Draw(t, "own wall off"))
				majority = ReadWall(int64(source.wall-off), source.mono)
				c.SetMajority(majority, known)
			}
			step := time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "step"))
			source.mono += step
			source.wall += step + time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 1e8, -1e8, 12e9, -12e9, 2e13, -2e13}).Draw(t, "jump"))
			got := c.Now()
			if want := state.U + (source.mono - start).Milliseconds(); got.U != want {
				t.Fatalf("U %d, want %d", got.U, want)
			}
			if !known {
				if want := last.T + step.Milliseconds(); got.T < want || got.T > want+1 {
					t.Fatalf("T %d after %d and %s without a majority, want %d", got.T, last.T, step, want)
				}
				last = got
				continue
			}
			wall := source.wall.Milliseconds()
			if says := time.Duration(majority.At(source.mono)); (source.wall - says).Abs() > WallBound {
				wall = says.Milliseconds()
			}
			slow := last.T + step.Milliseconds()/2
			if got.T < slow-1 || got.T < last.T {
				t.Fatalf("T %d after %d and %s, want %d or later", got.T, last.T, step, slow)
			}
			if got.T < wall {
				t.Fatalf("T %d is behind the wall clock to follow, %d", got.T, wall)
			}
			if got.T > max(wall, slow+1) {
				t.Fatalf("T %d is ahead of wall %d and of half speed from %d", got.T, wall, last.T)
			}
			last = got
		}
	})
}

// However the leader's wall clock jumps and whenever it is read, T stays within WallBound
// of the majority's clock.
func TestClock_wallAlone(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		const year = int64(365 * 24 * time.Hour)
		source := &fakeClock{wall: 1000 * time.Hour}
		c := NewClock(source, fsm.Stamp{T: source.wall.Milliseconds()})
		right := ReadWall(int64(source.wall), 0)
		c.SetMajority(right, true)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			source.mono += time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "step"))
			source.wall = time.Duration(right.At(source.mono) + rapid.OneOf(rapid.Int64Range(-year, year), rapid.Int64Range(-2e10, 2e10)).Draw(t, "off"))
			ahead := time.Duration(c.Now().T)*time.Millisecond - time.Duration(right.At(source.mono))
			if ahead.Abs() > WallBound+time.Millisecond {
				t.Fatalf("T is %s ahead of the majority's clock, the leader's own by %s", ahead, source.wall-time.Duration(right.At(source.mono)))
			}
		}
	})
}

package lease

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm"
)

type fakeClock struct {
	wall time.Duration
	mono time.Duration
}

func (c *fakeClock) Wall() int64         { return int64(c.wall) }
func (c *fakeClock) Mono() time.Duration { return c.mono }

// Neither clock goes back, U is exactly monotonic time, and T runs at half of
// real time at least, whatever the wall clock does.
func TestClock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		source := &fakeClock{wall: 1000 * time.Hour, mono: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "mono"))}
		state := fsm.Stamp{U: rapid.Int64Range(0, 1e9).Draw(t, "u"), T: rapid.Int64Range(0, 8e9).Draw(t, "t")}
		c := NewClock(source, state)
		start, last := source.mono, state
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			step := time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "step"))
			source.mono += step
			source.wall += time.Duration(rapid.Int64Range(-2e13, 2e13).Draw(t, "jump"))
			got := c.Now()
			if want := state.U + (source.mono - start).Milliseconds(); got.U != want {
				t.Fatalf("U %d, want %d", got.U, want)
			}
			if least := last.T + step.Milliseconds()/2 - 1; got.T < least || got.T < last.T {
				t.Fatalf("T %d after %d and %s, want %d or later", got.T, last.T, step, least)
			}
			if wall := source.wall.Milliseconds(); got.T < wall {
				t.Fatalf("T %d is behind the wall clock, %d", got.T, wall)
			}
			if wall := source.wall.Milliseconds(); got.T > max(wall, last.T+step.Milliseconds()/2+1) {
				t.Fatalf("T %d is ahead of wall %d and of half speed from %d", got.T, wall, last.T)
			}
			last = got
		}
	})
}

package server

import "testing"

// A small heap may grow to five times the live bytes, a large one only by a little. So resident memory follows the
// state.
func TestGCPercent(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 400},
		{1 * mib, 400},
		{38 * mib, 400},
		{96 * mib, 100},
		{128 * mib, 50},
		{192 * mib, 20},
		{10 << 30, 20},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("%d MiB live: %d percent, want %d", c.live/mib, got, c.want)
		}
	}
	for live := uint64(mib); live < 300*mib; live += mib / 2 {
		if here, next := gcPercent(live), gcPercent(live+mib/2); next > here {
			t.Fatalf("%d bytes: %d percent, with more that is live %d", live, here, next)
		}
	}
}

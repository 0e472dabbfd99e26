package jsonout

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTime(t *testing.T) {
	t.Parallel()
	const layout = `"2006-01-02T15:04:05.000Z"`
	check := func(t interface{ Errorf(string, ...any) }, ms int64) {
		want := time.UnixMilli(ms).UTC().Format(layout)
		if ms == 0 {
			want = "null"
		}
		if got := string(Time(nil, ms)); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
	for _, ms := range []int64{0, 1, 999, 951_782_399_999, 951_782_400_000, 951_868_800_000, 4_107_542_399_999, 4_107_542_400_000, 253_402_300_799_999, 253_402_300_800_000, -1, math.MaxInt64, math.MinInt64} {
		check(t, ms)
	}
	for day := range int64(366 * 401) { // each day of 400 years, at changing times
		check(t, day*86_400_000+day*7_919%86_400_000)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Int64().Draw(t, "ms")) })
}

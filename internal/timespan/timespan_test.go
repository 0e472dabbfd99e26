package timespan_test

import (
	"testing"
	"time"

	"github.com/claimq/claimq/internal/timespan"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"0": 0, "500ms": 500 * time.Millisecond, "90m": 90 * time.Minute, "2m05s": 125 * time.Second, "-1h": -time.Hour,
		"7d": 7 * day, "0d": 0, "1d00h": day, "14d00h": 14 * day, "1d12h": 36 * time.Hour, "1d2h3m4.5s": day + 2*time.Hour + 3*time.Minute + 4500*time.Millisecond,
	} {
		if d, err := timespan.Parse(s); err != nil || d != want {
			t.Errorf("%q: %v, %v, want %v", s, d, err, want)
		}
	}
	for _, s := range []string{"", "d", "7", "1.5d", "-1d", "+1d", "1d-2h", "1d+2h", "1d 2h", "2h1d", "1d1d", "1dx", "65536d", "1w", "1D"} {
		if d, err := timespan.Parse(s); err == nil {
			t.Errorf("%q: %v", s, d)
		}
	}
}

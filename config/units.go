package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// byteUnits are the units of sizes. The longest names come first, because "KiB" also ends in "B".
var byteUnits = [...]struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseBytes parses a number of bytes: an integer with an optional unit (B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB for
// powers of 1,000).
func ParseBytes(s string) (int64, error) {
	unit := int64(1)
	digits := s
	for _, u := range byteUnits {
		if d, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = strings.TrimRight(d, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, errors.New(`it must be a number of bytes such as 1048576, "256MiB" or "1GiB"`)
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, errors.New("it is more bytes than there can be")
	}
	return n * unit, nil
}

// FormatBytes formats n with the largest binary unit that leaves an integer; ParseBytes parses it.
func FormatBytes(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := byteUnits[i]; n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

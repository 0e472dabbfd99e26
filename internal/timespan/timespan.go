// Package timespan reads lengths of time as claimq prints them and as people write them.
package timespan

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse reads a length of time as time.ParseDuration does, with whole days before the rest: 14d, 1d12h, 1d00h, 90m.
func Parse(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("the days of %q: %w", s, err)
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	switch {
	case err != nil:
		return 0, err
	case strings.ContainsAny(rest[:1], "+-"):
		return 0, fmt.Errorf("%q has a sign behind its days", s)
	}
	return d + more, nil
}

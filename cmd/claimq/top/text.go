package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// clean makes text from the server or from users safe for a terminal: it contains no terminal command, and each
// character takes one cell. Names of types, workers and nodes are always ASCII.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// cut shortens s to width characters. Each character of s takes one cell.
func cut(s string, width int) string {
	if len(s) <= width || width <= 0 {
		return s[:min(len(s), max(width, 0))]
	}
	return s[:width-1] + "~"
}

// showCount formats n in at most width characters, with commas where they fit.
func showCount(n int64, width int) string {
	plain := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range plain {
		if i > 0 && (len(plain)-i)%3 == 0 && plain[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	switch {
	case b.Len() <= width:
		return b.String()
	case len(plain) <= width:
		return plain
	}
	value := float64(n)
	for _, unit := range []string{"k", "M", "G", "T"} {
		if value /= 1000; value < 999.5 || unit == "T" {
			for _, digits := range []int{2, 1} {
				if s := strconv.FormatFloat(value, 'f', digits, 64) + unit; len(s) <= width {
					return s
				}
			}
			if s := strconv.FormatFloat(value, 'f', 0, 64) + unit; len(s) <= width {
				return s
			}
		}
	}
	return strings.Repeat("#", width)
}

// showRate formats a rate in at most width characters, with a useful number of digits.
func showRate(perSecond float64, width int) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 2, 64)
	case perSecond < 100:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return showCount(int64(perSecond+0.5), width)
}

// showMS formats a time of up to 99 days in at most 6 characters.
func showMS(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	day := 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 100*day:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

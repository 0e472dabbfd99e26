package top

import "testing"

func TestShowCount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n     int64
		width int
		want  string
	}{
		{0, 8, "0"},
		{999, 8, "999"},
		{1000, 8, "1,000"},
		{1234567, 9, "1,234,567"},
		{1234567, 8, "1234567"},
		{123456789, 8, "123.46M"},
		{123456789, 6, "123.5M"},
		{123456789, 5, "123M"},
		{999_999_999, 6, "1.00G"},
		{-1234, 6, "-1,234"},
		{5_000_000_000_000_000, 6, "5000T"},
		{5_000_000_000_000_000, 3, "###"},
	} {
		if got := showCount(test.n, test.width); got != test.want || len(got) > test.width {
			t.Errorf("%d in %d: got %s, want %s", test.n, test.width, got, test.want)
		}
	}
}

func TestShowMS(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		0: "0.0s", 99: "0.0s", 1250: "1.2s", 9999: "9.9s", 10_000: "10s", 61_000: "1m01s", 3_600_000: "1h00m", 49 * 3_600_000: "2d01h", 100 * 24 * 3_600_000: "100d",
	} {
		if got := showMS(ms); got != want {
			t.Errorf("%d: got %s, want %s", ms, got, want)
		}
	}
}

func TestShowRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]string{0: "0", 0.004: "0.00", 9.5: "9.50", 99.94: "99.9", 1234.5: "1,235", 123_456: "123456"} {
		if got := showRate(rate, 6); got != want {
			t.Errorf("%v: got %s, want %s", rate, got, want)
		}
	}
}

package config_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/proof"
)

// A formatted size is parsed to the same number, whatever its unit.
func TestFormatBytes_ReadBack(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n") << rapid.SampledFrom([]int{0, 10, 20, 30, 40}).Draw(t, "shift")
		if got, err := config.ParseBytes(config.FormatBytes(n)); got != n || err != nil {
			t.Errorf("%d is written as %s and read as %d, %v", n, config.FormatBytes(n), got, err)
		}
	})
}

func TestParseBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "1048576": 1 << 20, "256MiB": 256 << 20, "1 GiB": 1 << 30, "3TiB": 3 << 40, "5B": 5, "2kB": 2000, "7MB": 7e6, "8GB": 8e9, "9TB": 9e12, "-1KiB": -1024,
	} {
		if got, err := config.ParseBytes(text); got != want || err != nil {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "1.5GiB", "1MIB", "1 M", "0x10", "1_000", "99999999999TiB", "-99999999999TiB", "9223372036854775808"} {
		if got, err := config.ParseBytes(text); err == nil {
			t.Errorf("%q is accepted as %d", text, got)
		}
	}
}

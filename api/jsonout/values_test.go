package jsonout

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// FuzzString compares the escaping with encoding/json: both must mean the same string.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é😀\u2028", "\xff", "a\xc3", "\xed\xa0\x80", "\ufffd", "a\xe2\x82"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ours := String(nil, s)
		theirs, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		if err := json.Unmarshal(ours, &got); err != nil {
			t.Fatalf("%q became %s: %v", s, ours, err)
		}
		if err := json.Unmarshal(theirs, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q means %q, want %q", s, got, want)
		}
		if !reflect.DeepEqual(ours, String(nil, []byte(s))) {
			t.Errorf("%q: bytes and string differ", s)
		}
	})
}

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
	proof.Check(t, func(t *rapid.T) { check(t, rapid.Int64().Draw(t, "ms")) })
}

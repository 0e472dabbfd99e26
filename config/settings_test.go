package config

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"node_id", "node_id", 0},
		{"nod_id", "node_id", 1},
		{"nodee_id", "node_id", 1},
		{"node_ip", "node_id", 1},
		{"ndoe_id", "node_id", 1},
		{"kitten", "sitting", 3},
	} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("distance of %q to %q is %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

// The distance is symmetric, 0 only for equal names, and at most the number of mistakes.
func TestDistance_Properties(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[ab_]{0,12}`)
	proof.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Errorf("distance of %q to %q is %d, back %d", a, b, d, distance(b, a))
		}
		at := rapid.IntRange(0, len(a)).Draw(t, "at")
		if d := distance(a[:at]+"x"+a[at:], a); d != 1 {
			t.Errorf("a letter too many is a distance of %d", d)
		}
	})
}

// A name unlike all others, or too short to tell, has no near one.
func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"join", "node_id", "data_dir"}
	for name, want := range map[string]string{"joim": "join", "nodeid": "node_id", "date_dri": "data_dir", "xy": "", "colour": "", "jx": "", "": ""} {
		if got := nearest(name, known); got != want {
			t.Errorf("near %q is %q, want %q", name, got, want)
		}
	}
}

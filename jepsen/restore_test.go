package main

import (
	"context"
	"testing"
)

// TestRestore is the short form of `go run ./jepsen restore`: the leader is killed inside
// a restore of a few tasks.
func TestRestore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), restoreRunMax)
	defer cancel()
	if err := restores(ctx, restoreConfig{binary: binary(), dir: t.TempDir(), sizes: []int{300}, runs: 1, seed: 2, out: t.Output()}); err != nil {
		t.Error(err)
	}
}

func TestWholeOrNothing(t *testing.T) {
	for _, c := range []struct {
		counts []int
		ok     bool
	}{
		{[]int{0, 0, 0}, true},
		{[]int{300, 300, 300}, true},
		{[]int{300, 0, 300}, false},
		{[]int{0, 300, 300}, false},
		{[]int{299, 299, 299}, false},
	} {
		if err := wholeOrNothing(c.counts, 300); (err == nil) != c.ok {
			t.Errorf("%v of 300: %v", c.counts, err)
		}
	}
}

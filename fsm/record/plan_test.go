package record

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// TestFindCycle compares with a search that takes away what waits for nothing.
func TestFindCycle(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "steps")
		steps := make([]NewStep, n)
		for i := range steps {
			for on := range n {
				if on != i && rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
					steps[i].DependsOn = append(steps[i].DependsOn, uint16(on))
				}
			}
		}
		cycle := FindCycle(n, func(place uint16) []uint16 { return steps[place].DependsOn })
		for i, at := range cycle {
			next, found := cycle[(i+1)%len(cycle)], false
			for _, on := range steps[at].DependsOn {
				found = found || on == next
			}
			if !found {
				t.Fatalf("%d does not depend on %d: %v", at, next, cycle)
			}
		}
		gone := make([]bool, n)
		for range n {
			for i := range steps {
				waits := false
				for _, on := range steps[i].DependsOn {
					waits = waits || !gone[on]
				}
				gone[i] = gone[i] || !waits
			}
		}
		left := false
		for _, g := range gone {
			left = left || !g
		}
		if left != (cycle != nil) {
			t.Fatalf("cycle %v of %+v", cycle, steps)
		}
	})
}

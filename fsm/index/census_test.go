package index

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// TestCensus holds a census against a list of the priorities.
func TestCensus(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		var c census
		var held []int32
		priority := rapid.OneOf(rapid.Int32Range(-3, 3), rapid.Int32())
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "remove") {
				at := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				c.remove(held[at])
				held = slices.Delete(held, at, at+1)
			} else {
				p := priority.Draw(t, "priority")
				c.add(p)
				held = append(held, p)
			}
			asked := append([]int32{priority.Draw(t, "asked")}, held...)
			for _, p := range asked {
				want := int64(0)
				for _, other := range held {
					if other > p {
						want++
					}
				}
				if got := c.above(p); got != want {
					t.Fatalf("%d above %d, want %d, of %v", got, p, want, held)
				}
			}
			if n := c.root; (n == nil) != (len(held) == 0) || n != nil && n.count != int64(len(held)) {
				t.Fatalf("the root of %d is %+v", len(held), n)
			}
		}
	})
}

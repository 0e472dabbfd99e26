package replica

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// Waits for an index end in order, lowest first, even if others gave up in between.
func TestIndexHeap(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		var h indexHeap
		var waiting []*indexWaiter
		for _, index := range rapid.SliceOfN(rapid.Uint64Range(0, 50), 1, 60).Draw(t, "indexes") {
			w := &indexWaiter{index: index}
			h.push(w)
			waiting = append(waiting, w)
			if rapid.IntRange(0, 2).Draw(t, "gives up") == 0 {
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who")
				h.remove(waiting[i])
				h.remove(waiting[i]) // it may have been woken meanwhile
				waiting = slices.Delete(waiting, i, i+1)
			}
		}
		var got, want []uint64
		for _, w := range waiting {
			want = append(want, w.index)
		}
		slices.Sort(want)
		for len(h) > 0 {
			got = append(got, h.pop().index)
		}
		if !slices.Equal(got, want) {
			t.Errorf("woken %v, want %v", got, want)
		}
	})
}

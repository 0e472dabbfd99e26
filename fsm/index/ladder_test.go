package index

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// TestLadder holds a ladder against a plain search: rungs come, go and change, with names
// that begin alike.
func TestLadder(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		var l ladder
		var all []*rung // by attempts left and name
		name := rapid.StringMatching(`[ab\x00]{0,4}`)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			r := &rung{left: rapid.Int32Range(0, 5).Draw(rt, "left"), name: name.Draw(rt, "name")}
			at, known := slices.BinarySearchFunc(all, r, func(a, b *rung) int {
				return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.name, b.name))
			})
			if known && rapid.Bool().Draw(rt, "remove") {
				l.remove(all[at])
				all = slices.Delete(all, at, at+1)
			} else {
				if !known {
					all = slices.Insert(all, at, r)
				}
				var first ranks
				id := rapid.Uint64Range(1, 50).Draw(rt, "id")*1000 + uint64(len(all))
				for o := range orders {
					first[o] = rankOf(o, rapid.Int32Range(-2, 2).Draw(rt, "priority"), id)
				}
				l.put(all[at], rapid.IntRange(1, 3).Draw(rt, "count"), &first)
			}
			for left := int32(-1); left < 7; left++ {
				l.mustBe(rt, left, slices.DeleteFunc(slices.Clone(all), func(r *rung) bool { return r.left <= left }))
			}
		}
	})
}

// mustBe fails unless these are the rungs above.
func (l *ladder) mustBe(t *rapid.T, left int32, want []*rung) {
	count := 0
	first := noRanks
	for _, r := range want {
		for k := range r.len() {
			if got, at := l.at(left, count); got != r || at != k {
				t.Fatalf("above %d task %d is %d of %+v, want %d of %+v", left, count, at, got, k, r)
			}
			count++
		}
		for o := range orders {
			first[o] = first[o].or(r.first[o])
		}
	}
	if got := l.count(left); got != count {
		t.Fatalf("%d tasks above %d, want %d", got, left, count)
	}
	for o := range orders {
		wantID, some := first[o].task(o)
		if id, r := l.first(left, o); id != wantID || (r != nil) != some || some && r.first[o] != first[o] {
			t.Fatalf("the first above %d in order %d is %d of %+v, want %d", left, o, id, r, wantID)
		}
	}
}

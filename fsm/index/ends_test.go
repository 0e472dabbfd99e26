package index

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// What ended last comes first, wherever one begins, and whichever of the two timelines it
// is in.
func TestEnds_Latest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, ends := range []int{0, 1, 2, 10, 3000} {
		e := NewEnds()
		all := make([]Moment, 0, ends)
		for id := range uint64(ends) {
			m := Moment{At: r.Int64N(int64(ends)), ID: id}
			all = append(all, m)
			if r.IntN(3) == 0 {
				e.Others.Add(m.At, m.ID)
			} else {
				e.Own.Add(m.At, m.ID)
			}
		}
		slices.SortFunc(all, func(a, b Moment) int { return b.Compare(a) })
		froms := []Moment{{}, {At: math.MaxInt64, ID: math.MaxUint64}, {At: -1}}
		for _, m := range all {
			froms = append(froms, m, Moment{At: m.At, ID: m.ID + 1})
		}
		for _, from := range froms[:min(len(froms), 200)] {
			want := all[slices.IndexFunc(append(all, Moment{At: math.MinInt64}), func(m Moment) bool { return m.Compare(from) <= 0 }):]
			if got := slices.Collect(e.Latest(from)); !slices.Equal(got, want) {
				t.Fatalf("%d ends from %v on: got %d, want %d", ends, from, len(got), len(want))
			}
		}
	}
}

// A walk that is ended goes on no further.
func TestEnds_Latest_Ends(t *testing.T) {
	t.Parallel()
	e := NewEnds()
	e.Own.Add(1, 1)
	e.Others.Add(2, 2)
	for m := range e.Latest(Moment{At: 9}) {
		if m.ID != 2 {
			t.Fatalf("the latest is %v", m)
		}
		break
	}
}

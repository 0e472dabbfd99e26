package index

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A timeline holds what a sorted list holds, whatever comes and goes in what order,
// and its blocks stay what they are to be.
func TestTimeline(t *testing.T) {
	t.Parallel()
	const steps = 12_000
	for name, at := range map[string]func(r *rand.Rand, step int) int64{
		"growing":        func(_ *rand.Rand, step int) int64 { return int64(step / 3) },
		"nearly growing": func(r *rand.Rand, step int) int64 { return int64(step + r.IntN(3000)) },
		"any":            func(r *rand.Rand, _ int) int64 { return r.Int64N(1000) - 500 },
	} {
		for which, place := range map[string]func(r *rand.Rand, n int) int{
			"first": func(*rand.Rand, int) int { return 0 },
			"any":   func(r *rand.Rand, n int) int { return r.IntN(n) },
			"last":  func(_ *rand.Rand, n int) int { return n - 1 },
		} {
			t.Run(name+" added, "+which+" removed", func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(1, 2))
				line := NewTimeline()
				var want []Moment
				for step := range steps {
					if shrinks := step / 2400 % 2; len(want) > 0 && r.IntN(10) < 3+4*shrinks {
						i := place(r, len(want))
						line.Remove(want[i].At, want[i].ID)
						want = slices.Delete(want, i, i+1)
					} else {
						m := Moment{at(r, step), uint64(step)}
						line.Add(m.At, m.ID)
						i, _ := slices.BinarySearchFunc(want, m, func(a, b Moment) int {
							return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
						})
						want = slices.Insert(want, i, m)
					}
					checkFirst(t, line, want)
					if step%1000 == 0 {
						checkTimeline(t, line, want)
					}
				}
				checkTimeline(t, line, want)
				for len(want) > 0 {
					i := place(r, len(want))
					line.Remove(want[i].At, want[i].ID)
					want = slices.Delete(want, i, i+1)
				}
				checkTimeline(t, line, nil)
			})
		}
	}
}

func checkFirst(t *testing.T, line Timeline, want []Moment) {
	t.Helper()
	first, ok := line.First()
	if ok != (len(want) > 0) || ok && first != want[0] {
		t.Fatalf("the first is %v, %v of %d", first, ok, len(want))
	}
	if !ok {
		return
	}
	if _, due := line.Due(first.At - 1); due {
		t.Fatalf("%v is due before its time", first)
	}
	if id, due := line.Due(first.At); !due || id != first.ID {
		t.Fatalf("%v is not due at its time, but %d, %v", first, id, due)
	}
}

func checkTimeline(t *testing.T, line Timeline, want []Moment) {
	t.Helper()
	if got := slices.Collect(line.All()); !slices.Equal(got, want) || line.Len() != len(want) {
		t.Fatalf("%d moments are not the %d that were added", len(got), len(want))
	}
	for i, block := range line.list {
		if len(block) == 0 || len(block) > blockMax {
			t.Fatalf("block %d has %d moments", i, len(block))
		}
	}
}

// A timeline to which moments are added at the end and removed at the beginning takes
// little more than their own bytes, and a sparse one does not keep the memory of those that
// were removed.
func TestTimeline_memory(t *testing.T) {
	t.Parallel()
	const moments = 100_000
	line := NewTimeline()
	for i := range uint64(moments) {
		line.Add(int64(i/2), i)
	}
	if room := roomIn(line); room > moments*11/10 {
		t.Errorf("%d moments that came in order have room for %d", moments, room)
	}
	for i := range uint64(moments) {
		if i%100 != 0 {
			line.Remove(int64(i/2), i)
		}
	}
	if room := roomIn(line); room > moments/20 {
		t.Errorf("%d moments that are left have room for %d", line.Len(), room)
	}
}

// roomIn returns for how many moments the blocks have memory.
func roomIn(line Timeline) (room int) {
	for _, block := range line.list {
		room += cap(block)
	}
	return room
}

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

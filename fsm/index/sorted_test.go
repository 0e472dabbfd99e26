package index

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// pair is a key and its value.
type pair struct{ key, value uint64 }

// TestMap holds a map, and a copy that is made on the way, against Go's.
func TestMap(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		m, want := NewMap[uint64, uint64](), map[uint64]uint64{}
		key := rapid.Uint64Range(0, 300)
		change := func() {
			for range rapid.IntRange(0, 400).Draw(t, "changes") {
				k, v := key.Draw(t, "key"), rapid.Uint64().Draw(t, "value")
				before, there := want[k]
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0, 1:
					if old, had := m.Set(k, v); old != before || had != there {
						t.Fatalf("Set of %d returns %d, %t, want %d, %t", k, old, had, before, there)
					}
					want[k] = v
				case 2:
					m.Load(k, v)
					want[k] = v
				case 3:
					if old, had := m.Delete(k); old != before || had != there {
						t.Fatalf("Delete of %d returns %d, %t, want %d, %t", k, old, had, before, there)
					}
					delete(want, k)
				}
			}
		}
		change()
		copied, wanted := m.Copy(), maps.Clone(want)
		change()
		checkMap(t, m, want)
		checkMap(t, copied, wanted)
	})
}

// checkMap checks the whole map, and takes its first.
func checkMap(t *rapid.T, m Map[uint64, uint64], want map[uint64]uint64) {
	keys := slices.Sorted(maps.Keys(want))
	if got := m.Keys(); !slices.Equal(got, keys) || m.Len() != len(keys) {
		t.Fatalf("%d keys %v, want %v", m.Len(), got, keys)
	}
	var pairs []pair
	for i, k := range keys {
		pairs = append(pairs, pair{k, want[k]})
		if at, v, ok := m.GetAt(i); !ok || at != k || v != want[k] {
			t.Fatalf("at %d is %d %d, want %d %d", i, at, v, k, want[k])
		}
		if v, ok := m.Get(k); !ok || v != want[k] {
			t.Fatalf("%d has %d, want %d", k, v, want[k])
		}
	}
	from := rapid.Uint64Range(0, 300).Draw(t, "from")
	at, found := slices.BinarySearch(keys, from)
	to := at
	if found {
		to++
	}
	down := slices.Clone(pairs[:to])
	slices.Reverse(down)
	for name, c := range map[string]struct {
		walk func(yield func(k, v uint64) bool)
		want []pair
	}{
		"Scan":    {m.Scan, pairs},
		"Ascend":  {func(yield func(k, v uint64) bool) { m.Ascend(from, yield) }, pairs[at:]},
		"Descend": {func(yield func(k, v uint64) bool) { m.Descend(from, yield) }, down},
	} {
		var got []pair
		c.walk(func(k, v uint64) bool {
			got = append(got, pair{k, v})
			return true
		})
		if !slices.Equal(got, c.want) {
			t.Fatalf("%s from %d: %v, want %v", name, from, got, c.want)
		}
	}
	last, _, ok := m.Max()
	if first, v, some := m.PopMin(); ok != (len(keys) > 0) || some != ok || ok && (first != keys[0] || v != want[first] || last != keys[len(keys)-1] || m.Len() != len(keys)-1) {
		t.Fatalf("the first is %d %d, the last %d, %d are left of %v", first, v, last, m.Len(), keys)
	}
}

// TestIDs holds a set of ids, and a copy that is made on the way, against Go's map.
func TestIDs(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		ids, want := NewIDs(), map[uint64]bool{}
		change := func() {
			for _, id := range rapid.SliceOfN(rapid.Uint64Range(0, 300), 0, 400).Draw(t, "ids") {
				if rapid.Bool().Draw(t, "insert") {
					ids.Insert(id)
					want[id] = true
				} else {
					ids.Delete(id)
					delete(want, id)
				}
			}
		}
		check := func(s IDs, want map[uint64]bool) {
			keys := slices.Sorted(maps.Keys(want))
			if got := s.Keys(); !slices.Equal(got, keys) || s.Len() != len(keys) {
				t.Fatalf("%d ids %v, want %v", s.Len(), got, keys)
			}
			for i, id := range keys {
				if got, ok := s.GetAt(i); !ok || got != id {
					t.Fatalf("at %d is %d, want %d", i, got, id)
				}
			}
			if first, ok := s.Min(); ok != (len(keys) > 0) || ok && first != keys[0] {
				t.Fatalf("the first is %d of %v", first, keys)
			}
		}
		change()
		copied, wanted := ids.Copy(), maps.Clone(want)
		change()
		check(ids, want)
		check(copied, wanted)
	})
}

// TestList has of those of which neither comes before the other one, the latest.
func TestList(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		list := NewList(func(a, b pair) bool { return a.key < b.key })
		want := map[uint64]uint64{}
		for range rapid.IntRange(0, 300).Draw(t, "changes") {
			p := pair{rapid.Uint64Range(0, 100).Draw(t, "key"), rapid.Uint64().Draw(t, "value")}
			before, there := want[p.key]
			change := list.Set
			if rapid.Bool().Draw(t, "delete") {
				change = list.Delete
				delete(want, p.key)
			} else {
				want[p.key] = p.value
			}
			if old, had := change(p); had != there || had && old != (pair{p.key, before}) {
				t.Fatalf("%v takes the place of %v, %t, want %d, %t", p, old, had, before, there)
			}
		}
		var got, pairs []pair
		list.Scan(func(p pair) bool {
			got = append(got, p)
			return true
		})
		for k, v := range want {
			pairs = append(pairs, pair{k, v})
		}
		slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
		first, ok := list.Min()
		if !slices.Equal(got, pairs) || list.Len() != len(pairs) || ok != (len(pairs) > 0) || ok && first != pairs[0] {
			t.Fatalf("%d values %v, the first %v, want %v", list.Len(), got, first, pairs)
		}
	})
}

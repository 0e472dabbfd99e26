package fsm

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// record is what the tests keep in a table.
type record struct{ Value int }

// pair is a record with its id.
type pair struct {
	ID    uint64
	Value int
}

// TestTable_MatchesMap compares a table with a map, and each live view with a
// copy of the map as it was: nothing that happens to the table reaches a view.
func TestTable_MatchesMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var tab table[record]
		if rapid.Bool().Draw(rt, "resting") {
			tab.packing, tab.busy = evenRests{}, rapid.IntRange(0, 2).Draw(rt, "busy")
		}
		want := map[uint64]int{}
		type capture struct {
			view view[record]
			want []pair
		}
		var captures []capture
		// Near ids share pages, far ones leave gaps.
		id := rapid.OneOf(rapid.Uint64Range(1, 300), rapid.Uint64Range(1, 1<<53))
		value := rapid.IntRange(0, 1000)
		step := 0
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				k, v := id.Draw(rt, "id"), value.Draw(rt, "value")
				tab.put(k, &record{v})
				want[k] = v
			},
			"edit": func(rt *rapid.T) {
				k, v := someID(rt, want, id), value.Draw(rt, "value")
				r := tab.edit(k)
				if _, ok := want[k]; ok != (r != nil) {
					rt.Fatalf("edit %d: got %v, want a record: %v", k, r, ok)
				}
				if r != nil {
					r.Value = v
					want[k] = v
				}
				if rapid.Bool().Draw(rt, "rest") {
					tab.rest(k)
				}
			},
			"remove": func(rt *rapid.T) {
				k := someID(rt, want, id)
				_, ok := want[k]
				if got := tab.remove(k); got != ok {
					rt.Fatalf("remove %d: got %v, want %v", k, got, ok)
				}
				delete(want, k)
			},
			"capture": func(*rapid.T) {
				if len(captures) < 3 {
					captures = append(captures, capture{tab.view(), pairsOf(want)})
				}
			},
			"release": func(rt *rapid.T) {
				if len(captures) > 0 {
					i := rapid.IntRange(0, len(captures)-1).Draw(rt, "view")
					captures[i].view.release()
					captures = slices.Delete(captures, i, i+1)
				}
			},
			"": func(rt *rapid.T) {
				step++
				all := pairsOf(want)
				compareTable(rt, &tab, all)
				for _, c := range captures {
					got := pairsIn(&c.view)
					if diff := cmp.Diff(c.want, got); diff != "" || c.view.len() != len(c.want) {
						rt.Fatalf("step %d: a view of %d changed (-want +got):\n%s", step, c.view.len(), diff)
					}
				}
			},
		})
	})
}

func compareTable(rt *rapid.T, tab *table[record], want []pair) {
	from := rapid.Uint64Range(0, 400).Draw(rt, "from")
	var all, up, down []pair
	for k, r := range tab.all() {
		all = append(all, pair{k, r.Value})
		if *tab.get(k) != *r {
			rt.Fatalf("record %d is not found", k)
		}
	}
	collect := func(to *[]pair) func(*page[record], uint64) bool {
		return func(p *page[record], at uint64) bool {
			*to = append(*to, pair{p.number<<pageBits | at, tab.at(p, at).Value})
			return true
		}
	}
	ascend(tab.pages, from, collect(&up))
	descend(tab.pages, from, collect(&down))
	slices.Reverse(down)
	at := slices.IndexFunc(want, func(p pair) bool { return p.ID >= from })
	if at < 0 {
		at = len(want)
	}
	upTo := at
	if at < len(want) && want[at].ID == from {
		upTo++
	}
	for name, diff := range map[string]string{
		"all":     cmp.Diff(want, all),
		"ascend":  cmp.Diff(want[at:], up, alike),
		"descend": cmp.Diff(want[:upTo], down, alike),
	} {
		if diff != "" {
			rt.Fatalf("%s from %d (-want +got):\n%s", name, from, diff)
		}
	}
	if first, ok := tab.first(); ok != (len(want) > 0) || ok && first != want[0].ID || tab.len() != len(want) {
		rt.Fatalf("first is %d of %d, want %v", first, tab.len(), want)
	}
	if tab.get(1<<60) != nil {
		rt.Fatal("a record that was never put")
	}
}

// someID draws an id that is there, if any is, or any id.
func someID(rt *rapid.T, have map[uint64]int, id *rapid.Generator[uint64]) uint64 {
	if len(have) == 0 || rapid.IntRange(0, 9).Draw(rt, "any") == 0 {
		return id.Draw(rt, "id")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(have))).Draw(rt, "known id")
}

func pairsOf(m map[uint64]int) []pair {
	var pairs []pair
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, pair{k, m[k]})
	}
	return pairs
}

// pairsIn returns what the view holds.
func pairsIn(v *view[record]) []pair {
	var pairs []pair
	ascend(v.pages, 0, func(p *page[record], at uint64) bool {
		pairs = append(pairs, pair{ID: p.number<<pageBits | at})
		return true
	})
	i := 0
	for packed, r := range v.packed() {
		if r == nil {
			r = evenRests{}.unpack(packed, true)
		}
		pairs[i].Value = r.Value
		i++
	}
	return pairs
}

// TestTable_EditsInPlace ensures that a table without views copies nothing,
// also after one was released.
func TestTable_EditsInPlace(t *testing.T) {
	t.Parallel()
	var tab table[record]
	tab.put(1, &record{1})
	v := tab.view()
	captured := tab.get(1)
	if tab.edit(1) == captured {
		t.Error("an edit beside a view changed the view's record")
	}
	if own := tab.edit(1); own != tab.edit(1) {
		t.Error("a second edit beside a view copied again")
	}
	v.release()
	v = tab.view()
	v.release() // no record is of this epoch
	if own := tab.get(1); own != tab.edit(1) {
		t.Error("an edit without a view copied")
	}
}

// TestTable_KeepsNoEmptyPages ensures that memory goes with the records, from
// either end and from the middle.
func TestTable_KeepsNoEmptyPages(t *testing.T) {
	t.Parallel()
	var tab table[record]
	for id := range uint64(10 * pageSize) {
		tab.put(id, &record{})
	}
	for id := range uint64(10 * pageSize) {
		if id/pageSize != 3 && id/pageSize != 9 {
			tab.remove(id)
		}
	}
	if len(tab.pages) != 2 {
		t.Errorf("%d pages, want 2", len(tab.pages))
	}
	for id := range uint64(10 * pageSize) {
		tab.remove(id)
	}
	if len(tab.pages) != 0 || tab.len() != 0 {
		t.Errorf("%d pages and %d records, want none", len(tab.pages), tab.len())
	}
}

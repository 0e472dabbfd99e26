package record

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/record/recordtest"
	"github.com/claimq/claimq/internal/proof"
)

// pair is a record with its id.
type pair struct {
	ID    uint64
	Value int
}

// TestTable_MatchesMap compares a table with a map, and each live view with
// a copy of the map at its time: changes of the table do not reach a view.
func TestTable_MatchesMap(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		var tab Table[recordtest.Record]
		if rapid.Bool().Draw(rt, "resting") {
			tab.packing, tab.busy = recordtest.EvenRests{}, rapid.IntRange(0, 2).Draw(rt, "busy")
		}
		want := map[uint64]int{}
		type capture struct {
			view View[recordtest.Record]
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
				tab.Put(k, &recordtest.Record{Value: v})
				want[k] = v
			},
			"edit": func(rt *rapid.T) {
				k, v := recordtest.SomeID(rt, want, id), value.Draw(rt, "value")
				r := tab.Edit(k)
				if _, ok := want[k]; ok != (r != nil) {
					rt.Fatalf("edit %d: got %v, want a record: %v", k, r, ok)
				}
				if r != nil {
					r.Value = v
					want[k] = v
				}
				if rapid.Bool().Draw(rt, "rest") {
					tab.Rest(k)
				}
			},
			"remove": func(rt *rapid.T) {
				k := recordtest.SomeID(rt, want, id)
				_, ok := want[k]
				if got := tab.Remove(k); got != ok {
					rt.Fatalf("remove %d: got %v, want %v", k, got, ok)
				}
				delete(want, k)
			},
			"capture": func(*rapid.T) {
				if len(captures) < 3 {
					captures = append(captures, capture{tab.View(), pairsOf(want)})
				}
			},
			"release": func(rt *rapid.T) {
				if len(captures) > 0 {
					i := rapid.IntRange(0, len(captures)-1).Draw(rt, "view")
					captures[i].view.Release()
					captures = slices.Delete(captures, i, i+1)
				}
			},
			"": func(rt *rapid.T) {
				step++
				all := pairsOf(want)
				compareTable(rt, &tab, all)
				for _, c := range captures {
					got := pairsIn(&c.view)
					if diff := cmp.Diff(c.want, got); diff != "" || c.view.Len() != len(c.want) {
						rt.Fatalf("step %d: a view of %d changed (-want +got):\n%s", step, c.view.Len(), diff)
					}
				}
			},
		})
	})
}

func compareTable(rt *rapid.T, tab *Table[recordtest.Record], want []pair) {
	from := rapid.Uint64Range(0, 400).Draw(rt, "from")
	var all, up, down []pair
	for k, r := range tab.All() {
		all = append(all, pair{k, r.Value})
		if *tab.Get(k) != *r {
			rt.Fatalf("record %d is not found", k)
		}
	}
	collect := func(to *[]pair) func(Kept[recordtest.Record]) bool {
		return func(k Kept[recordtest.Record]) bool {
			*to = append(*to, pairOf(k))
			return true
		}
	}
	tab.Ascend(from, collect(&up))
	tab.Descend(from, collect(&down))
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
		"ascend":  cmp.Diff(want[at:], up, cmpopts.EquateEmpty()),
		"descend": cmp.Diff(want[:upTo], down, cmpopts.EquateEmpty()),
	} {
		if diff != "" {
			rt.Fatalf("%s from %d (-want +got):\n%s", name, from, diff)
		}
	}
	if first, ok := tab.First(); ok != (len(want) > 0) || ok && first != want[0].ID || tab.Len() != len(want) {
		rt.Fatalf("first is %d of %d, want %v", first, tab.Len(), want)
	}
	if tab.Get(1<<60) != nil {
		rt.Fatal("a record that was never put")
	}
}

func pairsOf(m map[uint64]int) []pair {
	var pairs []pair
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, pair{k, m[k]})
	}
	return pairs
}

// pairOf returns what is kept.
func pairOf(k Kept[recordtest.Record]) pair {
	r := k.Record
	if r == nil {
		r = recordtest.EvenRests{}.Unpack(k.Packed, true)
	}
	return pair{k.ID, r.Value}
}

// pairsIn returns what the view holds.
func pairsIn(v *View[recordtest.Record]) []pair {
	var pairs []pair
	for k := range v.All() {
		pairs = append(pairs, pairOf(k))
	}
	return pairs
}

// TestTable_EditsInPlace ensures that a table without views copies nothing,
// also after one was released.
func TestTable_EditsInPlace(t *testing.T) {
	t.Parallel()
	var tab Table[recordtest.Record]
	tab.Put(1, &recordtest.Record{Value: 1})
	v := tab.View()
	captured := tab.Get(1)
	if tab.Edit(1) == captured {
		t.Error("an edit beside a view changed the view's record")
	}
	if own := tab.Edit(1); own != tab.Edit(1) {
		t.Error("a second edit beside a view copied again")
	}
	v.Release()
	v = tab.View()
	v.Release() // no record is of this epoch
	if own := tab.Get(1); own != tab.Edit(1) {
		t.Error("an edit without a view copied")
	}
}

// TestTable_KeepsNoEmptyPages ensures that memory goes with the records, from
// either end and from the middle.
func TestTable_KeepsNoEmptyPages(t *testing.T) {
	t.Parallel()
	var tab Table[recordtest.Record]
	for id := range uint64(10 * PageSize) {
		tab.Put(id, &recordtest.Record{})
	}
	for id := range uint64(10 * PageSize) {
		if id/PageSize != 3 && id/PageSize != 9 {
			tab.Remove(id)
		}
	}
	if len(tab.pages) != 2 {
		t.Errorf("%d pages, want 2", len(tab.pages))
	}
	for id := range uint64(10 * PageSize) {
		tab.Remove(id)
	}
	if len(tab.pages) != 0 || tab.Len() != 0 {
		t.Errorf("%d pages and %d records, want none", len(tab.pages), tab.Len())
	}
}

package snapshot

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/record/recordtest"
	"github.com/claimq/claimq/internal/proof"
)

// TestPageSums_MatchTable compares the sums of a table's pages with one over all
// its records, whatever happens to the table between views, and in whatever order
// views are looked at.
func TestPageSums_MatchTable(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		var tab record.Table[recordtest.Record]
		if rapid.Bool().Draw(rt, "resting") {
			tab = record.NewTable[recordtest.Record](recordtest.EvenRests{}, rapid.IntRange(0, 2).Draw(rt, "busy"))
		}
		sums := pageSums[recordtest.Record]{kind: record.KindTask, appendRecord: func(b []byte, _ uint64, r *recordtest.Record) []byte {
			return recordtest.EvenRests{}.Pack(b, 0, r)
		}}
		var views []record.View[recordtest.Record]
		look := func(rt *rapid.T, v *record.View[recordtest.Record]) {
			var got, want StateHash
			turn := hashTurn(rapid.Uint64Range(0, HashTurns-1).Draw(rt, "turn"))
			if rotten := sums.addTo(&got, v, turn, &breaks{}); rotten != 0 {
				rt.Fatalf("%d pages changed without a new epoch", rotten)
			}
			for r := range v.All() {
				packed := r.Packed
				if r.Record != nil {
					packed = recordtest.EvenRests{}.Pack(nil, 0, r.Record)
				}
				want.Add(record.KindTask, packed)
			}
			if got.Sum() != want.Sum() {
				rt.Fatalf("the sums of %d records on %d pages are not theirs", v.Len(), len(v.Pages()))
			}
		}
		// Near ids share pages, far ones leave gaps.
		id := rapid.OneOf(rapid.Uint64Range(1, 300), rapid.Uint64Range(1, 1<<53))
		have := map[uint64]int{}
		value := rapid.IntRange(0, 1000)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				k := id.Draw(rt, "id")
				have[k] = 0
				tab.Put(k, &recordtest.Record{Value: value.Draw(rt, "value")})
			},
			"edit": func(rt *rapid.T) {
				k := recordtest.SomeID(rt, have, id)
				if r := tab.Edit(k); r != nil {
					r.Value = value.Draw(rt, "value")
				}
				if rapid.Bool().Draw(rt, "rest") {
					tab.Rest(k)
				}
			},
			"remove": func(rt *rapid.T) {
				k := recordtest.SomeID(rt, have, id)
				tab.Remove(k)
				delete(have, k)
			},
			"look": func(rt *rapid.T) {
				v := tab.View()
				look(rt, &v)
				v.Release()
			},
			"keep": func(*rapid.T) {
				if len(views) < 3 {
					views = append(views, tab.View())
				}
			},
			"look at kept": func(rt *rapid.T) {
				if len(views) > 0 {
					i := rapid.IntRange(0, len(views)-1).Draw(rt, "view")
					look(rt, &views[i])
					views[i].Release()
					views = slices.Delete(views, i, i+1)
				}
			},
		})
	})
}

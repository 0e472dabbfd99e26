package fsm

import (
	"math/rand/v2"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// A filter says the same of a task and of the record that it is kept as while it
// rests.
func TestRecordFilter_SaysWhatTheFilterSays(t *testing.T) {
	t.Parallel()
	selected, asked := 0, 0
	for seed := range uint64(10) {
		g := newGenerator(rand.New(rand.NewPCG(seed, 7)).IntN)
		m := newSmall()
		for _, e := range randomLog(seed, 200) {
			mustApplyTo(t, m, e)
		}
		for range 200 {
			f := g.filter(m)
			f.Key, f.ParentID = pick(g, f.Key, ""), pick(g, f.ParentID, 0)
			records := record.NewRecordFilter(&f)
			for id, task := range m.tasks.All() {
				if !record.IsResting(task) {
					continue
				}
				want := f.Matches(task)
				if got := records.Matches(record.EncodedTasks{Names: &m.types}.Pack(nil, task.ID, task)); got != want {
					t.Fatalf("seed %d: filter %+v of task %d says %v, of its record %v: %+v", seed, f, id, want, got, *task)
				}
				asked++
				if want {
					selected++
				}
			}
		}
	}
	if selected == 0 || selected == asked {
		t.Errorf("%d of %d were selected: the filters tell nothing apart", selected, asked)
	}
}

// What no record is ends the walk.
func TestRecordReader_EndsAtWhatIsNoField(t *testing.T) {
	t.Parallel()
	for name, packed := range map[string][]byte{
		"nothing":               nil,
		"a tag alone":           {0x08},
		"a tag that goes on":    {0x88},
		"a length past the end": {0x12, 5, 'a'},
		"a type of fixed size":  {0x0d, 1, 2, 3, 4},
	} {
		r := record.Scanner{Rest: packed}
		if r.NextUntil(31) {
			t.Errorf("%s: field %d was read", name, r.Num)
		}
	}
}

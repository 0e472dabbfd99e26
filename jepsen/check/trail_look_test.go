package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// A list tells of its first tasks as of its index, the state at the end of all.
func TestTrailChecker_firstLook(t *testing.T) {
	t.Parallel()
	c := &trailChecker{}
	for id := range uint64(2 * listLook) { // every other one is gone
		status := ""
		if id%2 == 1 {
			status = statusPending
		}
		c.all = append(c.all, &life{task: &task{id: id}, status: status})
	}
	c.all = append(c.all, &life{task: &task{id: 2 * listLook}, status: statusPending})
	for _, tc := range []struct {
		op            history.Op
		first, middle bool
		last          bool
	}{
		{history.Op{Kind: history.List}, true, true, false},
		{history.Op{Kind: history.List, Desc: true}, false, true, true},
		{history.Op{}, true, true, true},
	} {
		first := c.firstLook(&tc.op)
		if first(1) != tc.first || first(listLook) != tc.middle || first(2*listLook) != tc.last {
			t.Errorf("%+v: %v, %v, %v", tc.op, first(1), first(listLook), first(2*listLook))
		}
	}
}

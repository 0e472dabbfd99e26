package check

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// A complete and what it submits are told in one entry, also if nobody was
// answered.
func TestTrail_whole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		outcome history.Outcome
		index   uint64 // of the submit
		alone   bool   // the complete was asked for by itself, too
		ok      bool
	}{
		{"in one entry", history.Unknown, 15, false, true},
		{"in a later one", history.Unknown, 16, false, false},
		{"before", history.Unknown, 14, false, false},
		{"refused", history.Failed, 16, false, true}, // another rule's
		{"in a later one, by another call", history.Unknown, 16, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := good()
			h.Ops = append(h.Ops,
				history.Op{Process: 3, Call: 1, Kind: history.Complete, Outcome: tt.outcome, TaskID: 1, Token: 5, Worker: "v", Whole: true},
				history.Op{Process: 3, Call: 1, Kind: history.Submit, Outcome: tt.outcome, Key: "next", Whole: true},
				history.Op{Process: 4, Kind: history.Submit, Outcome: history.Unknown, Key: "other"}) // so that one more was asked for
			if tt.outcome == history.Unknown && !tt.alone {
				h.Ops = slices.DeleteFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.Complete && op.Token == 5 && !op.Whole })
			}
			h.Final = &history.Final{Tasks: []history.Task{{ID: 9, Key: "next", Status: "pending"}}}
			insert(h, history.Told{Index: tt.index, Kind: "submitted", TaskID: 9})
			for i := range h.Dumps {
				h.Dumps[i].Events = len(h.Trail)
			}
			r := trailOf(h)
			if r.OK() != tt.ok || !tt.ok && (r.ViolationCount != 1 || r.Violations[0].Rule != RuleTrailWhole) {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

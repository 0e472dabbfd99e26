package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// While a type is paused, from the entry that does it to the next that changes the
// type, its tasks are claimed by id alone.
func TestTrail_paused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		outcome history.Outcome // of the pause
		paused  bool            // what it sets
		kind    string          // whose
		at      uint64          // its entry
		resumed uint64          // the entry of the next change, which was not answered; 0 = none
		claim   history.Kind
		ok      bool
	}{
		{"claimed while paused", history.OK, true, "t", 10, 12, history.Claim, false},
		{"paused for good", history.OK, true, "t", 10, 0, history.Claim, false},
		{"claimed in the entry of the pause, before it", history.OK, true, "t", 11, 12, history.Claim, true},
		{"changed before the claim", history.OK, true, "t", 9, 10, history.Claim, true},
		{"paused after the claim", history.OK, true, "t", 12, 13, history.Claim, true},
		{"another type", history.OK, true, "u", 10, 12, history.Claim, true},
		{"claimed by id", history.OK, true, "t", 10, 12, history.ClaimTask, true},
		{"not paused", history.OK, false, "t", 10, 12, history.Claim, true},
		{"nobody was answered", history.Unknown, true, "t", 10, 12, history.Claim, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := good() // task 1 is claimed in entries 5, 7, 11 and 14
			for i := range h.Ops {
				if op := &h.Ops[i]; op.TaskID == 1 && op.Kind == history.Submit {
					op.TaskType = "t"
				} else if op.TaskID == 1 && op.Kind == history.ClaimTask {
					op.Kind = history.Claim
				}
				if op := &h.Ops[i]; op.Index == 11 {
					op.Kind = tt.claim
				}
			}
			h.Ops = append(h.Ops, history.Op{Kind: history.SetType, TaskType: tt.kind, Outcome: tt.outcome, Paused: &tt.paused, Index: tt.at})
			insert(h, history.Told{Index: tt.at, Kind: "type_changed", Message: tt.kind + " by ann"})
			if tt.resumed != 0 {
				insert(h, history.Told{Index: tt.resumed, Kind: "type_changed", Message: tt.kind})
			}
			r := trailOf(h)
			if r.OK() != tt.ok || !tt.ok && r.Violations[0].Rule != RuleTrailPaused {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

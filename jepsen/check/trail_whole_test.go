package check

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// The events of a complete and its submits are in one entry, or missing, also if the call was
// not answered.
func TestTrail_whole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		outcome history.Outcome
		index   uint64 // of the submit, 0 = it is not told
		also    uint64 // of one more
		undone  bool   // the complete is not told
		alone   bool   // the complete was asked for by itself, too
		unseen  bool   // no answer shows the submitted tasks, because they are deleted at once
		ok      bool
	}{
		{"in one entry", history.Unknown, 15, 15, false, false, false, true},
		{"nothing", history.Unknown, 0, 0, true, false, false, true},
		{"in a later one", history.Unknown, 16, 16, false, false, false, false},
		{"before", history.Unknown, 14, 14, false, false, false, false},
		{"the complete alone", history.Unknown, 0, 0, false, false, false, false},
		{"one of them is missing", history.Unknown, 15, 0, false, false, false, false},
		{"the other is missing", history.Unknown, 0, 15, false, false, false, false},
		{"what follows alone", history.Unknown, 15, 15, true, false, false, false},
		{"refused", history.Failed, 16, 16, false, false, false, true}, // another rule's
		{"in a later one, by another call", history.Unknown, 16, 16, false, true, false, true},
		{"another call may have completed it", history.Unknown, 0, 0, false, true, false, true},
		{"in one entry, and deleted before anybody saw them", history.Unknown, 15, 15, false, false, true, true},
		{"one of two that nobody saw", history.Unknown, 15, 0, false, false, true, false},
		{"in a later one, and deleted before anybody saw them", history.Unknown, 16, 16, false, false, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := good()
			leaveOut(h, placeIn(h, "deleted", 1))
			h.Ops = slices.DeleteFunc(h.Ops, func(op history.Op) bool {
				return op.Kind == history.Delete || op.Kind == history.Complete && op.Token == 5 && !tt.alone && tt.outcome == history.Unknown
			})
			h.Ops = append(h.Ops,
				history.Op{Process: 3, Call: 1, Kind: history.Complete, Outcome: tt.outcome, TaskID: 1, Token: 5, Worker: "v", Whole: true},
				history.Op{Process: 3, Call: 1, Kind: history.Submit, Outcome: tt.outcome, Key: "next", Whole: true},
				history.Op{Process: 3, Call: 1, Kind: history.Submit, Outcome: tt.outcome, Key: "also", Whole: true},
				history.Op{Process: 4, Kind: history.Submit, Outcome: history.Unknown, Key: "other"}) // so that one more was asked for
			if tt.undone {
				leaveOut(h, placeIn(h, "completed", 1))
			}
			h.Final = &history.Final{}
			for _, made := range []struct {
				index, id uint64
				key       string
			}{{tt.index, 9, "next"}, {tt.also, 10, "also"}} {
				if made.index != 0 {
					if !tt.unseen {
						h.Final.Tasks = append(h.Final.Tasks, history.Task{ID: made.id, Key: made.key, Status: "pending"})
					}
					insert(h, history.Told{Index: made.index, Kind: "submitted", TaskID: made.id})
				}
			}
			r := trailOf(h)
			if r.OK() != tt.ok || slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule != RuleTrailWhole }) {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

// A task that failed as its lease expired was not failed by a call on many.
func TestTrail_wholeExpired(t *testing.T) {
	t.Parallel()
	h := good()
	h.Final = &history.Final{}
	for i, op := range []history.Op{{Kind: history.Fail, TaskID: 2, Token: 3}, {Kind: history.Release, TaskID: 1, Token: 2}} {
		op.Process, op.Call, op.Outcome, op.Worker, op.Whole = 3, 1, history.Unknown, "w", true
		h.Ops = slices.Insert(h.Ops, i, op)
	}
	if r := trailOf(h); !r.OK() {
		t.Errorf("got %+v", r.Violations)
	}
}

// An atomic call may repeat a complete that another atomic call has asked for, and do the rest of its acts later.
func TestTrail_wholeRepeats(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"another call asked before": true, "no other call asked": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			leaveOut(h, placeIn(h, "deleted", 1))
			h.Ops = slices.DeleteFunc(h.Ops, func(op history.Op) bool {
				return op.Kind == history.Delete || op.Kind == history.Complete && op.Token == 5
			})
			complete := history.Op{Kind: history.Complete, TaskID: 1, Token: 5, Worker: "v", Whole: true}
			if before {
				first := complete
				first.Process, first.Call, first.Outcome = 3, 1, history.Unknown
				h.Ops = append(h.Ops, first)
			}
			again := complete
			again.Process, again.Call, again.Outcome, again.Repeated, again.Index = 4, 2, history.OK, true, 16
			submit := history.Op{Process: 4, Call: 2, Kind: history.Submit, Outcome: history.OK, Key: "next", TaskID: 9, Created: true, Whole: true, Index: 16}
			h.Ops = append(h.Ops, again, submit)
			h.Final = &history.Final{Tasks: []history.Task{{ID: 9, Key: "next", Status: "pending"}}}
			insert(h, history.Told{Index: 16, Kind: "submitted", TaskID: 9})
			r := trailOf(h)
			if r.OK() != before || slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule != RuleTrailWhole }) {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

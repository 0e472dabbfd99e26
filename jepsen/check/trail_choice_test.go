package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// A claim is held against the tasks that were pending for certain when it was made, which
// its entry's other commands and a task's delay, steps, group or type's limit decide.
func TestTrail_choice(t *testing.T) {
	t.Parallel()
	told := func(index uint64, sub uint32, kind string, task, token uint64) history.Told {
		return history.Told{Index: index, Sub: sub, Kind: kind, TaskID: task, Token: token, Worker: map[bool]string{true: "w"}[token != 0]}
	}
	made := func(id uint64, priority int32) history.Op {
		return history.Op{Kind: history.Submit, Outcome: history.OK, TaskID: id, Created: true, TaskType: "a", Priority: priority, Index: 1}
	}
	took := func(id uint64, sort string) history.Op {
		return history.Op{Process: int(id), Kind: history.Claim, Outcome: history.OK, TaskID: id, Token: id, Worker: "w", RequestID: "q", SortBy: sort, Index: 5}
	}
	none := history.Op{Kind: history.Claim, Outcome: history.Failed, Code: "no_pending_tasks", RequestID: "q", Index: 5}
	// Task 1 is older, task 2 more urgent; both are submitted in entry 1.
	old, urgent := made(1, 0), made(2, 5)
	with := func(op history.Op, change func(*history.Op)) history.Op {
		change(&op)
		return op
	}
	two := func(op *history.Op) { op.Limit = 2 }
	for _, tt := range []struct {
		name string
		ops  []history.Op
		told []history.Told
		rule Rule // "" = it passes
	}{
		{"the more urgent", []history.Op{old, urgent, took(2, "")}, []history.Told{told(5, 0, "claimed", 2, 2)}, ""},
		{"the less urgent", []history.Op{old, urgent, took(1, "")}, []history.Told{told(5, 0, "claimed", 1, 1)}, RuleChoice},
		{"the older", []history.Op{old, urgent, took(1, "created_at")}, []history.Told{told(5, 0, "claimed", 1, 1)}, ""},
		{"the newer", []history.Op{old, urgent, took(2, "created_at")}, []history.Told{told(5, 0, "claimed", 2, 2)}, RuleChoice},
		{"another type", []history.Op{old, urgent, with(took(2, ""), func(op *history.Op) { op.Types = []string{"b"} })}, []history.Told{told(5, 0, "claimed", 2, 2)}, RuleChoice},
		{"the claim of a complete", []history.Op{old, urgent, with(took(1, ""), func(op *history.Op) { op.Whole = true })}, []history.Told{told(5, 0, "claimed", 1, 1)}, RuleChoice},
		{"both, in this order", []history.Op{old, urgent, took(2, ""), took(1, "created_at")}, []history.Told{told(5, 0, "claimed", 2, 2), told(5, 1, "claimed", 1, 1)}, RuleTrailOrder}, // of the tokens alone
		{"both, in the other order", []history.Op{old, urgent, took(1, ""), took(2, "created_at")}, []history.Told{told(5, 0, "claimed", 1, 1), told(5, 1, "claimed", 2, 2)}, RuleChoice},
		{"the urgent one waits for its time", []history.Op{old, urgent, took(1, "")}, []history.Told{told(4, 0, "scheduled", 2, 0), told(5, 0, "claimed", 1, 1)}, ""},
		{"it is of a group", []history.Op{old, with(urgent, func(op *history.Op) { op.Group = "g" }), took(1, "")}, []history.Told{told(5, 0, "claimed", 1, 1)}, ""},
		{"its type has a limit", []history.Op{old, urgent, took(1, ""), {Kind: history.SetType, TaskType: "a", Outcome: history.Unknown}}, []history.Told{told(5, 0, "claimed", 1, 1)}, ""},
		{"it is a step", []history.Op{old, urgent, took(1, ""), {Kind: history.Get, TaskID: 2, Outcome: history.Unknown, Seen: &history.Task{ID: 2, ParentID: 9}}}, []history.Told{told(5, 0, "claimed", 1, 1)}, ""},
		{"nobody knows its type", []history.Op{old, with(urgent, func(op *history.Op) { op.TaskType = "" }), took(1, "")}, []history.Told{told(5, 0, "claimed", 1, 1)}, ""},
		{"it was cancelled", []history.Op{old, urgent, took(1, ""), {Kind: history.Cancel, Outcome: history.Unknown, TaskID: 2}}, []history.Told{told(4, 0, "cancelled", 2, 0), told(5, 0, "claimed", 1, 1)}, ""},
		{
			"it was cancelled, and retried in the entry",
			[]history.Op{old, urgent, took(1, ""), {Kind: history.Cancel, Outcome: history.Unknown, TaskID: 2}, {Kind: history.Retry, Outcome: history.Unknown, TaskID: 2}},
			[]history.Told{told(4, 0, "cancelled", 2, 0), told(5, 0, "retried", 2, 0), told(5, 1, "claimed", 1, 1)},
			RuleChoice,
		},

		{"none", []history.Op{old, none}, nil, RuleNone},
		{"none, as a complete answers", []history.Op{old, with(took(0, ""), func(op *history.Op) { op.Worker = "" })}, nil, RuleNone},
		{"none, of another type", []history.Op{old, with(none, func(op *history.Op) { op.Types = []string{"b"} })}, nil, ""},
		{"none, to one that waited", []history.Op{old, with(none, func(op *history.Op) { op.WaitMS = 10 })}, nil, ""},
		{"none, when it was first asked", []history.Op{old, with(took(0, ""), func(op *history.Op) { op.Repeated = true })}, nil, ""},
		{"none, before the submit", []history.Op{old, with(none, func(op *history.Op) { op.Index = 1 })}, nil, ""},
		{"none, before the retry in its entry", []history.Op{old, none, {Kind: history.Cancel, Outcome: history.Unknown, TaskID: 1}, {Kind: history.Retry, Outcome: history.Unknown, TaskID: 1}}, []history.Told{told(4, 0, "cancelled", 1, 0), told(5, 0, "retried", 1, 0)}, ""},
		{"one of two", []history.Op{old, urgent, with(took(2, ""), two)}, []history.Told{told(5, 0, "claimed", 2, 2)}, RuleNone},
		{"one of one that asked for two", []history.Op{old, with(took(1, ""), two)}, []history.Told{told(5, 0, "claimed", 1, 1)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history.History{Ops: tt.ops}
			for i := range tt.ops {
				if op := &tt.ops[i]; op.Kind == history.Submit {
					h.Trail = append(h.Trail, told(1, uint32(len(h.Trail)), "submitted", op.TaskID, 0))
				}
			}
			h.Trail = append(h.Trail, tt.told...)
			r := trailOf(h)
			if r.OK() != (tt.rule == "") || tt.rule != "" && (r.ViolationCount != 1 || r.Violations[0].Rule != tt.rule) {
				t.Errorf("got %+v, want %q", r.Violations, tt.rule)
			}
		})
	}
}

package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// Claims of one group must not overlap, nor exceed a type's limit;
// uncertain cases are no violation.
func TestTrail_crowds(t *testing.T) {
	t.Parallel()
	told := func(index uint64, kind string, task, token uint64) history.Told {
		return history.Told{Index: index, Kind: kind, TaskID: task, Token: token, Worker: map[bool]string{true: "w"}[token != 0]}
	}
	made := func(id uint64, kind, group string) history.Op {
		return history.Op{Kind: history.Submit, Outcome: history.OK, TaskID: id, Created: true, TaskType: kind, Group: group, Index: id}
	}
	set := func(index uint64, kind string, most int32, outcome history.Outcome) history.Op {
		return history.Op{Kind: history.SetType, TaskType: kind, MaxClaimed: most, Outcome: outcome, Index: index}
	}
	changed := func(index uint64, kind string) history.Told {
		return history.Told{Index: index, Kind: "type_changed", Message: kind}
	}
	first, second := told(10, "claimed", 1, 1), told(20, "claimed", 2, 2)
	for _, tt := range []struct {
		name   string
		first  history.Op
		second history.Op
		sets   []history.Op
		told   []history.Told
		rule   Rule // "" = it passes
	}{
		{"one group", made(1, "t", "g"), made(2, "t", "g"), nil, []history.Told{first, second}, RuleGroup},
		{"groups of two types", made(1, "t", "g"), made(2, "u", "g"), nil, []history.Told{first, second}, ""},
		{"two groups", made(1, "t", "g"), made(2, "t", "h"), nil, []history.Told{first, second}, ""},
		{"no group", made(1, "t", ""), made(2, "t", ""), nil, []history.Told{first, second}, ""},
		{"nobody knows the type", made(1, "", ""), made(2, "", ""), nil, []history.Told{first, second}, ""},
		{"the first lease had ended", made(1, "t", "g"), made(2, "t", "g"), nil, []history.Told{first, told(15, "lease_expired", 1, 1), second}, ""},
		{"the first was cancelled", made(1, "t", "g"), made(2, "t", "g"), []history.Op{{Kind: history.Cancel, TaskID: 1, Outcome: history.Unknown}}, []history.Told{first, told(14, "cancel_requested", 1, 1), told(15, "cancelled", 1, 1), second}, ""},
		{"more than the limit", made(1, "t", ""), made(2, "t", ""), []history.Op{set(5, "t", 1, history.OK)}, []history.Told{changed(5, "t"), first, second}, RuleLimit},
		{"a limit that came between", made(1, "t", ""), made(2, "t", ""), []history.Op{set(15, "t", 1, history.OK)}, []history.Told{first, changed(15, "t"), second}, RuleLimit},
		{"as many as the limit", made(1, "t", ""), made(2, "t", ""), []history.Op{set(5, "t", 2, history.OK)}, []history.Told{changed(5, "t"), first, second}, ""},
		{"another type's limit", made(1, "t", ""), made(2, "t", ""), []history.Op{set(5, "u", 1, history.OK)}, []history.Told{changed(5, "u"), first, second}, ""},
		{"nobody knows of the limit", made(1, "t", ""), made(2, "t", ""), []history.Op{set(5, "t", 1, history.Unknown)}, []history.Told{changed(5, "t"), first, second}, ""},
		{"two changes in one entry", made(1, "t", ""), made(2, "t", ""), []history.Op{set(5, "t", 1, history.OK), set(5, "t", 2, history.OK)}, []history.Told{changed(5, "t"), first, second}, ""},
		{"changed again, by nobody knows whom", made(1, "t", ""), made(2, "t", ""), []history.Op{set(5, "t", 1, history.OK)}, []history.Told{changed(5, "t"), changed(6, "t"), first, second}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history.History{Ops: append([]history.Op{tt.first, tt.second}, tt.sets...)}
			h.Trail = append([]history.Told{told(1, "submitted", 1, 0), told(2, "submitted", 2, 0)}, tt.told...)
			for _, e := range tt.told {
				if e.Kind == "claimed" {
					h.Ops = append(h.Ops, history.Op{Process: int(e.TaskID), Kind: history.ClaimTask, Outcome: history.OK, TaskID: e.TaskID, Token: e.Token, Worker: "w", RequestID: "q", Index: e.Index})
				}
			}
			r := trailOf(h)
			if tt.rule == "" && !r.OK() || tt.rule != "" && (r.ViolationCount != 1 || r.Violations[0].Rule != tt.rule) {
				t.Errorf("got %+v, want %q", r.Violations, tt.rule)
			}
		})
	}
}

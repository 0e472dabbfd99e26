package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// What the trail must have of cancels and of actions on many, and must not have.
func TestTrail_cancels(t *testing.T) {
	t.Parallel()
	// Tasks 5 and 6 are of type t; 6 is claimed in entry 21.
	start := func() *history.History {
		h := good()
		for id := uint64(5); id <= 6; id++ {
			h.Ops = append(h.Ops, history.Op{Kind: history.Submit, Outcome: history.OK, TaskID: id, TaskType: "t", Created: true, Index: 20})
		}
		h.Ops = append(h.Ops, history.Op{Kind: history.ClaimTask, Outcome: history.OK, TaskID: 6, Token: 9, Worker: "w", Index: 21})
		return h
	}
	lives := []history.Told{
		{Index: 20, Kind: "submitted", TaskID: 5}, {Index: 20, Sub: 1, Kind: "submitted", TaskID: 6}, {Index: 21, Kind: "claimed", TaskID: 6, Token: 9, Worker: "w"},
	}
	tell := func(index uint64, sub uint32, kind string, task, token uint64) history.Told {
		return history.Told{Index: index, Sub: sub, Kind: kind, TaskID: task, Token: token, Worker: map[bool]string{true: "w"}[token != 0]}
	}
	cancel := func(index, task uint64) history.Op {
		return history.Op{Kind: history.Cancel, Outcome: history.OK, TaskID: task, Index: index}
	}
	act := func(index uint64, action history.Kind, count int64) history.Op {
		return history.Op{Kind: history.Act, Outcome: history.OK, Action: string(action), TaskType: "t", Index: index, Count: count, Call: int64(index)}
	}
	unknown := act(0, history.Cancel, 0)
	unknown.Outcome, unknown.Call = history.Unknown, 21
	for _, tt := range []struct {
		name string
		ops  []history.Op
		told []history.Told
		rule Rule // "" = it passes
	}{
		{"one is cancelled", []history.Op{cancel(22, 5)}, []history.Told{tell(22, 0, "cancelled", 5, 0)}, ""},
		{"its event is missing", []history.Op{cancel(22, 5)}, nil, RuleTrailAcked},
		{"its event is of another entry", []history.Op{cancel(22, 5)}, []history.Told{tell(23, 0, "cancelled", 5, 0)}, RuleTrailAcked},
		{"nobody asked", nil, []history.Told{tell(22, 0, "cancelled", 5, 0)}, RuleTrailUnasked},
		{"somebody asked for another", []history.Op{cancel(22, 5)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(23, 0, "cancel_requested", 6, 9)}, RuleTrailUnasked},
		{"a claimed one ends as its claim does", []history.Op{cancel(22, 6)}, []history.Told{tell(22, 0, "cancel_requested", 6, 9), tell(23, 0, "lease_expired", 6, 9), tell(23, 1, "cancelled", 6, 0)}, ""},
		{
			"a claimed one ends by a retry",
			[]history.Op{cancel(22, 6), {Kind: history.Retry, Outcome: history.OK, TaskID: 6, Index: 23, Seen: &history.Task{ID: 6, Status: "cancelled", Attempts: 1}}},
			[]history.Told{tell(22, 0, "cancel_requested", 6, 9), tell(23, 0, "cancelled", 6, 9)},
			"",
		},
		{
			"a claimed one ends in the entry in which it is asked",
			[]history.Op{{Kind: history.Cancel, Outcome: history.OK, TaskID: 6, Index: 22, Seen: &history.Task{ID: 6, Status: "claimed", Token: 9, Worker: "w", Attempts: 1, Cancelling: true}}},
			[]history.Told{tell(22, 0, "cancel_requested", 6, 9), tell(22, 1, "lease_expired", 6, 9), tell(22, 2, "cancelled", 6, 0)},
			"",
		},
		{
			"a failed one is cancelled in the entry in which it is given back",
			[]history.Op{
				{Kind: history.Fail, Outcome: history.OK, TaskID: 6, Token: 9, Worker: "w", Index: 22, Seen: &history.Task{ID: 6, Status: "pending", Attempts: 1}},
				act(22, history.Cancel, 1),
			},
			[]history.Told{tell(22, 0, "failed", 6, 9), tell(22, 1, "requeued", 6, 9), tell(22, 2, "cancelled", 6, 0)},
			"",
		},
		{"a claimed one ends at once", []history.Op{cancel(22, 6)}, []history.Told{tell(22, 0, "cancelled", 6, 0)}, RuleTrailLife},
		{"a claimed one is pending after its claim", []history.Op{cancel(22, 6)}, []history.Told{tell(22, 0, "cancel_requested", 6, 9), tell(23, 0, "lease_expired", 6, 9), tell(23, 1, "requeued", 6, 0)}, RuleTrailLife},
		{"a claimed one fails", []history.Op{cancel(22, 6)}, []history.Told{tell(22, 0, "cancel_requested", 6, 9), tell(23, 0, "lease_expired", 6, 9), tell(23, 1, "failed", 6, 9)}, RuleTrailLife},
		{"a cancelled one is pending again", []history.Op{cancel(22, 5)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(23, 0, "requeued", 5, 0)}, RuleTrailLife},
		{"one that is not claimed is asked", []history.Op{cancel(22, 5)}, []history.Told{tell(22, 0, "cancel_requested", 5, 0)}, RuleTrailLife},

		{"all are cancelled", []history.Op{act(22, history.Cancel, 2)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(22, 1, "cancel_requested", 6, 9)}, ""},
		{"one more than it says", []history.Op{act(22, history.Cancel, 1)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(22, 1, "cancel_requested", 6, 9)}, RuleTrailActs},
		{"one less than it says", []history.Op{act(22, history.Cancel, 2)}, []history.Told{tell(22, 0, "cancelled", 5, 0)}, RuleTrailActs},
		{"one of them by itself", []history.Op{act(22, history.Cancel, 1), cancel(22, 6)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(22, 1, "cancel_requested", 6, 9)}, ""},
		{"one by an action that nobody heard of", []history.Op{unknown, act(22, history.Cancel, 1)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(22, 1, "cancel_requested", 6, 9)}, ""},
		{"each by an action of its own", []history.Op{act(22, history.Cancel, 1), act(24, history.Cancel, 1)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(24, 0, "cancel_requested", 6, 9)}, ""},
		{
			"retried and deleted",
			[]history.Op{act(22, history.Cancel, 1), act(23, history.Retry, 1), act(24, history.Cancel, 1), act(25, history.Delete, 1)},
			[]history.Told{tell(22, 0, "cancelled", 5, 0), tell(23, 0, "retried", 5, 0), tell(24, 0, "cancelled", 5, 0), tell(25, 0, "deleted", 5, 0)},
			"",
		},
		{"by an action that was refused, before one of another kind", []history.Op{act(22, history.Cancel, 1), act(24, history.Retry, 0)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(23, 0, "cancel_requested", 6, 9)}, RuleTrailActs},
		{"retried by nobody", []history.Op{cancel(22, 5)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(23, 0, "retried", 5, 0)}, RuleTrailUnasked},
		{"deleted by a retry", []history.Op{act(22, history.Cancel, 1), act(23, history.Retry, 1)}, []history.Told{tell(22, 0, "cancelled", 5, 0), tell(23, 0, "deleted", 5, 0)}, RuleTrailUnasked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := start()
			last := h.Trail[len(h.Trail)-1].At
			for _, e := range append(append([]history.Told(nil), lives...), tt.told...) {
				e.At = last
				h.Trail = append(h.Trail, e)
			}
			h.Ops = append(h.Ops, tt.ops...)
			r := trailOf(h)
			if r.OK() != (tt.rule == "") || tt.rule != "" && r.Violations[0].Rule != tt.rule {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

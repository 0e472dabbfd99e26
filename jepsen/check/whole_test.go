package check

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// oneCall makes the ops one call that is one step.
func oneCall(call, ret int64, ops ...history.Op) []history.Op {
	for i := range ops {
		ops[i].Process, ops[i].Whole = int(call), true
		ops[i].Call, ops[i].Return = at(call), at(ret)
	}
	return ops
}

func at(ms int64) int64 { return op(history.Get, ms, ms).Call }

// What a complete submits exists if, and only if, the complete took effect.
func TestCheckWhole_complete(t *testing.T) {
	t.Parallel()
	before := func(more ...[]history.Op) *history.History {
		h := run(submitted(0, 1, 1, "a"), claimed(2, 3, 1, 7, "w", "q"))
		for _, ops := range more {
			h.Ops = append(h.Ops, ops...)
		}
		return h
	}
	complete := func(call int64, steps ...step) []history.Op {
		return oneCall(call, call+1, settle(history.Complete, 0, 0, 1, 7, "w", steps...),
			submitted(0, 0, 0, "b", append([]step{unknown}, steps...)...), submitted(0, 0, 0, "c", append([]step{unknown}, steps...)...))
	}
	answered := func(call int64, steps ...step) []history.Op {
		return oneCall(call, call+1, settle(history.Complete, 0, 0, 1, 7, "w", steps...), submitted(0, 0, 2, "b", steps...), submitted(0, 0, 3, "c", steps...))
	}
	done, undone := task1("completed", 7, 1), task1("failed", 7, 1)
	b, c := history.Task{ID: 2, Key: "b", Status: "pending"}, history.Task{ID: 3, Key: "c", Status: "pending"}
	for _, tt := range []struct {
		name string
		h    *history.History
		want []Rule
	}{
		{"answered, all there", endsWith(before(answered(10)), done, b, c), nil},
		{"unknown, all there", endsWith(before(complete(10, unknown)), done, b, c), nil},
		{"unknown, nothing there", endsWith(before(complete(10, unknown)), undone), nil},
		{"unknown, then repeated", endsWith(before(complete(10, unknown), answered(20, repeated)), done, b, c), nil},
		{"refused, nothing there", endsWith(before(complete(10, refused("stale_claim"))), undone), nil},
		{"unknown, only the complete was done", endsWith(before(complete(10, unknown)), done), []Rule{RuleWhole}},
		{"unknown, one is missing", endsWith(before(complete(10, unknown)), done, c), []Rule{RuleWhole}},
		{"unknown, only what follows is there", endsWith(before(complete(10, unknown)), undone, b, c), []Rule{RuleWhole}},
		{"unknown, the task is deleted, one is missing", endsWith(before(complete(10, unknown), []history.Op{
			op(history.Delete, 20, 21, func(o *history.Op) { o.TaskID, o.Process = 1, 20 }),
		}), c), []Rule{RuleWhole}},
		{"refused, and what follows is there", endsWith(before(complete(10, refused("stale_claim"))), undone, b, c), []Rule{RuleUnsubmitted, RuleUnsubmitted}},
		{"another call may have completed it", endsWith(before(complete(10, unknown), []history.Op{
			settle(history.Complete, 20, 21, 1, 7, "w", unknown, func(o *history.Op) { o.Process = 20 }),
		}), done), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Check(tt.h, Options{})
			var got []Rule
			for _, v := range r.Violations {
				if v.Rule != RuleLinearizable { // which says it in other words
					got = append(got, v.Rule)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("found %v, want %v\n%v", got, tt.want, r)
			}
		})
	}
}

// Of an atomic batch everything is done, or nothing.
func TestCheckWhole_batch(t *testing.T) {
	t.Parallel()
	batch := func(outcome step) *history.History {
		h := run(submitted(0, 1, 1, "a"), claimed(2, 3, 1, 7, "w", "q"), submitted(0, 1, 2, "b"), claimed(2, 3, 2, 8, "w", "q2"))
		h.Ops = append(h.Ops, oneCall(10, 11, submitted(0, 0, 0, "c", unknown, outcome), settle(history.Complete, 0, 0, 1, 7, "w", outcome), settle(history.Complete, 0, 0, 2, 8, "w", outcome))...)
		return h
	}
	a, b, c := task1("completed", 7, 1), history.Task{ID: 2, Key: "b", Status: "completed", Token: 8, Attempts: 1}, history.Task{ID: 3, Key: "c", Status: "pending"}
	bFailed := history.Task{ID: 2, Key: "b", Status: "pending", Token: 0, Attempts: 1}
	for _, tt := range []struct {
		name string
		h    *history.History
		want Rule
	}{
		{"all done", endsWith(batch(unknown), a, b, c), ""},
		{"nothing done", endsWith(batch(unknown), task1("pending", 0, 1), bFailed), ""},
		{"without the submit", endsWith(batch(unknown), a, b), RuleWhole},
		{"one complete of two", endsWith(batch(unknown), a, bFailed, c), RuleWhole},
		{"the submit alone", endsWith(batch(unknown), task1("pending", 0, 1), bFailed, c), RuleWhole},
		{"refused, and the submit was done", endsWith(batch(refused("refused_with_others")), task1("pending", 0, 1), bFailed, c), RuleUnsubmitted},
		{"refused, and a complete was done", endsWith(batch(refused("refused_with_others")), a, bFailed), RuleLinearizable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Check(tt.h, Options{})
			if tt.want == "" != r.OK() || tt.want != "" && !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == tt.want }) {
				t.Errorf("want %q, got %v", tt.want, r)
			}
		})
	}
}

package check

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// A settle that is refused or repeated may be a read: its index is one that was answered
// before it was called, but not an older one. What was done is in the log.
func TestLog_judgedSettles(t *testing.T) {
	t.Parallel()
	done := &history.Task{ID: 1, Status: "completed", Token: 1, Attempts: 1}
	for _, tt := range []struct {
		name  string
		op    history.Op
		index uint64
		ok    bool
	}{
		{"repeated", history.Op{Kind: history.Complete, Outcome: history.OK, Repeated: true, Seen: done}, 3, true},
		{"repeated, of an older state", history.Op{Kind: history.Complete, Outcome: history.OK, Repeated: true, Seen: done}, 2, false},
		{"refused", history.Op{Kind: history.Fail, Outcome: history.Failed, Code: "task_completed"}, 3, true},
		{"refused, of an older state", history.Op{Kind: history.Fail, Outcome: history.Failed, Code: "task_completed"}, 2, false},
		{"done", history.Op{Kind: history.Delete, Outcome: history.OK}, 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history.History{}
			add := func(op history.Op, index uint64) {
				op.TaskID, op.Worker, op.Index = 1, "w", index
				op.Call = int64(len(h.Ops)) * 10
				op.Return = op.Call + 5
				h.Ops = append(h.Ops, op)
			}
			add(history.Op{Kind: history.Submit, Outcome: history.OK, Created: true, Key: "1"}, 1)
			add(history.Op{Kind: history.ClaimTask, Outcome: history.OK, Token: 1, Seen: &history.Task{ID: 1, Status: "claimed", Token: 1, Attempts: 1, Worker: "w"}}, 2)
			add(history.Op{Kind: history.Complete, Outcome: history.OK, Token: 1, Seen: done}, 3)
			tt.op.Token = 1
			add(tt.op, tt.index)
			r := logOf(h)
			early := false
			for _, v := range r.Violations {
				early = early || v.Rule == RuleTime
			}
			if early == tt.ok {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

// A refusal that was asked for once its entry had been answered is of the state after it.
func TestLog_judgedAfterItsEntry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		code string
		call int64
		ok   bool
	}{
		{"as it was before, called before", "stale_claim", 25, true},
		{"as it was before, called after", "stale_claim", 60, false},
		{"as it is then", "task_completed", 60, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history.History{}
			add := func(op history.Op, call int64, index uint64) {
				op.TaskID, op.Worker, op.Index, op.Process, op.Call, op.Return = 1, "w", index, len(h.Ops), call, call+5
				h.Ops = append(h.Ops, op)
			}
			add(history.Op{Kind: history.Submit, Outcome: history.OK, Created: true, Key: "1"}, 0, 1)
			add(history.Op{Kind: history.ClaimTask, Outcome: history.OK, Token: 1}, 10, 2)
			add(history.Op{Kind: history.ClaimTask, Outcome: history.OK, Token: 2}, 20, 3)
			add(history.Op{Kind: history.Complete, Outcome: history.OK, Token: 2}, 40, 4)
			add(history.Op{Kind: history.Complete, Outcome: history.Failed, Code: tt.code, Token: 1}, tt.call, 4)
			h.Ops[4].Return = 70
			if r := logOf(h); r.OK() != tt.ok || !tt.ok && r.Violations[0].Rule != RuleOrder {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

// A claim by id that is sent twice at once takes the task once, and the one that was called
// first may be the one that is repeated.
func TestLog_claimedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		repeated, taken uint64 // indexes
		again           bool   // both take the task
		worker          string // of the first one
		ok              bool
	}{
		{"in one entry", 2, 2, false, "w", true},
		{"in two entries", 3, 2, false, "w", true},
		{"repeated in an entry before", 2, 3, false, "w", false},
		{"taken twice", 2, 2, true, "w", false},
		{"taken by two", 2, 2, true, "v", false},
		{"repeated to another, in one entry", 2, 2, false, "v", false},
		{"repeated to another, in two entries", 3, 2, false, "v", false},
	} {
		for _, order := range [2][2]int{{0, 1}, {1, 0}} {
			t.Run(fmt.Sprint(tt.name, order), func(t *testing.T) {
				t.Parallel()
				claims := [2]history.Op{
					{Kind: history.ClaimTask, Outcome: history.OK, Token: 1, Index: tt.repeated, Repeated: !tt.again, Worker: tt.worker, Call: 10, Return: 20},
					{Kind: history.ClaimTask, Outcome: history.OK, Token: 1, Index: tt.taken, Worker: "w", Call: 11, Return: 21},
				}
				h := &history.History{Ops: []history.Op{
					{Kind: history.Submit, Outcome: history.OK, Created: true, Key: "1", Index: 1, Call: 0, Return: 5},
					claims[order[0]], claims[order[1]],
					{Kind: history.Complete, Outcome: history.OK, Token: 1, Index: 4, Worker: "w", Call: 30, Return: 40},
				}}
				for i := range h.Ops {
					h.Ops[i].TaskID, h.Ops[i].Process = 1, i
				}
				if r := logOf(h); r.OK() != tt.ok || !tt.ok && r.Violations[0].Rule != RuleOrder {
					t.Errorf("got %+v", r.Violations)
				}
			})
		}
	}
}

package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// What a complete claims is held against the tasks that were pending, but for those
// that have a delay.
func TestLog_claimOfAComplete(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		taken   uint64 // 0 = none
		delayMS int64  // of task 1, the most urgent
		repeat  bool   // the complete is one, and tells what it claimed before
		ok      bool
	}{
		{"the first", 1, 0, false, true},
		{"a later one", 2, 0, false, false},
		{"none", 0, 0, false, false},
		{"none when it was first asked", 0, 0, true, true},
		{"the first waits for its time", 2, 1000, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history.History{}
			add := func(op history.Op, index uint64) {
				op.Outcome, op.Index, op.Process = history.OK, index, len(h.Ops)
				op.Call, op.Return = int64(index)*10, int64(index)*10+5
				h.Ops = append(h.Ops, op)
			}
			look := func(id, token uint64, status string, priority, attempts int32) *history.Task {
				return &history.Task{ID: id, Status: status, Token: token, Attempts: attempts, Type: "a", Priority: priority}
			}
			add(history.Op{Kind: history.Submit, TaskID: 1, Created: true, TaskType: "a", Priority: 5, DelayMS: tt.delayMS, Key: "1"}, 1)
			add(history.Op{Kind: history.Submit, TaskID: 2, Created: true, TaskType: "a", Key: "2"}, 2)
			add(history.Op{Kind: history.Submit, TaskID: 3, Created: true, TaskType: "a", Priority: 9, Key: "3"}, 3)
			add(history.Op{Kind: history.Claim, TaskID: 3, Token: 1, Worker: "w", RequestID: "q", Seen: look(3, 1, "claimed", 9, 1)}, 4)
			add(history.Op{Kind: history.Complete, TaskID: 3, Token: 1, Worker: "w", Whole: true, Seen: look(3, 1, "completed", 9, 1)}, 5)
			next := history.Op{Kind: history.Claim, TaskID: tt.taken, Worker: "w", RequestID: "q2", Whole: true, Repeated: tt.repeat}
			if tt.taken != 0 {
				next.Token = 2
				next.Seen = look(tt.taken, 2, "claimed", 5, 1)
			}
			add(next, 5)
			h.Ops[5].Process = h.Ops[4].Process // one call
			if tt.taken != 1 {
				add(history.Op{Kind: history.Get, TaskID: 1, Seen: look(1, 0, "pending", 5, 0)}, 6)
			}
			if tt.taken == 2 {
				h.Ops[5].Seen.Priority = 0
			}
			r := logOf(h)
			if r.OK() != tt.ok || !tt.ok && (r.ViolationCount != 1 || r.Violations[0].Rule != RuleChoice && r.Violations[0].Rule != RuleNone) {
				t.Errorf("got %+v", r.Violations)
			}
		})
	}
}

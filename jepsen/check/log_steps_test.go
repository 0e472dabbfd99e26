package check

import (
	"strings"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// A step that was pending at two indexes need not have been pending between them:
// its parent may have ended it and brought it back. A task of its own must.
func TestLog_stepsComeAndGo(t *testing.T) {
	t.Parallel()
	seen := func(id uint64, status string, token uint64, attempts int32, parentID uint64) *history.Task {
		return &history.Task{ID: id, Status: status, Token: token, Attempts: attempts, Type: "a", ParentID: parentID}
	}
	at := int64(0)
	op := func(index uint64, o history.Op) history.Op {
		at += 10
		o.Call, o.Return, o.Index, o.Outcome = at, at+5, index, history.OK
		return o
	}
	run := func(parentID uint64) *history.History {
		at = 0
		h := &history.History{}
		if parentID > 0 {
			h.Ops = append(h.Ops, op(1, history.Op{Kind: history.Submit, TaskID: 1, Key: "p", Created: true, Plan: &history.Plan{Steps: []history.Step{{Name: "s", MaxAttempts: 1}}}}))
		} else {
			h.Ops = append(h.Ops, op(1, history.Op{Kind: history.Submit, TaskID: 2, Key: "p", Created: true, TaskType: "a"}))
		}
		h.Ops = append(
			h.Ops, op(2, history.Op{Kind: history.Submit, TaskID: 3, Key: "q", Created: true, TaskType: "a"}),
			op(2, history.Op{Kind: history.Get, TaskID: 2, Seen: seen(2, "pending", 0, 0, parentID)}),
			op(5, history.Op{Kind: history.Claim, TaskID: 3, Token: 1, Worker: "w", RequestID: "r", SortBy: "created_at", Types: []string{"a"}, Seen: seen(3, "claimed", 1, 1, 0)}),
			op(9, history.Op{Kind: history.Get, TaskID: 2, Seen: seen(2, "pending", 0, 0, parentID)}),
		)
		return h
	}
	if r := logOf(run(1)); !r.OK() {
		t.Errorf("a step: %+v", r.Violations)
	}
	r := logOf(run(0))
	if len(r.Violations) != 1 || r.Violations[0].Rule != RuleChoice || !strings.Contains(r.Violations[0].Text, "although task 2") {
		t.Errorf("a task: %+v", r.Violations)
	}
	for name, more := range map[string]history.Op{
		"cancelled, and retried":               {Kind: history.Cancel, TaskID: 2, Outcome: history.Unknown},
		"its type is acted on":                 {Kind: history.Act, TaskType: "a", Outcome: history.Unknown},
		"some of its type wait for their time": {Kind: history.Submit, TaskType: "a", DelayMS: 1, Outcome: history.Unknown},
	} {
		h := run(0)
		h.Ops = append(h.Ops, more)
		if r := logOf(h); !r.OK() {
			t.Errorf("%s: %+v", name, r.Violations)
		}
	}
}

package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// step makes one op of a script, called and answered at milliseconds.
type step func(op *history.Op)

func op(kind history.Kind, call, ret int64, steps ...step) history.Op {
	o := history.Op{Kind: kind, Call: call * int64(time.Millisecond), Return: ret * int64(time.Millisecond), Outcome: history.OK}
	for _, s := range steps {
		s(&o)
	}
	return o
}

func submitted(call, ret int64, id uint64, key string, steps ...step) history.Op {
	return op(history.Submit, call, ret, append([]step{func(o *history.Op) { o.TaskID, o.Key, o.Created = id, key, true }}, steps...)...)
}

func claimed(call, ret int64, id, token uint64, worker, request string, steps ...step) history.Op {
	return op(history.Claim, call, ret, append([]step{func(o *history.Op) {
		o.TaskID, o.Token, o.Worker, o.RequestID = id, token, worker, request
	}}, steps...)...)
}

func settle(kind history.Kind, call, ret int64, id, token uint64, worker string, steps ...step) history.Op {
	return op(kind, call, ret, append([]step{func(o *history.Op) { o.TaskID, o.Token, o.Worker = id, token, worker }}, steps...)...)
}

func get(call, ret int64, id uint64, status string, token uint64, attempts int32) history.Op {
	return op(history.Get, call, ret, func(o *history.Op) {
		o.TaskID = id
		o.Seen = &history.Task{ID: id, Status: status, Token: token, Attempts: attempts}
	})
}

func unknown(o *history.Op)  { o.Outcome, o.Created = history.Unknown, false }
func repeated(o *history.Op) { o.Repeated, o.Created = true, false }

func refused(code string) step {
	return func(o *history.Op) { o.Outcome, o.Code, o.Created = history.Failed, code, false }
}

func lease(ms int64) step { return func(o *history.Op) { o.LeaseMS = ms } }

func planned(o *history.Op) { o.Plan = &history.Plan{Steps: []history.Step{{Name: "a"}}} }

func params(json string) step { return func(o *history.Op) { o.Params = json } }

func result(json string) step { return func(o *history.Op) { o.Result = json } }

func attempts(token uint64, n int32) step {
	return func(o *history.Op) {
		o.Seen = &history.Task{ID: o.TaskID, Status: "claimed", Token: token, Attempts: n}
	}
}

// run makes a history of ops, each by a separate process.
func run(ops ...history.Op) *history.History {
	for i := range ops {
		ops[i].Process = i
	}
	return &history.History{Ops: ops}
}

// endsWith gives h a state at the end.
func endsWith(h *history.History, tasks ...history.Task) *history.History {
	h.Final = &history.Final{Call: int64(time.Hour), Return: int64(time.Hour) + 1, Tasks: tasks}
	return h
}

func task1(status string, token uint64, attempts int32) history.Task {
	return history.Task{ID: 1, Key: "a", Status: status, Token: token, Attempts: attempts}
}

// Each of these could not have happened, and the report says why.
func TestCheck_badHistories(t *testing.T) {
	t.Parallel()
	made := submitted(0, 1, 1, "a")
	done := history.Complete
	for _, tc := range []struct {
		name    string
		history *history.History
		drained bool
		rule    Rule
		says    string
	}{
		{
			name: "a parent whose submit was refused is there, and the outcome of another's is unknown",
			history: run(submitted(0, 1, 0, "p", planned, refused("overloaded")), submitted(0, 1, 0, "q", planned, unknown),
				but(get(2, 3, 1, "running", 0, 0), func(o *history.Op) { o.Seen.Key = "p" }),
				but(get(2, 3, 2, "pending", 0, 0), func(o *history.Op) { o.Seen.ParentID = 1 })),
			rule: RuleUnsubmitted, says: `task 1 (key "p") exists, and no submit can have made it`,
		},
		{
			name:    "a task is shown with the params of another",
			history: run(but(made, params("1")), but(get(2, 3, 1, "pending", 0, 0), func(o *history.Op) { o.Seen.Key, o.Seen.Params = "a", "2" })),
			rule:    RuleSent, says: `task 1 is another one than was submitted: {"id":1,"key":"a","status":"pending","attempts":0,"params":"2"}`,
		},
		{
			name:    "a task has the params of another at the end",
			history: endsWith(run(but(made, params("1"))), history.Task{ID: 1, Key: "a", Status: "pending", Params: "2"}),
			rule:    RuleSent, says: `task 1 is another one`,
		},
		{
			name: "a list shows a task with another priority",
			history: run(but(made, typed), op(history.List, 2, 3, func(o *history.Op) {
				o.Listed = []history.Task{{ID: 1, Key: "a", Status: "pending", Type: "t", Priority: 1}}
			})),
			rule: RuleSent, says: `task 1 is another one`,
		},
		{
			name:    "a read is answered with another task",
			history: run(made, submitted(0, 1, 2, "b"), but(get(2, 3, 1, "pending", 0, 0), func(o *history.Op) { o.Seen.ID = 2 })),
			rule:    RuleSent, says: `task 1 was asked for, and the answer is about 2`,
		},
		{
			name:    "a token that goes back",
			history: run(made, claimed(2, 3, 1, 9, "w1", "r1"), claimed(4, 5, 1, 8, "w2", "r2")),
			rule:    RuleOrder, says: "no place for: claim",
		},
		{
			name:    "two workers hold a task",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1", lease(1000)), claimed(500, 510, 1, 8, "w2", "r2", lease(1000))),
			rule:    RuleOverlap, says: "claims overlap: token 8 was handed to w2",
		},
		{
			name: "two workers hold a task that was extended",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1", lease(100)), settle(history.Extend, 50, 51, 1, 7, "w1", lease(1000)),
				claimed(500, 510, 1, 8, "w2", "r2", lease(100))),
			rule: RuleOverlap, says: "w1 held token 7 until 1.0",
		},
		{
			name:    "a holder is turned away",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1", lease(1000)), settle(done, 500, 501, 1, 7, "w1", refused("stale_claim"))),
			rule:    RuleLeaseEarly, says: "the lease of token 7 ended early",
		},
		{
			name:    "a repeated claim takes a second task",
			history: run(made, submitted(0, 1, 2, "b"), claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 2, 8, "w1", "r1")),
			rule:    RuleRepeat, says: `claim request "r1" was answered with [{1 7}] and, repeated, with [{2 8}]`,
		},
		{
			name:    "a repeated claim gets a new token",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 1, 8, "w1", "r1")),
			rule:    RuleRepeat, says: "[{1 7}] and, repeated, with [{1 8}]",
		},
		{
			name:    "a stale token completes",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 1, 8, "w2", "r2"), settle(done, 6, 7, 1, 7, "w1")),
			rule:    RuleOrder, says: "no place for: complete",
		},
		{
			name:    "a stale token extends",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 1, 8, "w2", "r2"), settle(history.Extend, 6, 7, 1, 7, "w1")),
			rule:    RuleOrder, says: "no place for: extend",
		},
		{
			name: "two claims complete a task",
			history: run(made, claimed(2, 30, 1, 7, "w1", "r1"), claimed(2, 30, 1, 8, "w2", "r2"),
				settle(done, 31, 40, 1, 8, "w2"), settle(done, 31, 40, 1, 7, "w1")),
			rule: RuleOrder, says: "no place for: complete",
		},
		{
			name:    "a repeated complete is done again",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1"), settle(done, 6, 7, 1, 7, "w1")),
			rule:    RuleOrder, says: "no place for: complete",
		},
		{
			name:    "an acknowledged submit is lost",
			history: endsWith(run(made)),
			rule:    RuleOrder, says: "the state at the end does not have it",
		},
		{
			name:    "an acknowledged complete is lost",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1")), task1("pending", 0, 1)),
			rule:    RuleOrder, says: "the state at the end has no place in it: pending",
		},
		{
			name: "an acknowledged complete is undone and done by another",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1"),
				claimed(6, 7, 1, 8, "w2", "r2"), settle(done, 8, 9, 1, 8, "w2", unknown)), task1("completed", 8, 2)),
			rule: RuleOrder, says: "no place for: claim",
		},
		{
			name: "a complete that was refused with others is done",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1", refused("refused_with_others"))),
				task1("completed", 7, 1)),
			rule: RuleOrder, says: "the state at the end has no place in it: completed",
		},
		{
			name:    "another result",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1", result("1"))), history.Task{ID: 1, Key: "a", Status: "completed", Token: 7, Attempts: 1, Result: "2"}),
			rule:    RuleOrder, says: `result "2"`,
		},
		{
			name:    "a task nobody completed is completed",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1")), task1("completed", 7, 1)),
			rule:    RuleOrder, says: "the state at the end has no place in it: completed, token 7",
		},
		{
			name:    "a drained queue that is not empty",
			history: endsWith(run(made), task1("pending", 0, 0)), drained: true,
			rule: RuleUnfinished, says: "task 1 is pending at the end",
		},
		{
			name:    "a task that was read before the queue was drained",
			history: endsWith(run(submitted(0, 1, 0, "a", unknown), but(get(2, 3, 1, "pending", 0, 0), func(o *history.Op) { o.Seen.Key = "a" })), task1("pending", 0, 0)), drained: true,
			rule: RuleUnfinished, says: "task 1 is pending at the end",
		},
		{
			name:    "a task that was claimed before the queue was drained",
			history: endsWith(run(submitted(0, 1, 0, "a", unknown), claimed(2, 3, 0, 0, "w1", "r1", unknown)), task1("pending", 0, 1)), drained: true,
			rule: RuleUnfinished, says: "task 1 is pending at the end",
		},
		{
			name:    "one key, two tasks",
			history: run(made, submitted(2, 3, 2, "a")),
			rule:    RuleKey, says: `key "a" has two tasks, 1 and 2`,
		},
		{
			name:    "one key, two tasks, seen only at the end",
			history: endsWith(run(submitted(0, 1, 1, "a", unknown), made), task1("pending", 0, 0), history.Task{ID: 2, Key: "a", Status: "pending"}),
			rule:    RuleKey, says: `key "a" has two tasks, 1 and 2`,
		},
		{
			name:    "a task created twice",
			history: run(made, submitted(2, 3, 1, "a")),
			rule:    RuleKey, says: "task 1 was created twice",
		},
		{
			name:    "a task nobody submitted",
			history: run(made, claimed(2, 3, 5, 7, "w1", "r1")),
			rule:    RuleUnsubmitted, says: "task 5",
		},
		{
			name:    "a refused submit that is there all the same",
			history: endsWith(run(submitted(0, 1, 0, "a", refused("no_leader"))), task1("pending", 0, 0)),
			rule:    RuleUnsubmitted, says: `task 1 (key "a") exists, and no submit can have made it`,
		},
		{
			name:    "a stale read of a completed task",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1"), get(6, 7, 1, "claimed", 7, 1)),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name:    "a stale read of a new task",
			history: run(made, op(history.Get, 6, 7, func(o *history.Op) { o.TaskID = 1 }, refused("task_not_found"))),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name:    "a stale read of a claim",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 1, 8, "w2", "r2"), get(6, 7, 1, "claimed", 7, 1)),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name:    "an attempt that is not counted",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 1, 8, "w2", "r2")), task1("claimed", 8, 1)),
			rule:    RuleOrder, says: "the state at the end has no place in it: claimed, token 8, 1 attempts",
		},
		{
			name: "a released claim that is counted",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(history.Release, 4, 5, 1, 7, "w1")),
				task1("pending", 0, 1)),
			rule: RuleOrder, says: "the state at the end has no place in it: pending, token 0, 1 attempts",
		},
		// What only the search for an order finds.
		{
			name:    "a claim of a completed task",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1"), claimed(6, 7, 1, 8, "w2", "r2")),
			rule:    RuleOrder, says: "no order of its 4 calls explains all their answers; the longest that fits has no place for: claim",
		},
		{
			name: "a complete after the claim was refused as stale",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1", refused("stale_claim")),
				settle(done, 6, 7, 1, 7, "w1")),
			rule: RuleOrder, says: "no place for: complete",
		},
		{
			name:    "a complete that is a repeat of nothing",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1", repeated)),
			rule:    RuleOrder, says: "no place for: complete",
		},
		{
			name: "a refusal as completed, and nobody completed it",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 1, 8, "w2", "r2"),
				settle(done, 6, 7, 1, 7, "w1", refused("task_completed"))),
			rule: RuleOrder, says: "no place for: complete",
		},
		{
			name:    "attempts that jump",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1", attempts(7, 1)), claimed(4, 5, 1, 8, "w2", "r2", attempts(8, 3))),
			rule:    RuleOrder, says: "no place for: claim",
		},
		{
			name:    "one attempt too many",
			history: run(submitted(0, 1, 1, "a", func(o *history.Op) { o.MaxAttempts = 1 }), claimed(2, 3, 1, 7, "w1", "r1"), claimed(4, 5, 1, 8, "w2", "r2")),
			rule:    RuleOrder, says: "no place for: claim",
		},
		{
			name:    "a read that goes back without any call between",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), get(4, 5, 1, "pending", 0, 1), get(6, 7, 1, "claimed", 7, 1)),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name:    "a lost claim that nobody made",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), get(4, 5, 1, "claimed", 9, 2)),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name: "a fail that is undone",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(history.Fail, 4, 5, 1, 7, "w1"),
				settle(history.Extend, 6, 7, 1, 7, "w1")),
			rule: RuleOrder, says: "no place for: extend",
		},
		{
			name:    "a claim before its task was submitted",
			history: run(submitted(10, 11, 1, "a"), claimed(2, 3, 1, 7, "w1", "r1")),
			rule:    RuleOrder, says: "no place for: claim, submit",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			judged(tc.history, tc.drained).wants(t, tc.rule, tc.says)
		})
	}
}

// findings are all that is found in a history.
type findings struct {
	Part
	h *history.History
}

// judged returns the findings of the checks for h. If its answers carry no indexes, each has a separate
// entry, in the order of their returns.
func judged(h *history.History, drained bool) (v findings) {
	if v.h = h; !slices.ContainsFunc(h.Ops, func(op history.Op) bool { return op.Index > 0 }) {
		v.h = logged(h)
	}
	for _, p := range Parts(v.h, drained) {
		v.ViolationCount += p.ViolationCount
		v.Violations = append(v.Violations, p.Violations...)
		v.Undecided = append(v.Undecided, p.Undecided...)
	}
	return v
}

func (v findings) String() string { return v.Found(v.h) }

// wants wants a violation of the rule that says that.
func (v findings) wants(t *testing.T, rule Rule, says string) {
	t.Helper()
	for _, found := range v.Violations {
		if found.Rule == rule && strings.Contains(found.Text, says) {
			return
		}
	}
	t.Errorf("want %s: %q, got:\n%s", rule, says, v)
}

// logged gives each answer of h a separate entry, in the order of their returns.
func logged(h *history.History) *history.History {
	h = &history.History{Ops: slices.Clone(h.Ops), Trail: h.Trail, Final: h.Final, Events: h.Events}
	byReturn := make([]int, len(h.Ops))
	for i := range byReturn {
		byReturn[i] = i
	}
	slices.SortStableFunc(byReturn, func(a, b int) int { return cmp.Compare(h.Ops[a].Return, h.Ops[b].Return) })
	for n, i := range byReturn {
		if h.Ops[i].Outcome != history.Unknown {
			h.Ops[i].Index = uint64(n + 1)
		}
	}
	return h
}

// Each of these looks odd and is right.
func TestCheck_oddHistories(t *testing.T) {
	t.Parallel()
	made := submitted(0, 1, 1, "a")
	done := history.Complete
	for _, tc := range []struct {
		name    string
		history *history.History
		drained bool
	}{
		{
			name:    "a submit that was lost and repeated",
			history: endsWith(run(submitted(0, 1, 0, "a", unknown), submitted(2, 3, 1, "a", repeated)), task1("pending", 0, 0)),
		},
		{
			name:    "a submit that nobody was answered",
			history: endsWith(run(submitted(0, 1, 0, "a", unknown)), task1("pending", 0, 0)),
		},
		{
			name:    "a submit of unknown outcome that takes effect once the queue was drained",
			history: endsWith(run(submitted(0, 1, 0, "a", unknown)), task1("pending", 0, 0)), drained: true,
		},
		{
			name:    "a parent that comes once the queue was drained",
			history: endsWith(run(submitted(0, 1, 0, "a", unknown, planned)), task1("running", 0, 0), history.Task{ID: 2, Status: "pending", ParentID: 1}), drained: true,
		},
		{
			name:    "a submit that never happened",
			history: endsWith(run(submitted(0, 1, 0, "a", unknown))),
		},
		{
			name: "a claim whose answer was lost takes effect late",
			history: endsWith(run(made, claimed(2, 3, 0, 0, "w1", "r1", unknown), claimed(4, 5, 1, 7, "w2", "r2", attempts(7, 2)),
				settle(done, 6, 7, 1, 7, "w2")), task1("completed", 7, 2)),
		},
		{
			name:    "a repeated claim tells what the lost answer would have",
			history: run(made, claimed(2, 3, 0, 0, "w1", "r1", unknown), claimed(4, 5, 1, 7, "w1", "r1", repeated), settle(done, 6, 7, 1, 7, "w1")),
		},
		{
			name:    "a complete whose answer was lost",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1", unknown)), task1("completed", 7, 1)),
		},
		{
			name: "a complete that took effect after its caller had given up",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1", unknown), get(6, 7, 1, "claimed", 7, 1),
				get(8, 9, 1, "completed", 7, 1)),
		},
		{
			name: "a lost complete, expired instead",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1", unknown), claimed(6, 7, 1, 8, "w2", "r2"),
				settle(done, 8, 9, 1, 7, "w1", refused("wrong_worker"))),
		},
		{
			name: "a late release that is repeated while another holds the task",
			history: run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(history.Release, 4, 5, 1, 7, "w1"), claimed(6, 7, 1, 8, "w2", "r2", attempts(8, 1)),
				settle(history.Release, 8, 9, 1, 7, "w1", repeated), settle(done, 10, 11, 1, 8, "w2")),
		},
		{
			name: "a key that is free after a delete",
			history: endsWith(run(made, claimed(2, 3, 1, 7, "w1", "r1"), settle(done, 4, 5, 1, 7, "w1"),
				op(history.Delete, 6, 7, func(o *history.Op) { o.TaskID = 1 }), submitted(8, 9, 2, "a")), history.Task{ID: 2, Key: "a", Status: "pending"}),
		},
		{
			name: "the last attempt fails, and a retry brings the task back",
			history: run(submitted(0, 1, 1, "a", func(o *history.Op) { o.MaxAttempts = 1 }), claimed(2, 3, 1, 7, "w1", "r1"),
				settle(history.Fail, 4, 5, 1, 7, "w1"), get(6, 7, 1, "failed", 7, 1),
				op(history.Retry, 8, 9, func(o *history.Op) { o.TaskID = 1 }), claimed(10, 11, 1, 8, "w1", "r2", attempts(8, 2))),
		},
		{
			name: "claim by id, twice by the same worker",
			history: run(made, op(history.ClaimTask, 2, 3, func(o *history.Op) { o.TaskID, o.Token, o.Worker, o.RequestID = 1, 7, "w1", "a" }),
				op(history.ClaimTask, 4, 5, func(o *history.Op) { o.TaskID, o.Token, o.Worker, o.RequestID, o.Repeated = 1, 7, "w1", "b", true }),
				op(history.ClaimTask, 6, 7, func(o *history.Op) { o.TaskID, o.Worker, o.RequestID = 1, "w2", "c" }, refused("task_already_claimed"))),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if report := judged(tc.history, tc.drained); !report.OK() {
				t.Errorf("got:\n%s", report)
			}
		})
	}
}

// A task whose search ran out of time does not pass, nor does one violation
// more than is printed.
func TestPart_OK(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		part Part
		want bool
	}{
		{Part{}, true},
		{Part{Undecided: []uint64{1}}, false},
		{Part{ViolationCount: 1}, false},
	} {
		if got := tc.part.OK(); got != tc.want {
			t.Errorf("%+v: got %v, want %v", tc.part, got, tc.want)
		}
	}
	lost := run()
	for id := uint64(1); id <= violationsMax+1; id++ {
		lost.Ops = append(lost.Ops, but(submitted(0, 1, id, fmt.Sprint(id)), func(o *history.Op) { o.Process = int(id) }))
	}
	h := logged(endsWith(lost))
	witness := Parts(h, false)[1]
	if len(witness.Violations) != violationsMax || witness.ViolationCount != violationsMax+1 || !strings.Contains(witness.Found(h), "... and 1 more") {
		t.Errorf("one more task is lost than is kept: got\n%s", witness.Found(h))
	}
}

package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// A parent of two steps, the second of which depends on the first: tasks 1, 2, 3.
func chain(byClaim, goOn bool) *history.Plan {
	return &history.Plan{Steps: []history.Step{{Name: "a"}, {Name: "b", DependsOn: []int{0}}}, ByClaim: byClaim, Continue: goOn}
}

func parent(p *history.Plan) history.Op {
	return submitted(0, 1, 1, "a", func(o *history.Op) { o.Plan = p })
}

func finalizing(kind history.Kind, call, ret int64, worker string, steps ...step) history.Op {
	return op(kind, call, ret, append([]step{func(o *history.Op) { o.TaskID, o.Worker, o.Done = 1, worker, true }}, steps...)...)
}

func token(n uint64) step { return func(o *history.Op) { o.Token = n } }

func notDone(o *history.Op) { o.Done, o.Token = false, 0 }

// toldEnd is the answer of a finalize: what was asked for was done by by.
func toldEnd(goal, by string) step {
	return func(o *history.Op) {
		o.Goal, o.Action = goal, goal
		o.Repeated = !o.Done
		o.Seen = &history.Task{ID: 1, Status: goal, Worker: by}
	}
}

// shown is a read of the parent.
func shown(call, ret int64, status, by string, steps ...string) history.Op {
	return op(history.Get, call, ret, func(o *history.Op) {
		o.TaskID, o.Seen = 1, &history.Task{ID: 1, Status: status, Worker: by, Steps: steps}
	})
}

// ofParent has the answer show whose step it is.
func ofParent(o *history.Op) {
	o.Seen = &history.Task{ID: o.TaskID, Status: "claimed", Token: o.Token, Attempts: 1, ParentID: 1}
}

// work is the calls that complete both steps, until 8.
func work() []history.Op {
	return []history.Op{
		claimed(2, 3, 2, 7, "w", "r1"), settle(history.Complete, 3, 4, 2, 7, "w", result("1")),
		claimed(5, 6, 3, 8, "w", "r2"), settle(history.Complete, 7, 8, 3, 8, "w", result("2")),
	}
}

// held is the state at the end of both steps completed.
func held(status, by, result string) []history.Task {
	return []history.Task{
		{ID: 1, Key: "a", Status: status, Worker: by, Result: result},
		{ID: 2, Status: "completed", Token: 7, Attempts: 1, Worker: "w", Result: "1", ParentID: 1},
		{ID: 3, Status: "completed", Token: 8, Attempts: 1, Worker: "w", Result: "2", ParentID: 1},
	}
}

// with is a history of the parent, the work on it, and more.
func with(p *history.Plan, more ...history.Op) *history.History {
	return run(append(append([]history.Op{parent(p)}, work()...), more...)...)
}

const both = `{"a":1,"b":2}`

// Each of these could not have happened, and the report says why.
func TestCheck_badParents(t *testing.T) {
	t.Parallel()
	claim, extend, release, finalize := history.ClaimFinalization, history.ExtendFinalization, history.ReleaseFinalization, history.Finalize
	for _, tc := range []struct {
		name    string
		history *history.History
		rule    Rule
		says    string
	}{
		{
			name: "two have the finalization",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)),
				finalizing(claim, 500, 501, "q", token(10), lease(1000))),
			rule: RuleFinalizers, says: "claims overlap: token 10 was handed to q by 0.501000s, and p held token 9 until 1.0",
		},
		{
			name: "two have the finalization, which was extended",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(100)), finalizing(extend, 50, 51, "p", lease(1000)),
				finalizing(claim, 500, 501, "q", token(10), lease(100))),
			rule: RuleFinalizers, says: "claims overlap",
		},
		{
			name: "two have the finalization, which was claimed again",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(100)), finalizing(claim, 50, 51, "p", token(9), lease(1000), repeated),
				finalizing(claim, 500, 501, "q", token(10), lease(100))),
			rule: RuleFinalizers, says: "claims overlap",
		},
		{
			name: "a holder whose extend is refused",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)),
				finalizing(extend, 500, 501, "p", lease(1000), notDone)),
			rule: RuleFinalizers, says: "the lease of token 9 ended early",
		},
		{
			name: "a holder whose release is refused",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)),
				finalizing(release, 500, 501, "p", notDone)),
			rule: RuleFinalizers, says: "ended early",
		},
		{
			name: "a holder that may not finalize",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)),
				finalizing(finalize, 500, 501, "p", token(9), refused("stale_claim"))),
			rule: RuleFinalizers, says: "ended early",
		},
		{
			name: "another finalizes although it is held",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)),
				finalizing(finalize, 500, 501, "q", toldEnd("completed", "q"))),
			rule: RuleFinalizers, says: "q finalized it, although p held token 9",
		},
		{
			name: "an old token finalizes",
			history: with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(100)), finalizing(claim, 500, 501, "q", token(10), lease(100)),
				finalizing(finalize, 700, 701, "p", token(9), toldEnd("completed", "p"))),
			rule: RuleFinalizers, says: "finalized with token 9 after token 10",
		},
		{
			name: "two finalizers both do it",
			history: with(chain(true, false), finalizing(finalize, 10, 20, "p", toldEnd("completed", "p")),
				finalizing(finalize, 10, 20, "q", toldEnd("completed", "p"))),
			rule: RuleOrder, says: "no place for: finalize",
		},
		{
			name: "two finalizers do it, each its own",
			history: with(chain(true, false), finalizing(finalize, 10, 20, "p", toldEnd("completed", "p")),
				finalizing(finalize, 10, 20, "q", toldEnd("completed", "q"))),
			rule: RuleOrder, says: "no place for: finalize",
		},
		{
			name:    "a parent that another has ended, too",
			history: with(chain(true, false), shown(10, 11, "completed", "p"), shown(12, 13, "completed", "q")),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name: "two are told different ends",
			history: with(chain(true, false), finalizing(finalize, 10, 20, "p", toldEnd("completed", "p")),
				finalizing(finalize, 30, 40, "q", notDone, toldEnd("failed", "q"))),
			rule: RuleOrder, says: "no place for: finalize",
		},
		{
			name:    "ended as nobody asked",
			history: with(chain(true, false), finalizing(finalize, 10, 20, "p", toldEnd("failed", "p"), func(o *history.Op) { o.Goal = "completed" })),
			rule:    RuleOrder, says: "no place for: finalize",
		},
		{
			name:    "a processor ends a parent that ends by itself",
			history: with(chain(false, false), finalizing(finalize, 10, 20, "p", toldEnd("completed", "p"))),
			rule:    RuleOrder, says: "no place for: finalize",
		},
		{
			name:    "a parent that changes after its end",
			history: with(chain(true, false), shown(10, 11, "completed", "p"), shown(12, 13, "failed", "q")),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name:    "a parent that runs again, and nobody retried it",
			history: with(chain(true, false), shown(10, 11, "failed", "p"), shown(12, 13, "running", "")),
			rule:    RuleOrder, says: "no place for: get",
		},
		{
			name:    "a stuck parent",
			history: endsWith(with(chain(false, false)), held("running", "", "")...),
			rule:    RuleUnfinished, says: "task 1 is running at the end",
		},
		{
			name:    "a lost step",
			history: endsWith(with(chain(false, false)), held("completed", "", both)[:2]...),
			rule:    RuleOrder, says: "task 3",
		},
		{
			name: "a step that is cancelled although nothing failed",
			history: run(parent(chain(false, false)), op(history.Get, 2, 3, func(o *history.Op) {
				o.TaskID, o.Seen = 3, &history.Task{ID: 3, Status: "cancelled", ParentID: 1}
			})),
			rule: RuleOrder, says: "no place for: get",
		},
		{
			name:    "a step that is claimed after it was done",
			history: with(chain(false, false), claimed(10, 11, 2, 9, "v", "r3")),
			rule:    RuleOrder, says: "no place for: claim",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			judged(tc.history, tc.history.Final != nil).wants(t, tc.rule, tc.says)
		})
	}
}

// Each of these may be.
func TestCheck_goodParents(t *testing.T) {
	t.Parallel()
	claim, extend, release, finalize := history.ClaimFinalization, history.ExtendFinalization, history.ReleaseFinalization, history.Finalize
	failing := []history.Op{claimed(2, 3, 2, 7, "w", "r1"), settle(history.Fail, 4, 5, 2, 7, "w")}
	limited := chain(false, false)
	limited.Steps[0].MaxAttempts = 1
	alone := &history.Plan{Steps: []history.Step{{Name: "a", MaxAttempts: 1}, {Name: "b"}}, Continue: true}
	for _, tc := range []struct {
		name    string
		history *history.History
	}{
		{"it ends by itself", endsWith(with(chain(false, false), shown(10, 11, "completed", "", "completed", "completed")), held("completed", "", both)...)},
		{
			"a processor ends it, and another is told", endsWith(with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)),
				finalizing(claim, 12, 13, "q", notDone), finalizing(finalize, 14, 15, "q", refused("task_already_claimed")),
				finalizing(finalize, 16, 17, "p", token(9), toldEnd("failed", "p")), finalizing(finalize, 18, 19, "q", notDone, toldEnd("failed", "p")),
				finalizing(release, 20, 21, "p")), held("failed", "p", "")...),
		},
		{
			"a processor dies, and the next has it at the timeout", with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)),
				finalizing(claim, 1100, 1101, "q", token(10), lease(1000)), finalizing(finalize, 1200, 1201, "p", token(9), refused("task_already_claimed")),
				finalizing(extend, 1202, 1203, "p", lease(1000), notDone), finalizing(finalize, 1204, 1205, "q", token(10), toldEnd("completed", "q"))),
		},
		{
			"a processor gives it back", with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)), finalizing(release, 12, 13, "p"),
				finalizing(claim, 14, 15, "q", token(10), lease(1000)), finalizing(extend, 16, 17, "p", lease(1000), notDone)),
		},
		{
			"a release of unknown outcome", with(chain(true, false), finalizing(claim, 10, 11, "p", token(9), lease(1000)), finalizing(release, 12, 13, "p", unknown),
				finalizing(claim, 14, 15, "q", token(10), lease(1000))),
		},
		{
			"a finalize of unknown outcome, repeated", with(chain(true, false), finalizing(finalize, 10, 11, "p", unknown),
				finalizing(finalize, 12, 13, "p", notDone, toldEnd("completed", "p"))),
		},
		{
			"without a claim, all at once", with(chain(true, false), finalizing(finalize, 10, 20, "q", toldEnd("completed", "q")),
				finalizing(finalize, 10, 20, "p", notDone, toldEnd("completed", "q")), finalizing(finalize, 10, 20, "r", notDone, toldEnd("completed", "q"))),
		},
		{
			"a step that failed is retried, and its parent runs again", run(
				parent(alone), claimed(2, 3, 3, 7, "w", "r1"), settle(history.Complete, 4, 5, 3, 7, "w"),
				claimed(6, 7, 2, 8, "w", "r2"), settle(history.Fail, 8, 9, 2, 8, "w"), shown(10, 11, "completed", ""),
				op(history.Retry, 12, 13, func(o *history.Op) { o.TaskID = 2 }), shown(14, 15, "running", ""),
			),
		},
		{
			"a processor holds a parent that ends by itself and runs again for a retried step", run(
				parent(alone), claimed(2, 3, 3, 7, "w", "r1"), settle(history.Complete, 4, 5, 3, 7, "w"),
				claimed(6, 7, 2, 8, "w", "r2"), finalizing(claim, 7, 8, "p", token(9), lease(1000)), settle(history.Fail, 8, 9, 2, 8, "w"),
				op(history.Retry, 12, 13, func(o *history.Op) { o.TaskID = 2 }), finalizing(claim, 14, 15, "q", token(10), lease(1000)),
			),
		},
		{
			"a step fails, and takes the other along", endsWith(run(append([]history.Op{parent(limited)}, failing...)...),
				history.Task{ID: 1, Key: "a", Status: "failed"},
				history.Task{ID: 2, Status: "failed", Token: 7, Attempts: 1, Worker: "w", ParentID: 1},
				history.Task{ID: 3, Status: "cancelled", ParentID: 1}),
		},
		{
			"a parent that no answer shows", run(submitted(0, 1, 0, "a", unknown, func(o *history.Op) { o.Plan = chain(false, false) }),
				claimed(2, 3, 2, 7, "w", "r1", ofParent), settle(history.Complete, 4, 5, 2, 7, "w"),
				op(history.Retry, 6, 7, func(o *history.Op) { o.TaskID = 1 }, refused("task_completed"))),
		},
		{
			"a parent that is retried", endsWith(run(append(append([]history.Op{parent(limited)}, failing...),
				shown(10, 11, "failed", "", "failed", "cancelled"),
				op(history.Retry, 12, 13, func(o *history.Op) {
					o.TaskID, o.Seen = 1, &history.Task{ID: 1, Status: "running", Steps: []string{"pending", "blocked"}}
				}),
				claimed(14, 15, 2, 9, "w", "r2"), settle(history.Complete, 16, 17, 2, 9, "w", result("1")),
				claimed(18, 19, 3, 10, "w", "r3"), settle(history.Complete, 20, 21, 3, 10, "w", result("2")),
				shown(22, 23, "completed", "", "completed", "completed"))...),
				history.Task{ID: 1, Key: "a", Status: "completed", Result: both},
				history.Task{ID: 2, Status: "completed", Token: 9, Attempts: 2, Worker: "w", Result: "1", ParentID: 1},
				history.Task{ID: 3, Status: "completed", Token: 10, Attempts: 1, Worker: "w", Result: "2", ParentID: 1}),
		},
		{
			"a parent that is deleted, with its steps", endsWith(with(chain(false, false), op(history.Delete, 10, 11, func(o *history.Op) { o.TaskID = 1 }),
				op(history.Get, 12, 13, func(o *history.Op) { o.TaskID = 3 }, refused("task_not_found")))),
		},
		{
			"a step that is not deleted by itself", with(chain(false, false),
				op(history.Delete, 10, 11, func(o *history.Op) { o.TaskID = 2 }, refused("task_not_terminal"))),
		},
		{
			"a complete of unknown outcome unblocks", run(parent(chain(false, false)), claimed(2, 3, 2, 7, "w", "r1"),
				settle(history.Complete, 4, 5, 2, 7, "w", unknown), claimed(6, 7, 3, 8, "v", "r2")),
		},
		{
			"a submit that nobody was answered, and its steps", run(submitted(0, 1, 0, "a", unknown, func(o *history.Op) { o.Plan = chain(false, false) }),
				claimed(2, 3, 2, 7, "w", "r1", func(o *history.Op) {
					o.Seen = &history.Task{ID: 2, Status: "claimed", Token: 7, Attempts: 1, ParentID: 1}
				})),
		},
		{
			"the same, and the state at the end knows", endsWith(run(append([]history.Op{
				submitted(0, 1, 0, "a", unknown, func(o *history.Op) { o.Plan = chain(false, false) }),
			}, work()...)...), held("completed", "", both)...),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if report := judged(tc.history, false); !report.OK() {
				t.Errorf("got:\n%s", report)
			}
		})
	}
}

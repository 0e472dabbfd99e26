package check

import (
	"strings"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

func cancel(call, ret int64, steps ...step) history.Op {
	return op(history.Cancel, call, ret, append([]step{func(o *history.Op) { o.TaskID = 1 }}, steps...)...)
}

// act is an action on all tasks of type t.
func act(call, ret int64, action history.Kind, steps ...step) history.Op {
	return op(history.Act, call, ret, append([]step{func(o *history.Op) { o.TaskType, o.Action = "t", string(action) }}, steps...)...)
}

func status(name string) step  { return func(o *history.Op) { o.Status = name } }
func more(o *history.Op)       { o.More = true }
func waiting(ms int64) step    { return func(o *history.Op) { o.WaitMS = ms } }
func typed(o *history.Op)      { o.TaskType = "t" }
func cancelling(o *history.Op) { o.Seen.Cancelling = true }

func but(o history.Op, steps ...step) history.Op {
	for _, s := range steps {
		s(&o)
	}
	return o
}

// What cancels, actions on many and reads that wait may lead to, and what not.
func TestCheck_cancels(t *testing.T) {
	t.Parallel()
	made := submitted(0, 1, 1, "a", typed)
	held := claimed(2, 3, 1, 7, "w", "r", lease(60_000))
	for _, tc := range []struct {
		name string
		ops  []history.Op
		says string // "" = it passes
	}{
		{"a pending task is cancelled", []history.Op{made, cancel(2, 3), get(4, 5, 1, "cancelled", 0, 0)}, ""},
		{"a cancel is lost", []history.Op{made, cancel(2, 3), get(4, 5, 1, "pending", 0, 0)}, "no order"},
		{"a task is claimed after its cancel", []history.Op{made, cancel(2, 3), claimed(4, 5, 1, 7, "w", "r")}, "no order"},
		{"nobody asked for it", []history.Op{made, get(4, 5, 1, "cancelled", 0, 0)}, "no order"},
		{"a cancel of unknown outcome", []history.Op{made, cancel(2, 3, unknown), get(4, 5, 1, "pending", 0, 0), get(6, 7, 1, "cancelled", 0, 0)}, ""},
		{"cancelled and retried", []history.Op{made, cancel(2, 3), op(history.Retry, 4, 5, func(o *history.Op) { o.TaskID = 1 }), get(6, 7, 1, "pending", 0, 0)}, ""},
		{"a claimed task is asked", []history.Op{made, held, cancel(4, 5), but(get(6, 7, 1, "claimed", 7, 1), cancelling)}, ""},
		{"a claimed task is not shown as asked", []history.Op{made, held, cancel(4, 5), get(6, 7, 1, "claimed", 7, 1)}, "no order"},
		{"a claimed task is shown as asked", []history.Op{made, held, but(get(6, 7, 1, "claimed", 7, 1), cancelling)}, "no order"},
		{"it counts when it completes", []history.Op{made, held, cancel(4, 5), settle(history.Complete, 6, 7, 1, 7, "w"), get(8, 9, 1, "completed", 7, 1)}, ""},
		{"released after that it is cancelled", []history.Op{made, held, cancel(4, 5), settle(history.Release, 6, 7, 1, 7, "w"), get(8, 9, 1, "cancelled", 7, 0)}, ""},
		{"released after that it is pending", []history.Op{made, held, cancel(4, 5), settle(history.Release, 6, 7, 1, 7, "w"), get(8, 9, 1, "pending", 0, 0)}, "no order"},
		{"failed after that it is pending", []history.Op{made, held, cancel(4, 5), settle(history.Fail, 6, 7, 1, 7, "w"), get(8, 9, 1, "pending", 0, 1)}, "no order"},
		{"asked twice", []history.Op{made, held, cancel(4, 5), cancel(6, 7, repeated)}, ""},
		{"told to be asked twice", []history.Op{made, held, cancel(6, 7, repeated)}, "no order"},
		{"completed before", []history.Op{made, held, settle(history.Complete, 4, 5, 1, 7, "w"), cancel(6, 7, refused("task_completed"))}, ""},
		{"refused as completed", []history.Op{made, held, cancel(6, 7, refused("task_completed"))}, "no order"},

		{"all are cancelled", []history.Op{made, act(2, 3, history.Cancel), get(4, 5, 1, "cancelled", 0, 0)}, ""},
		{"one is left out", []history.Op{made, act(2, 3, history.Cancel), get(4, 5, 1, "pending", 0, 0)}, "no order"},
		{"one is left for the next call", []history.Op{made, act(2, 3, history.Cancel, more), get(4, 5, 1, "pending", 0, 0)}, ""},
		{"it was submitted meanwhile", []history.Op{submitted(0, 3, 1, "a", typed), act(2, 4, history.Cancel), get(5, 6, 1, "pending", 0, 0)}, ""},
		{"another type", []history.Op{made, act(2, 3, history.Cancel, func(o *history.Op) { o.TaskType = "u" }), get(4, 5, 1, "cancelled", 0, 0)}, "no order"},
		{"claimed ones are asked", []history.Op{made, held, act(4, 5, history.Cancel), but(get(6, 7, 1, "claimed", 7, 1), cancelling)}, ""},
		{"claimed ones are left out", []history.Op{made, held, act(4, 5, history.Cancel), get(6, 7, 1, "claimed", 7, 1)}, "no order"},
		{"claimed ones do not match", []history.Op{made, held, act(4, 5, history.Cancel, status("pending")), get(6, 7, 1, "claimed", 7, 1)}, ""},
		{"claimed ones do not match, and are asked", []history.Op{made, held, act(4, 5, history.Cancel, status("pending")), but(get(6, 7, 1, "claimed", 7, 1), cancelling)}, "no order"},
		{"one that may wait for its time does not match", []history.Op{made, act(2, 3, history.Cancel, status("pending")), get(4, 5, 1, "pending", 0, 0)}, ""},
		{"retried with others", []history.Op{made, cancel(2, 3), act(4, 5, history.Retry, status("cancelled")), get(6, 7, 1, "pending", 0, 0)}, ""},
		{"deleted with others", []history.Op{made, cancel(2, 3), act(4, 5, history.Delete, status("cancelled")), op(history.Get, 6, 7, func(o *history.Op) { o.TaskID = 1 }, refused("task_not_found"))}, ""},
		{"deleted with those that completed", []history.Op{made, cancel(2, 3), act(4, 5, history.Delete, status("completed")), op(history.Get, 6, 7, func(o *history.Op) { o.TaskID = 1 }, refused("task_not_found"))}, "no order"},
		{"an action of unknown outcome", []history.Op{made, act(2, 3, history.Cancel, unknown), get(4, 5, 1, "pending", 0, 0), get(6, 7, 1, "cancelled", 0, 0)}, ""},

		{"a read waits", []history.Op{made, but(get(2, 110, 1, "pending", 0, 0), waiting(100))}, ""},
		{"a read does not wait", []history.Op{made, but(get(2, 90, 1, "pending", 0, 0), waiting(100))}, "by a read that waits 100 ms"},
		{"a read need not wait for an end that has come", []history.Op{made, cancel(2, 3), but(get(4, 5, 1, "cancelled", 0, 0), waiting(100))}, ""},
		{"a read does not look at the end of its wait", []history.Op{made, cancel(4, 5), but(get(2, 110, 1, "pending", 0, 0), waiting(100))}, "no order"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			report := judged(run(tc.ops...), false)
			if report.OK() != (tc.says == "") || !strings.Contains(report.String(), tc.says) {
				t.Errorf("got:\n%s", report)
			}
		})
	}
}

package fsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// outcomes shows the outcome of a batch's ops.
func outcomes(r Result) string {
	s := string(r.Code)
	if r.Code != "" {
		s += fmt.Sprintf(" at %d", r.FailedOp)
	}
	for _, op := range r.Results {
		s += fmt.Sprintf("[%s]", outcome(op))
	}
	return s
}

func (h *harness) batch(want string, atomic bool, ops ...command.Command) Result {
	h.t.Helper()
	r := h.do(command.Batch{Atomic: atomic, Ops: ops})
	if got := outcomes(r); got != want {
		h.t.Errorf("got %q, want %q", got, want)
	}
	mustCheck(h.t, h.m)
	return r
}

// TestBatch_OpsSeeWhatWasBefore ensures that ops are applied in order, each
// with what the earlier ones have done, and that a refusal is only its own.
func TestBatch_OpsSeeWhatWasBefore(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	for _, atomic := range []bool{false, true} {
		last := h.m.header
		h.batch(fmt.Sprintf("[ +%d true][ claim %d/%d true][]", last.NextID, last.NextID, last.NextToken), atomic,
			command.Submit{Tasks: []record.NewTask{{Type: "scan"}}},
			command.ClaimNext{WorkerID: "w2", Types: []string{"scan"}, Limit: 1},
			command.Complete{Hold: command.Hold{ID: last.NextID, WorkerID: "w2", Token: last.NextToken}},
		)
	}
	h.batch("[wrong_worker][][ repeated][task_not_found][task_not_found][][]", false,
		command.Fail{Hold: command.Hold{ID: 1, WorkerID: "w2", Token: 1}},
		command.Complete{Hold: hold},
		command.Complete{Hold: hold},
		command.Release{Hold: command.Hold{ID: 99, WorkerID: "w1", Token: 1}},
		command.Retry{ID: 99},
		command.ClaimNext{WorkerID: "w1", Limit: 1},
		command.Delete{ID: 1},
	)
	if h.m.Get(1) != nil {
		t.Error("task 1 was not deleted")
	}
}

// TestBatch_AtomicRefusals ensures which answers undo an atomic batch, and what
// its answer says.
func TestBatch_AtomicRefusals(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	h.submit(1, record.NewTask{Type: "mail", Key: "k"})
	wrong := command.Hold{ID: 1, WorkerID: "w2", Token: 1}
	for _, test := range []struct {
		want string
		op   command.Command
	}{
		{"no_pending_tasks at 2", command.ClaimNext{WorkerID: "w1", Types: []string{"none"}, Limit: 1}},
		{"wrong_worker at 2", command.Complete{Hold: wrong}},
		{"wrong_worker at 2", command.Extend{Hold: wrong}},
		{"task_not_found at 2", command.Cancel{ID: 99}},
		{"task_not_terminal at 2", command.Delete{ID: 2}},
	} {
		before := snapshotOf(t, h.m)
		index := h.m.header.Index
		r := h.batch(test.want, true, command.Submit{Tasks: []record.NewTask{{Type: "mail"}}}, command.Extend{Hold: hold, LeaseMS: 90_000}, test.op)
		if r.Results != nil || r.Task == nil != (r.Code == CodeNoPendingTasks || r.Code == CodeTaskNotFound) {
			t.Errorf("%T: got %+v", test.op, r)
		}
		h.m.header.Index = index // the only thing that may differ
		if !bytes.Equal(snapshotOf(t, h.m), before) {
			t.Errorf("%T: the batch was refused, the state changed", test.op)
		}
	}
	// A taken key, a repeat and a next claim that finds nothing are no refusals.
	h.batch("[ +2 false][][ repeated]", true,
		command.Submit{Tasks: []record.NewTask{{Type: "mail", Key: "k"}}},
		command.Complete{Hold: hold, Claim: nextOf("none")},
		command.Complete{Hold: hold, Claim: nextOf("none")},
	)
}

// TestBatch_AtomicTellsTheLeaderOfWhatStayed ensures that timers and those who
// wait hear nothing of what was undone.
func TestBatch_AtomicTellsTheLeaderOfWhatStayed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(command.SetLevel{Level: 1})
	apply := func(commands ...command.Command) Applied {
		return mustApplyTo(t, h.m, testEntry{Index: h.m.Index() + 1, Stamp: h.stamp, Commands: commands})
	}
	submit := func(types ...string) command.Command {
		var c command.Submit
		for _, name := range types {
			c.Tasks = append(c.Tasks, record.NewTask{Type: name})
		}
		return c
	}
	a := apply(
		submit("mail", "scan"), command.ClaimTask{ID: 1, WorkerID: "w1"},
		command.Batch{Atomic: true, Ops: []command.Command{submit("mail"), submit("video"), command.ClaimNext{WorkerID: "w1", Limit: 1}, command.Delete{ID: 99}}},
		submit("scan"), command.ClaimTask{ID: 2, WorkerID: "w1"},
	)
	if len(a.Leases) != 2 || a.Leases[0].Token != 1 || a.Leases[1].Token != 2 {
		t.Errorf("leases %+v, want those of tokens 1 and 2", a.Leases)
	}
	if diff := cmp.Diff([]ReadyTasks{{Type: "mail", Count: 1}, {Type: "scan", Count: 2}}, a.Ready); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

// TestBatch_UndoneClaimsLeaveTheBucket ensures that what was taken out of a rate
// limit's bucket is back, and opens the type to tasks that no op touched.
func TestBatch_UndoneClaimsLeaveTheBucket(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(command.SetLevel{Level: 1})
	h.do(command.SetType{Type: "mail", Set: record.TypeRateLimit, Settings: record.TypeSettings{RateLimit: 500_000}})
	h.submit(1, record.NewTask{Type: "mail"})
	h.batch("task_not_found at 2", true,
		command.Submit{Tasks: []record.NewTask{{Type: "mail", Priority: 9}}}, command.ClaimNext{WorkerID: "w1", Limit: 1}, command.Delete{ID: 99})
	h.expect(*nextOf("mail"), " claim 1/1 true")
	h.submit(1, record.NewTask{Type: "mail"})
	h.expect(*nextOf("mail"), "")
}

// TestBatch_UndoneEndsAreForgotten ensures that a task which an undone op ended,
// to be gone at once, is not removed for that: it ended before, and is due to be
// removed by a tick.
func TestBatch_UndoneEndsAreForgotten(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	h.do(command.SetType{Type: "mail", Set: record.TypeRetention, Settings: record.TypeSettings{RetentionMS: 1000}})
	h.do(command.Fail{Hold: hold, Permanent: true})
	h.do(command.SetType{Type: "mail", Set: record.TypeRetention, Settings: record.TypeSettings{RetentionMS: record.KeepNone}})
	h.stamp.T += 1000
	h.batch("task_not_found at 3", true,
		command.Retry{ID: 1}, command.ClaimNext{WorkerID: "w1", Limit: 1}, command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w1"}}, command.Delete{ID: 99})
	if got := h.m.Get(1); got == nil || got.Status != record.StatusFailed {
		t.Errorf("task 1 is %+v", got)
	}
}

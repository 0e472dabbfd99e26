package fsm

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// Every event of the last minute counts, those of the slot that is partly
// outside by the part that is inside.
func TestTypeRates(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		var r typeRates
		var times []int64
		now := rapid.Int64Range(0, 200_000).Draw(t, "start")
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += rapid.OneOf(rapid.Int64Range(0, 3000), rapid.Int64Range(0, 100_000)).Draw(t, "pause")
			r.add(rateCompleted, now)
			times = append(times, now)
			asked := now + rapid.Int64Range(0, 80_000).Draw(t, "later")
			weight := int64(0)
			for _, at := range times {
				switch slots := asked/5000 - at/5000; {
				case slots < 12:
					weight += 5000
				case slots == 12:
					weight += 5000 - asked%5000
				}
			}
			want := weight * 1_000_000 / 5000 / 60
			if got := r.at(asked); got[rateCompleted] != want || got[rateSubmitted] != 0 || got[rateFailed] != 0 {
				t.Fatalf("at %d: %v, want %d completed, of %v", asked, got, want, times)
			}
		}
	})
}

func TestRates(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	want := func(when string, submitted, completed, failed int64) {
		t.Helper()
		v, _ := h.m.Type("mail", h.stamp)
		if got := [3]int64{v.SubmittedPerS, v.CompletedPerS, v.FailedPerS}; got != [3]int64{submitted, completed, failed} {
			t.Errorf("%s: rates are %v, want %v", when, got, [3]int64{submitted, completed, failed})
		}
	}
	h.stamp.T += rateSlotMS - h.stamp.T%rateSlotMS
	begun := h.stamp
	h.submit(60, record.NewTask{Type: "mail", MaxAttempts: 1})
	want("submitted", 1_000_000, 0, 0)
	c := h.claims("mail", 10, 10)
	for _, x := range c[:6] {
		h.do(command.Complete{Hold: command.Hold{ID: x.Task.ID, WorkerID: x.Task.WorkerID}})
	}
	for _, x := range c[6:9] {
		h.do(command.Fail{Hold: command.Hold{ID: x.Task.ID, WorkerID: x.Task.WorkerID}})
	}
	h.do(command.Release{Hold: command.Hold{ID: c[9].Task.ID, WorkerID: c[9].Task.WorkerID}})
	want("ended", 1_000_000, 100_000, 50_000)
	// Neither an attempt that is not the last nor a cancelled task counts as a failure.
	h.do(command.Cancel{ID: 60})
	h.do(command.Retry{ID: c[6].Task.ID, AddAttempts: 1})
	want("retried", 1_000_000, 100_000, 50_000)
	// An atomic batch that is undone was never there.
	undone := func(ops ...command.Command) {
		t.Helper()
		if r := h.do(command.Batch{Atomic: true, Ops: append(ops, command.Delete{ID: 999})}); r.Code != CodeTaskNotFound {
			t.Fatalf("the batch: %+v", r)
		}
		mustCheck(t, h.m)
	}
	undone(command.Submit{Tasks: []record.NewTask{{Type: "mail"}}}, command.Cancel{ID: 50}, command.Delete{ID: 50})
	want("undone", 1_000_000, 100_000, 50_000)
	// Also if nothing is left of the type in the midst of it.
	h.submit(1, record.NewTask{Type: "scan"})
	undone(command.Cancel{ID: 61}, command.Delete{ID: 61})
	if v, _ := h.m.Type("scan", h.stamp); v.SubmittedPerS != 16_666 {
		t.Errorf("undone, the rate of the other type is %d", v.SubmittedPerS)
	}
	// Results are the same on all nodes, so rates are not in them.
	if v := h.set("mail", record.TypePaused, record.TypeSettings{Paused: true}); v.SubmittedPerS != 0 {
		t.Errorf("a result has rates: %+v", v)
	}
	h.do(command.Cancel{ID: 61})
	h.do(command.Delete{ID: 61})
	h.submit(1, record.NewTask{Type: "scan"})
	h.do(command.Cancel{ID: 62})
	h.do(command.Delete{ID: 62}) // and the type goes
	h.stamp.T += 30_000
	want("half a minute later", 1_000_000, 100_000, 50_000)
	h.stamp.T += 32_500
	want("when it is half outside", 500_000, 50_000, 25_000)
	h.stamp.T += 2_500
	want("after the minute", 0, 0, 0)
	if v, ok := h.m.Type("scan", h.stamp); ok {
		t.Errorf("after the minute the type that went is %+v", v)
	}
	restored := restore(t, snapshotOf(t, h.m))
	if v, _ := restored.Type("mail", begun); v.SubmittedPerS != 0 {
		t.Errorf("restored, the rate is %d", v.SubmittedPerS)
	}
}

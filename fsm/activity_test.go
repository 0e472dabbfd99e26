package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/latency"
	"github.com/claimq/claimq/fsm/record"
)

// latenciesOf returns how many waited and ran that long, by the times that are expected.
func latenciesOf(waited, ran []int64) (l Latencies) {
	for _, ms := range waited {
		l[Waited].Add(ms)
	}
	for _, ms := range ran {
		l[Ran].Add(ms)
	}
	return l
}

// A wait begins when the task becomes pending, each time; what runs counts if it is completed.
func TestLatencies(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	var waited, ran []int64
	want := func(when string) {
		t.Helper()
		want := latenciesOf(waited, ran)
		if got, _ := h.m.TypeActivity("mail", h.stamp); got.Latencies != want {
			t.Errorf("%s: of the type %v, want %v", when, got.Latencies, want)
		}
		if got := h.m.Activity(h.stamp); got.Latencies != want {
			t.Errorf("%s: of all %v, want %v", when, got.Latencies, want)
		}
	}
	h.submit(2, record.NewTask{Type: "mail"})
	h.stamp.T += 100
	c := h.claims("mail", 2, 2)
	waited = append(waited, 100, 100)
	want("claimed")
	h.stamp.T += 2000
	h.do(command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}})
	ran = append(ran, 2000)
	h.do(command.Fail{Hold: command.Hold{ID: c[1].Task.ID, WorkerID: c[1].Task.WorkerID}, RetryIn: true, RetryInMS: 5000})
	want("one completed")
	h.stamp.T += 5000
	h.do(command.Tick{})
	h.stamp.T += 30
	c = h.claims("mail", 2, 1)
	waited = append(waited, 30)
	want("after its second attempt was due")
	h.stamp.T += 400
	h.do(command.Batch{Atomic: true, Ops: []command.Command{
		command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}, Submit: []record.NewTask{{Type: "mail"}}, Claim: &command.ClaimNext{WorkerID: "w", Limit: 1}},
		command.Delete{ID: 999},
	}})
	want("of a batch that is undone")
	h.do(command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}})
	ran = append(ran, 400)
	want("both completed")
	h.do(command.Batch{Atomic: true, Ops: []command.Command{command.Delete{ID: 1}, command.Delete{ID: 2}, command.Submit{Tasks: []record.NewTask{{Type: "mail"}}}, command.Delete{ID: 999}}})
	want("of a batch in which the type went, undone")
}

// Latencies are counted for a bounded number of types, and always for all tasks together.
func TestLatencies_Room(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	name := func(i int) string { return fmt.Sprintf("t%03d", FollowedMax+1-i) } // not in the order in which they begin
	for i := range FollowedMax + 1 {
		h.submit(1, record.NewTask{Type: name(i)})
	}
	h.stamp.T += 7
	last := name(FollowedMax)
	h.claims(last, 1, 1)
	a, _ := h.m.TypeActivity(last, h.stamp)
	if all := h.m.Activity(h.stamp); a.Latencies != (Latencies{}) || all.Latencies[Waited].Quantile(500) != latency.Of(7) {
		t.Errorf("there are latencies of %v, of all %v", a.Latencies, all.Latencies)
	}
	if types := h.m.FollowedTypes(h.stamp); len(types) != FollowedMax || slices.Contains(types, last) || h.m.TypeCount(h.stamp) != FollowedMax+1 {
		t.Errorf("%d of %d types are followed: %v", len(types), h.m.TypeCount(h.stamp), types)
	}
	h.do(command.Cancel{ID: 3})
	h.do(command.Delete{ID: 3})
	h.submit(1, record.NewTask{Type: "new"})
	types := h.m.FollowedTypes(h.stamp)
	if n := len(types) - 1; n != FollowedMax || !slices.Contains(types[:n], "new") || types[n] != name(2) || h.m.TypeCount(h.stamp) != FollowedMax+2 {
		t.Errorf("one that came when another had gone, which has rates: %v", types)
	}
	h.stamp.T += rateWindowMS + rateSlotMS
	if types := h.m.FollowedTypes(h.stamp); len(types) != FollowedMax || slices.Contains(types, name(2)) || h.m.TypeCount(h.stamp) != FollowedMax+1 {
		t.Errorf("once that has none: %v", types)
	}
	if types := restore(t, snapshotOf(t, h.m)).FollowedTypes(h.stamp); len(types) != FollowedMax {
		t.Errorf("restored, %d are followed: %v", len(types), types)
	}
}

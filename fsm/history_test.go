package fsm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/latency"
	"github.com/claimq/claimq/fsm/record"
)

// now returns the minute under way of a type, or of all tasks.
func (h *harness) now(name string) record.Minute {
	h.t.Helper()
	v := h.m.History(name, 1, h.stamp)
	if len(v.Minutes) != 1 {
		h.t.Fatalf("history of %q: %+v", name, v)
	}
	return v.Minutes[0]
}

// nextMinute lets the rest of the minute pass.
func (h *harness) nextMinute() { h.stamp.T += record.MSInMinute - h.stamp.T%record.MSInMinute }

func quantilesOf(p50, p99 int64) record.Quantiles {
	return record.Quantiles{P50: uint8(latency.Of(p50)), P99: uint8(latency.Of(p99))}
}

// A wait begins when the task becomes pending, each time; what runs counts if it is completed.
func TestHistory_Times(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.nextMinute()
	want := func(when string, waited, ran record.Quantiles) {
		t.Helper()
		for _, name := range []string{"mail", ""} {
			if got := h.now(name).Times; got != [record.HistorySpans]record.Quantiles{waited, ran} {
				t.Errorf("%s: of %q %v, want %v and %v", when, name, got, waited, ran)
			}
		}
		mustCheck(t, h.m)
	}
	none := record.Quantiles{}
	h.submit(2, record.NewTask{Type: "mail"})
	h.stamp.T += 100
	c := h.claims("mail", 2, 2)
	want("claimed", quantilesOf(100, 100), none)
	h.stamp.T += 2000
	h.do(command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}})
	h.do(command.Fail{Hold: command.Hold{ID: c[1].Task.ID, WorkerID: c[1].Task.WorkerID}, RetryIn: true, RetryInMS: 5000})
	want("one completed", quantilesOf(100, 100), quantilesOf(2000, 2000))
	h.stamp.T += 5000
	h.do(command.Tick{})
	h.stamp.T += 400
	c = h.claims("mail", 2, 1)
	want("after its second attempt was due", quantilesOf(100, 400), quantilesOf(2000, 2000))
	h.stamp.T += 500
	h.do(command.Batch{Atomic: true, Ops: []command.Command{
		command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}, Submit: []record.NewTask{{Type: "mail"}}, Claim: &command.ClaimNext{WorkerID: "w", Limit: 1}},
		command.Delete{ID: 999},
	}})
	want("of a batch that is undone", quantilesOf(100, 400), quantilesOf(2000, 2000))
	h.do(command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}})
	want("both completed", quantilesOf(100, 400), quantilesOf(500, 2000))
	h.do(command.Batch{Atomic: true, Ops: []command.Command{command.Delete{ID: 1}, command.Delete{ID: 2}, command.Submit{Tasks: []record.NewTask{{Type: "mail"}}}, command.Delete{ID: 999}}})
	want("of a batch in which the type went, undone", quantilesOf(100, 400), quantilesOf(500, 2000))
	h.nextMinute()
	want("in the next minute", none, none)
	if got := h.m.History("mail", 2, h.stamp).Minutes[0].Times; got != [record.HistorySpans]record.Quantiles{quantilesOf(100, 400), quantilesOf(500, 2000)} {
		t.Errorf("of the last minute: %v", got)
	}
}

// A history has every minute since it began, also those without an entry, up to its bound; it is the same after a restore.
func TestHistory_Minutes(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.nextMinute()
	begun := h.stamp.T
	if v := h.m.History("", 5, h.stamp); !v.Kept || len(v.Minutes) != 0 {
		t.Errorf("before anything was submitted: %+v", v)
	}
	if v := h.m.History("mail", 5, h.stamp); v.Kept {
		t.Errorf("of a type without tasks: %+v", v)
	}
	first := begun / record.MSInMinute
	h.submit(3, record.NewTask{Type: "mail"})
	h.stamp.T += 3*record.MSInMinute + 1
	want := []record.Minute{
		{At: first, Submitted: 3, Pending: 3, OldestAt: begun},
		{At: first + 1, Pending: 3, OldestAt: begun},
		{At: first + 2, Pending: 3, OldestAt: begun},
		{At: first + 3, Pending: 3, OldestAt: begun},
	}
	is := func(when string, minutes int, want ...record.Minute) {
		t.Helper()
		for _, name := range []string{"", "mail"} {
			v := h.m.History(name, minutes, h.stamp)
			if diff := cmp.Diff(want, v.Minutes); diff != "" || v.Since != begun || v.From != want[0].At*record.MSInMinute || v.To != h.stamp.T {
				t.Errorf("%s: of %q since %d, from %d to %d (-want +got)\n%s", when, name, v.Since, v.From, v.To, diff)
			}
			if diff := cmp.Diff(v, restore(t, snapshotOf(t, h.m)).History(name, minutes, h.stamp)); diff != "" {
				t.Errorf("%s: of %q (-before +after a restore)\n%s", when, name, diff)
			}
		}
	}
	is("without an entry", 9, want...)
	c := h.claims("mail", 1, 1)
	h.do(command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}})
	waited := quantilesOf(3*record.MSInMinute+1, 3*record.MSInMinute+1)
	want[3] = record.Minute{At: first + 3, Completed: 1, Pending: 2, OldestAt: begun, Times: [record.HistorySpans]record.Quantiles{waited, quantilesOf(0, 0)}}
	is("in the minute of an entry", 9, want...)
	h.stamp.T += 2 * record.MSInMinute
	last := record.Minute{At: first + 5, Pending: 2, OldestAt: begun}
	is("the last two", 2, record.Minute{At: first + 4, Pending: 2, OldestAt: begun}, last)
	h.do(command.Tick{})
	is("after an entry that changed nothing", 1, last)
	h.stamp.T += 24 * 60 * record.MSInMinute
	h.do(command.Tick{})
	mustCheck(t, h.m)
	v := h.m.History("", record.HistoryMinutes+1, h.stamp)
	if n := len(v.Minutes); n != record.HistoryMinutes || v.Minutes[0] != (record.Minute{At: v.From / record.MSInMinute, Pending: 2, OldestAt: begun}) {
		t.Errorf("a day later there are %d minutes, the first %+v", n, v.Minutes[0])
	}
	for range 2 * record.HistoryMinutes {
		h.submit(1, record.NewTask{Type: "mail"})
		h.stamp.T += record.MSInMinute
	}
	mustCheck(t, h.m)
	v = h.m.History("mail", record.HistoryMinutes, h.stamp)
	if n := len(v.Minutes); n != record.HistoryMinutes || v.Minutes[0].Submitted != 1 || v.Minutes[n-2].Pending != 2+2*record.HistoryMinutes {
		t.Errorf("of changes in each minute: %d minutes, %+v to %+v", n, v.Minutes[0], v.Minutes[n-1])
	}
}

// As many types as there is room for have a history; a type that went makes room once its history is over.
func TestHistory_Room(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	name := func(i int) string { return fmt.Sprintf("t%03d", 200-i) } // not in the order in which they begin
	const most = record.HistoriesMax - 1
	for i := range most + 1 {
		h.submit(1, record.NewTask{Type: name(i)})
	}
	kept := func(when string, i int, want bool) {
		t.Helper()
		if got := h.m.History(name(i), 1, h.stamp).Kept; got != want {
			t.Errorf("%s: history of type %d is kept: %v", when, i, got)
		}
	}
	kept("full", most-1, true)
	kept("full", most, false)
	if got := h.now("").Submitted; got != most+1 {
		t.Errorf("%d tasks of all types are counted", got)
	}
	h.do(command.Cancel{ID: 3})
	h.do(command.Delete{ID: 3})
	h.stamp.T += (record.HistoryMinutes - 1) * record.MSInMinute
	h.submit(1, record.NewTask{Type: name(most)})
	kept("within 6 h", 2, true)
	kept("within 6 h", most, false)
	h.stamp.T += 2 * record.MSInMinute
	h.do(command.Tick{})
	kept("after them", 2, false)
	h.submit(1, record.NewTask{Type: name(most)})
	kept("after them", most, true)
	if got := h.now(name(most)); got.Submitted != 1 || got.Pending != 3 {
		t.Errorf("of a type that waited for room: %+v", got)
	}
	// A batch that is undone begins no history.
	h.do(command.Cancel{ID: 1})
	h.do(command.Delete{ID: 1})
	h.stamp.T += 2 * record.HistoryMinutes * record.MSInMinute
	h.do(command.Batch{Atomic: true, Ops: []command.Command{command.Submit{Tasks: []record.NewTask{{Type: "new"}}}, command.Delete{ID: 999}}})
	mustCheck(t, h.m)
	if h.m.History("new", 1, h.stamp).Kept {
		t.Error("of a type in a batch that was undone a history is kept")
	}
}

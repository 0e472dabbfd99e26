package fsm

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/latency"
	"github.com/claimq/claimq/fsm/record"
)

// newRetiredHarness is a harness of a cluster that keeps no task that has ended.
func newRetiredHarness(t *testing.T) *harness {
	h := newLifeHarness(t)
	h.stamp.T += rateSlotMS - h.stamp.T%rateSlotMS
	h.do(command.SetDefaults{Set: record.TypeRetention, Defaults: record.Defaults{RetentionMS: record.KeepNone}})
	return h
}

// through submits a task of the type, and completes it after ms.
func (h *harness) through(name string, ms int64) {
	h.t.Helper()
	h.submit(1, record.NewTask{Type: name})
	c := h.claims(name, 1, 1)
	h.stamp.T += ms
	h.wantCode(command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: c[0].Task.WorkerID}}, "")
}

// A type whose tasks go as they end has rates and counts all the same.
func TestRetiredTypes(t *testing.T) {
	t.Parallel()
	h := newRetiredHarness(t)
	h.do(command.SetType{Type: "set", Set: record.TypePaused, Settings: record.TypeSettings{Paused: true}})
	for range 3 {
		h.through("mail", 100)
		h.through("ads", 50)
	}
	h.through("zip", 0)
	if n := h.m.tasks.Len(); n != 0 {
		t.Fatalf("%d tasks are left", n)
	}
	mail := TypeView{Type: "mail", SubmittedPerS: 50_000, CompletedPerS: 50_000}
	if v, ok := h.m.Type("mail", h.stamp); !ok || v != mail {
		t.Errorf("the type: %+v, want %+v", v, mail)
	}
	if now := h.now("mail"); now.Submitted != 3 || now.Completed != 3 || now.Times[Ran].P50 != uint8(latency.Of(100)) {
		t.Errorf("its history: %+v", now)
	}
	if all := h.m.Types("", 0, h.stamp); namesOf(all) != "ads mail set zip" || all[1] != mail {
		t.Errorf("all types: %+v", all)
	}
	if page := h.m.Types("ads", 2, h.stamp); namesOf(page) != "mail set" {
		t.Errorf("two behind the first: %s", namesOf(page))
	}
	for look := range 5 {
		q, f, looks := TypesQuery{Look: look, Order: "completed_per_s"}, TypesFound{}, 1
		for h.m.FindTypes(&f, q, h.stamp) {
			looks++
		}
		if namesOf(f.Types) != "ads mail zip set" || f.Total != 4 || look == 1 && looks != 8 {
			t.Errorf("found by %d looks of %d: %s, of %d", looks, look, namesOf(f.Types), f.Total)
		}
	}
	// It comes again, and goes on.
	h.through("mail", 100)
	if now := h.now("mail"); now.Submitted != 4 || now.Completed != 4 {
		t.Errorf("once it came again: %+v", now)
	}
	mustCheck(t, h.m)
	// A minute later it has no rates, and what comes then starts from 0.
	h.stamp.T += rateWindowMS + rateSlotMS
	if all := h.m.Types("", 0, h.stamp); namesOf(all) != "set" {
		t.Errorf("a minute later: %+v", all)
	}
	h.through("mail", 0)
	if v, _ := h.m.Type("mail", h.stamp); v.SubmittedPerS != 1_000_000/60 || h.m.types.retired.byName.Len() != 1 {
		t.Errorf("from 0: %+v; %d retired", v, h.m.types.retired.byName.Len())
	}
	mustCheck(t, h.m)
}

// A batch that is undone takes nothing from a retired type, nor gives it anything.
func TestRetiredTypes_Undone(t *testing.T) {
	t.Parallel()
	h := newRetiredHarness(t)
	h.through("mail", 100)
	h.submit(1, record.NewTask{Type: "live"})
	live := h.m.header.NextID - 1
	type told struct {
		TypeView
		record.Minute
	}
	want := map[string]told{}
	tell := func(name string) told {
		v, _ := h.m.Type(name, h.stamp)
		return told{v, h.now(name)}
	}
	for _, name := range []string{"mail", "live"} {
		want[name] = tell(name)
	}
	submit := func(name string) command.Command { return command.Submit{Tasks: []record.NewTask{{Type: name}}} }
	cancel := func(id uint64) command.Command { return command.Cancel{ID: id} }
	remove := func(id uint64) command.Command { return command.Delete{ID: id} }
	for _, ops := range [][]command.Command{
		{submit("mail")},
		{submit("mail"), cancel(live + 1), remove(live + 1)},
		{submit("mail"), cancel(live + 1), remove(live + 1), submit("mail")},
		{submit("new"), cancel(live + 1), remove(live + 1)},
		{cancel(live), remove(live)},
		{cancel(live), remove(live), submit("live")},
		{cancel(live), remove(live), submit("live"), cancel(live + 1), remove(live + 1)},
	} {
		h.wantCode(command.Batch{Atomic: true, Ops: append(ops, remove(999))}, CodeTaskNotFound)
		for name, want := range want {
			if got := tell(name); got != want {
				t.Errorf("%+v undone: of %s %+v, want %+v", ops, name, got, want)
			}
		}
		if v, ok := h.m.Type("new", h.stamp); ok || h.m.History("new", 1, h.stamp).Kept {
			t.Errorf("%+v undone: %+v", ops, v)
		}
	}
}

// The types that retired first are forgotten first.
func TestRetiredTypes_Bound(t *testing.T) {
	t.Parallel()
	h := newRetiredHarness(t)
	name := func(i int) string { return fmt.Sprintf("t%04d", retiredMax-i) } // not in the order in which they go
	// Without a check of all types each time.
	for i := range retiredMax + 1 {
		h.submit(1, record.NewTask{Type: name(i)})
		c := h.do(command.ClaimNext{WorkerID: "w1", Types: []string{name(i)}, Limit: 1}).Claims
		h.do(command.Complete{Hold: command.Hold{ID: c[0].Task.ID, WorkerID: "w1"}})
	}
	h.through("last", 0)
	h.do(command.Tick{})
	for i, want := range []bool{false, false, true} {
		if _, ok := h.m.Type(name(i), h.stamp); ok != want {
			t.Errorf("retired type %d is known: %v", i, ok)
		}
	}
	if n := h.m.types.retired.byName.Len(); n != retiredMax {
		t.Errorf("%d retired types are known", n)
	}
	mustCheck(t, h.m)
}

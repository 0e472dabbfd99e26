package fsm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// wantReady applies an entry and wants it to report want as having become
// claimable.
func (h *harness) wantReady(name string, commands []command.Command, want ...ReadyTasks) {
	h.t.Helper()
	a := mustApplyTo(h.t, h.m, testEntry{Index: h.m.Index() + 1, Stamp: h.stamp, Commands: commands})
	if diff := cmp.Diff(want, a.Ready, cmpopts.EquateEmpty()); diff != "" {
		h.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	mustCheck(h.t, h.m)
}

// TestApplied_Ready names each type with newly claimable tasks once, in the order in which
// they became claimable, whatever the reason.
func TestApplied_Ready(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	mail, scan := record.NewTask{Type: "mail", Payload: []byte("p")}, record.NewTask{Type: "scan", Payload: []byte("p")}
	grouped, later := record.NewTask{Type: "group", Payload: []byte("p"), Group: "g"}, mail
	later.DelayMS = 1000
	submit := func(tasks ...record.NewTask) command.Command { return command.Submit{Tasks: tasks} }
	claim := func(id uint64) command.Command { return command.ClaimTask{ID: id, WorkerID: "w1"} }
	hold := func(id uint64) command.Hold { return command.Hold{ID: id, WorkerID: "w1"} }

	h.wantReady("a submit", []command.Command{submit(scan, mail, mail), command.Tick{}, submit(scan, later)}, ReadyTasks{Type: "scan", Count: 2}, ReadyTasks{Type: "mail", Count: 2}) // 1 to 5
	h.wantReady("a claim", []command.Command{claim(1), claim(2)})
	h.wantReady("an extend", []command.Command{command.Extend{Hold: hold(1)}})
	h.wantReady("a complete", []command.Command{command.Complete{Hold: hold(1)}})
	h.wantReady("a release", []command.Command{command.Release{Hold: hold(2)}}, ReadyTasks{Type: "mail", Count: 1})
	h.wantReady("claimed again", []command.Command{claim(2), command.Fail{Hold: hold(2)}, claim(2)}, ReadyTasks{Type: "mail", Count: 1})
	h.wantReady("an expiry", []command.Command{command.Expire{Items: []command.Lease{{TaskID: 2, Token: h.m.Get(2).Token, Seq: 1}}}}, ReadyTasks{Type: "mail", Count: 1})
	h.stamp.T += 1000
	h.wantReady("time alone", []command.Command{command.Checkpoint{}})
	h.wantReady("a promotion", []command.Command{command.Tick{}}, ReadyTasks{Type: "mail", Count: 1})
	h.wantReady("a retry", []command.Command{command.Cancel{ID: 5}, command.Retry{ID: 5}}, ReadyTasks{Type: "mail", Count: 1})

	h.wantReady("two of a group", []command.Command{submit(grouped, grouped)}, ReadyTasks{Type: "group", Count: 1}) // 6, 7
	h.wantReady("its head is claimed", []command.Command{claim(6)})
	h.wantReady("its head has ended", []command.Command{command.Complete{Hold: hold(6)}}, ReadyTasks{Type: "group", Count: 1})

	pause := func(paused bool) command.Command {
		return command.SetType{Type: "mail", Set: record.TypePaused, Settings: record.TypeSettings{Paused: paused}}
	}
	h.wantReady("a pause", []command.Command{pause(true)})
	h.wantReady("a submit while paused", []command.Command{submit(mail)}) // 8
	h.wantReady("a pause's end", []command.Command{pause(false)}, ReadyTasks{Type: "mail", Count: 4})

	limit := command.SetType{Type: "scan", Set: record.TypeMaxClaimed, Settings: record.TypeSettings{MaxClaimed: 1}}
	h.wantReady("a slot is taken", []command.Command{submit(scan, scan), claim(4), limit}, ReadyTasks{Type: "scan", Count: 2})
	h.wantReady("a submit without a slot", []command.Command{submit(scan)})
	h.wantReady("an extend without a slot", []command.Command{command.Extend{Hold: hold(4)}})
	h.wantReady("a slot is freed", []command.Command{command.Complete{Hold: hold(4)}}, ReadyTasks{Type: "scan", Count: 1})

	rate := command.SetType{Type: "group", Set: record.TypeRateLimit, Settings: record.TypeSettings{RateLimit: perSecond(2)}}
	h.wantReady("two claims, one is left", []command.Command{submit(record.NewTask{Type: "group", Payload: []byte("p")}), rate, claim(7)}, ReadyTasks{Type: "group", Count: 4})
	h.wantReady("the bucket is empty", []command.Command{command.ClaimNext{WorkerID: "w1", Types: []string{"group"}, Limit: 9}})
	h.wantReady("a requeue waits", []command.Command{command.Release{Hold: hold(7)}})
	h.stamp.T += 499
	h.wantReady("too early", []command.Command{command.Tick{}})
	h.stamp.T++
	h.wantReady("the bucket has a claim", []command.Command{command.Checkpoint{}}, ReadyTasks{Type: "group", Count: 1})
}

// TestApplied_ReadyWakesOneByOne ensures that while a type with limits has tasks and room,
// each claim reports the next: room that time makes has no event.
func TestApplied_ReadyWakesOneByOne(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(9, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(3)})
	claim := command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1}
	h.wantReady("three are left of it", []command.Command{claim}, ReadyTasks{Type: "mail", Count: 1})
	h.wantReady("one is left of it", []command.Command{claim}, ReadyTasks{Type: "mail", Count: 1})
	h.wantReady("nothing is left of it", []command.Command{claim})
	h.stamp.T += 334
	h.wantReady("one has come", []command.Command{command.Checkpoint{}}, ReadyTasks{Type: "mail", Count: 1})
	h.stamp.T += 334
	h.wantReady("another has come, one is taken", []command.Command{claim}, ReadyTasks{Type: "mail", Count: 1})
	h.wantReady("the other is taken", []command.Command{claim})
}

// TestApplied_ReadyTellsOfLimitsThatChange ensures that new limits report everything that
// they make claimable, even if the type was open before, because no later entry would.
func TestApplied_ReadyTellsOfLimitsThatChange(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	max := func(n int32) []command.Command {
		return []command.Command{command.SetType{Type: "mail", Set: record.TypeMaxClaimed, Settings: record.TypeSettings{MaxClaimed: n}}}
	}
	h.submit(30, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.wantReady("a limit", max(5), ReadyTasks{Type: "mail", Count: 5})
	h.claims("mail", 3, 3)
	h.wantReady("a higher one", max(10), ReadyTasks{Type: "mail", Count: 7})
	h.wantReady("none", max(0), ReadyTasks{Type: "mail", Count: 27})
}

// TestApplied_ReadyNamesATypeOnce also when it was forgotten in between.
func TestApplied_ReadyNamesATypeOnce(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	var commands []command.Command
	var want []ReadyTasks
	for i := range 20 {
		want = append(want, ReadyTasks{Type: fmt.Sprint("type", i), Count: 2})
		for range 2 {
			id := uint64(len(commands)/3 + 1)
			commands = append(commands, command.Submit{Tasks: []record.NewTask{{Type: want[i].Type, Payload: []byte("p")}}}, command.Cancel{ID: id}, command.Delete{ID: id})
		}
	}
	h.wantReady("twenty types", commands, want...)
	if n := h.m.types.Len(); n != 0 {
		t.Errorf("%d types are left", n)
	}
}

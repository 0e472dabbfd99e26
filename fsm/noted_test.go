package fsm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/fsm/record"
)

// wantReady applies an entry and wants it to say that it made so much
// claimable.
func (h *harness) wantReady(name string, commands []Command, want ...ReadyTasks) {
	h.t.Helper()
	a := mustApplyTo(h.t, h.m, testEntry{Index: h.m.Index() + 1, Stamp: h.stamp, Commands: commands})
	if diff := cmp.Diff(want, a.Ready, cmpopts.EquateEmpty()); diff != "" {
		h.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	mustCheck(h.t, h.m)
}

// TestApplied_Ready names each type once of which tasks became claimable, in
// the order in which they did, whatever made them so.
func TestApplied_Ready(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	mail, scan := record.NewTask{Type: "mail", Payload: []byte("p")}, record.NewTask{Type: "scan", Payload: []byte("p")}
	grouped, later := record.NewTask{Type: "group", Payload: []byte("p"), Group: "g"}, mail
	later.DelayMS = 1000
	submit := func(tasks ...record.NewTask) Command { return Submit{Tasks: tasks} }
	claim := func(id uint64) Command { return ClaimTask{ID: id, WorkerID: "w1"} }
	hold := func(id uint64) Hold { return Hold{ID: id, WorkerID: "w1"} }

	h.wantReady("a submit", []Command{submit(scan, mail, mail), Tick{}, submit(scan, later)}, ReadyTasks{"scan", 2}, ReadyTasks{"mail", 2}) // 1 to 5
	h.wantReady("a claim", []Command{claim(1), claim(2)})
	h.wantReady("an extend", []Command{Extend{Hold: hold(1)}})
	h.wantReady("a complete", []Command{Complete{Hold: hold(1)}})
	h.wantReady("a release", []Command{Release{Hold: hold(2)}}, ReadyTasks{"mail", 1})
	h.wantReady("claimed again", []Command{claim(2), Fail{Hold: hold(2)}, claim(2)}, ReadyTasks{"mail", 1})
	h.wantReady("an expiry", []Command{Expire{Items: []Lease{{TaskID: 2, Token: h.m.Get(2).Token, Seq: 1}}}}, ReadyTasks{"mail", 1})
	h.stamp.T += 1000
	h.wantReady("time alone", []Command{Checkpoint{}})
	h.wantReady("a promotion", []Command{Tick{}}, ReadyTasks{"mail", 1})
	h.wantReady("a retry", []Command{Cancel{ID: 5}, Retry{ID: 5}}, ReadyTasks{"mail", 1})

	h.wantReady("two of a group", []Command{submit(grouped, grouped)}, ReadyTasks{"group", 1}) // 6, 7
	h.wantReady("its head is claimed", []Command{claim(6)})
	h.wantReady("its head has ended", []Command{Complete{Hold: hold(6)}}, ReadyTasks{"group", 1})

	pause := func(paused bool) Command {
		return SetType{Type: "mail", Set: record.TypePaused, Settings: record.TypeSettings{Paused: paused}}
	}
	h.wantReady("a pause", []Command{pause(true)})
	h.wantReady("a submit while paused", []Command{submit(mail)}) // 8
	h.wantReady("a pause's end", []Command{pause(false)}, ReadyTasks{"mail", 4})

	limit := SetType{Type: "scan", Set: record.TypeMaxClaimed, Settings: record.TypeSettings{MaxClaimed: 1}}
	h.wantReady("a slot is taken", []Command{submit(scan, scan), claim(4), limit}, ReadyTasks{"scan", 2})
	h.wantReady("a submit without a slot", []Command{submit(scan)})
	h.wantReady("an extend without a slot", []Command{Extend{Hold: hold(4)}})
	h.wantReady("a slot is freed", []Command{Complete{Hold: hold(4)}}, ReadyTasks{"scan", 1})

	rate := SetType{Type: "group", Set: record.TypeRateLimit, Settings: record.TypeSettings{RateLimit: perSecond(2)}}
	h.wantReady("two claims, one is left", []Command{submit(record.NewTask{Type: "group", Payload: []byte("p")}), rate, claim(7)}, ReadyTasks{"group", 4})
	h.wantReady("the bucket is empty", []Command{ClaimNext{WorkerID: "w1", Types: []string{"group"}, Limit: 9}})
	h.wantReady("a requeue waits", []Command{Release{Hold: hold(7)}})
	h.stamp.T += 499
	h.wantReady("too early", []Command{Tick{}})
	h.stamp.T++
	h.wantReady("the bucket has a claim", []Command{Checkpoint{}}, ReadyTasks{"group", 1})
}

// TestApplied_ReadyWakesOneByOne ensures that while a type with limits has
// tasks and room, whoever takes one tells of the next: the room that time makes
// meanwhile comes with no event of its own.
func TestApplied_ReadyWakesOneByOne(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	h.submit(9, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.set("mail", record.TypeRateLimit, record.TypeSettings{RateLimit: perSecond(3)})
	claim := ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1}
	h.wantReady("three are left of it", []Command{claim}, ReadyTasks{"mail", 1})
	h.wantReady("one is left of it", []Command{claim}, ReadyTasks{"mail", 1})
	h.wantReady("nothing is left of it", []Command{claim})
	h.stamp.T += 334
	h.wantReady("one has come", []Command{Checkpoint{}}, ReadyTasks{"mail", 1})
	h.stamp.T += 334
	h.wantReady("another has come, one is taken", []Command{claim}, ReadyTasks{"mail", 1})
	h.wantReady("the other is taken", []Command{claim})
}

// TestApplied_ReadyTellsOfLimitsThatChange ensures that whoever waits hears of
// all that new limits let be claimed, although the type was open before: nobody
// would tell of it later.
func TestApplied_ReadyTellsOfLimitsThatChange(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	max := func(n int32) []Command {
		return []Command{SetType{Type: "mail", Set: record.TypeMaxClaimed, Settings: record.TypeSettings{MaxClaimed: n}}}
	}
	h.submit(30, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.wantReady("a limit", max(5), ReadyTasks{"mail", 5})
	h.claims("mail", 3, 3)
	h.wantReady("a higher one", max(10), ReadyTasks{"mail", 7})
	h.wantReady("none", max(0), ReadyTasks{"mail", 27})
}

// TestApplied_ReadyNamesATypeOnce also when it was forgotten in between.
func TestApplied_ReadyNamesATypeOnce(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	var commands []Command
	var want []ReadyTasks
	for i := range 20 {
		want = append(want, ReadyTasks{fmt.Sprint("type", i), 2})
		for range 2 {
			id := uint64(len(commands)/3 + 1)
			commands = append(commands, Submit{Tasks: []record.NewTask{{Type: want[i].Type, Payload: []byte("p")}}}, Cancel{ID: id}, Delete{ID: id})
		}
	}
	h.wantReady("twenty types", commands, want...)
	if len(h.m.types) != 0 {
		t.Errorf("%d types are left", len(h.m.types))
	}
}

package fsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// outcomes shows what became of a batch's ops.
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

func (h *harness) batch(want string, atomic bool, ops ...Command) Result {
	h.t.Helper()
	r := h.do(Batch{Atomic: atomic, Ops: ops})
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
			Submit{Tasks: []NewTask{{Type: "scan"}}},
			ClaimNext{WorkerID: "w2", Types: []string{"scan"}, Limit: 1},
			Complete{Hold: Hold{ID: last.NextID, WorkerID: "w2", Token: last.NextToken}},
		)
	}
	h.batch("[wrong_worker][][ repeated][task_not_found][task_not_found][][]", false,
		Fail{Hold: Hold{ID: 1, WorkerID: "w2", Token: 1}},
		Complete{Hold: hold},
		Complete{Hold: hold},
		Release{Hold: Hold{ID: 99, WorkerID: "w1", Token: 1}},
		Retry{ID: 99},
		ClaimNext{WorkerID: "w1", Limit: 1},
		Delete{ID: 1},
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
	h.submit(1, NewTask{Type: "mail", Key: "k"})
	wrong := Hold{ID: 1, WorkerID: "w2", Token: 1}
	for _, test := range []struct {
		want string
		op   Command
	}{
		{"no_pending_tasks at 2", ClaimNext{WorkerID: "w1", Types: []string{"none"}, Limit: 1}},
		{"wrong_worker at 2", Complete{Hold: wrong}},
		{"wrong_worker at 2", Extend{Hold: wrong}},
		{"task_not_found at 2", Cancel{ID: 99}},
		{"task_not_terminal at 2", Delete{ID: 2}},
	} {
		before := snapshotOf(t, h.m)
		index := h.m.header.Index
		r := h.batch(test.want, true, Submit{Tasks: []NewTask{{Type: "mail"}}}, Extend{Hold: hold, LeaseMS: 90_000}, test.op)
		if r.Results != nil || r.Task == nil != (r.Code == CodeNoPendingTasks || r.Code == CodeTaskNotFound) {
			t.Errorf("%T: got %+v", test.op, r)
		}
		h.m.header.Index = index // all that may differ
		if !bytes.Equal(snapshotOf(t, h.m), before) {
			t.Errorf("%T: the batch was refused, the state changed", test.op)
		}
	}
	// A taken key, a repeat and a next claim that finds nothing are no refusals.
	h.batch("[ +2 false][][ repeated]", true,
		Submit{Tasks: []NewTask{{Type: "mail", Key: "k"}}},
		Complete{Hold: hold, Claim: nextOf("none")},
		Complete{Hold: hold, Claim: nextOf("none")},
	)
}

// TestBatch_AtomicTellsTheLeaderOfWhatStayed ensures that timers and those who
// wait hear nothing of what was undone.
func TestBatch_AtomicTellsTheLeaderOfWhatStayed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(SetLevel{Level: levelLife})
	apply := func(commands ...Command) Applied {
		return mustApplyTo(t, h.m, testEntry{Index: h.m.Index() + 1, Stamp: h.stamp, Commands: commands})
	}
	submit := func(types ...string) Command {
		var c Submit
		for _, name := range types {
			c.Tasks = append(c.Tasks, NewTask{Type: name})
		}
		return c
	}
	a := apply(
		submit("mail", "scan"), ClaimTask{ID: 1, WorkerID: "w1"},
		Batch{Atomic: true, Ops: []Command{submit("mail"), submit("video"), ClaimNext{WorkerID: "w1", Limit: 1}, Delete{ID: 99}}},
		submit("scan"), ClaimTask{ID: 2, WorkerID: "w1"},
	)
	if len(a.Leases) != 2 || a.Leases[0].Token != 1 || a.Leases[1].Token != 2 {
		t.Errorf("leases %+v, want those of tokens 1 and 2", a.Leases)
	}
	if diff := cmp.Diff([]ReadyTasks{{"mail", 1}, {"scan", 2}}, a.Ready); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

// TestBatch_UndoneEndsAreForgotten ensures that a task which an undone op ended,
// to be gone at once, is not removed for that: it ended before, and is due to be
// removed by a tick.
func TestBatch_UndoneEndsAreForgotten(t *testing.T) {
	t.Parallel()
	h, hold := oneClaimed(t)
	h.do(SetType{Type: "mail", Set: TypeRetention, Settings: TypeSettings{RetentionMS: 1000}})
	h.do(Fail{Hold: hold, Permanent: true})
	h.do(SetType{Type: "mail", Set: TypeRetention, Settings: TypeSettings{RetentionMS: KeepNone}})
	h.stamp.T += 1000
	h.batch("task_not_found at 3", true,
		Retry{ID: 1}, ClaimNext{WorkerID: "w1", Limit: 1}, Complete{Hold: Hold{ID: 1, WorkerID: "w1"}}, Delete{ID: 99})
	if got := h.m.Get(1); got == nil || got.Status != StatusFailed {
		t.Errorf("task 1 is %+v", got)
	}
}

// lifeGenerator makes random commands of feature level 2.
type lifeGenerator struct{ *generator }

// newTask returns a task with any of the options.
func (g lifeGenerator) newTask() NewTask {
	t := NewTask{
		Type:        pick(g.generator, "mail", "scan", "video"),
		Params:      []byte(pick(g.generator, "1", "2")),
		Priority:    int32(pick(g.generator, 0, 0, 5, -5)),
		MaxAttempts: pick[int32](g.generator, DefaultAttempts, 0, 1, 2),
		Key:         pick(g.generator, "", "", "k1", "k2", "k3"),
		Group:       pick(g.generator, "", "", "g1", "g2"),
		RetentionMS: pick[int64](g.generator, 0, 0, 1000, KeepForever, KeepNone),
	}
	switch g.dice(6) {
	case 0:
		t.DelayMS = int64(1 + g.dice(3000))
	case 1:
		t.RunAt = g.stamp.T + int64(g.dice(3000))
	case 2:
		t.ExpiresAt = g.stamp.T + int64(g.dice(3000))
	case 3:
		t.Backoff = &Backoff{InitialMS: 500, MaxMS: 2000, Factor: 2_000_000, Jitter: 500_000}
	case 4:
		t.Labels = []Label{{"a", "1"}}
	case 5:
		t.UniqueActive = true
	}
	return t
}

func (g lifeGenerator) submitOne() Command { return Submit{Tasks: []NewTask{g.newTask()}} }

func (g lifeGenerator) claim() ClaimNext {
	c := g.claimNext().(ClaimNext)
	if c.Types != nil {
		c.SortBy = SortBy(g.dice(3))
		c.MoreAttempts = int32(g.dice(2))
	}
	return c
}

// op returns a command that a batch may hold.
func (g lifeGenerator) op(m *Machine) Command {
	switch g.dice(12) {
	case 0, 1, 2:
		return g.submitOne()
	case 3, 4:
		return g.claim()
	case 5:
		c := Complete{Hold: g.hold(m), Result: g.bytes("result")}
		for range g.dice(3) {
			c.Submit = append(c.Submit, g.newTask())
		}
		if g.dice(2) == 0 {
			next := g.claim()
			c.Claim = &next
		}
		return c
	case 6:
		return Fail{Hold: g.hold(m), Error: "no route", RetryIn: g.dice(3) == 0, RetryInMS: int64(g.dice(2000)), Permanent: g.dice(3) == 0}
	case 7:
		return Extend{Hold: g.hold(m), LeaseMS: g.lease(), Progress: g.bytes("7")}
	case 8:
		return Release{Hold: g.hold(m), DelayMS: int64(pick(g.generator, 0, 0, 1000))}
	case 9:
		return Retry{ID: g.id(m), AddAttempts: int32(g.dice(3))}
	case 10:
		return Cancel{ID: g.id(m)}
	}
	return Delete{ID: g.id(m)}
}

// command returns any command of feature level 2.
func (g lifeGenerator) command(m *Machine) Command {
	switch g.dice(12) {
	case 0:
		return Tick{}
	case 1:
		return g.setType()
	case 2:
		return Patch{
			ID: g.id(m), SetPriority: g.dice(2) == 0, Priority: int32(g.dice(3)),
			SetRunAt: g.dice(2) == 0, RunAt: g.stamp.T + int64(g.dice(2000)) - 1000,
			SetLabels: g.dice(2) == 0, Labels: []Label{{"b", "2"}},
		}
	case 3:
		return Evict{Bytes: int64(g.dice(3000))}
	case 4:
		return g.expire(m)
	case 5:
		return ClaimTask{ID: g.id(m), WorkerID: g.worker(), RequestID: g.request()}
	}
	return g.op(m)
}

func (g lifeGenerator) setType() Command {
	return SetType{
		Type: pick(g.generator, "mail", "scan", "video"), Set: TypeFields(g.dice(int(typeFieldsAll) + 1)),
		Settings: TypeSettings{
			Paused: g.dice(6) == 0, MaxClaimed: int32(g.dice(4)), RateLimit: int64(pick(g.generator, 0, 500_000, 3_000_000)),
			RetentionMS: pick[int64](g.generator, 0, 1000, KeepNone),
		},
	}
}

// pass moves the clocks on.
func (g lifeGenerator) pass() {
	g.index++
	step := int64(pick(g.generator, 0, 1, 400, 3000, 0, 1, 400, 3000, goneMS))
	g.stamp.U += step
	g.stamp.T += step
}

// TestBatch_UndoneLeavesNothing ensures that a machine that undid a batch is,
// in all that can be told, one that never saw it: the entry's other answers, the
// state, its hash, everything derived, and whatever comes later.
func TestBatch_UndoneLeavesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		die := rapid.Uint32()
		g := lifeGenerator{newGenerator(func(n int) int { return int(die.Draw(t, "die") % uint32(n)) })}
		undoneLeavesNothing(t, g, rapid.IntRange(0, 12).Draw(t, "before"), rapid.IntRange(0, 6).Draw(t, "ops"))
	})
}

// TestBatch_UndoneLeavesNothingOfALongRun is the same with more of everything.
func TestBatch_UndoneLeavesNothingOfALongRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		g := lifeGenerator{newGenerator(rand.New(rand.NewPCG(seed, 7)).IntN)}
		undoneLeavesNothing(t, g, 60, 12)
	}
}

func undoneLeavesNothing(t rapid.TB, g lifeGenerator, before, opsMax int) {
	t.Helper()
	plain, undone := newSmall(), newSmall()
	plain.goneMax, undone.goneMax = 4, 4
	both := func(a, b []Command, ignore int) {
		g.pass()
		want, err := plain.apply(g.index, g.stamp, a)
		if err != nil {
			t.Fatal(err)
		}
		got, err := undone.apply(g.index, g.stamp, b)
		if err != nil {
			t.Fatal(err)
		}
		if ignore >= 0 {
			if got.Results[ignore].Code == "" {
				t.Fatalf("a batch that should be refused was not: %s", outcomes(got.Results[ignore]))
			}
			got.Results[ignore] = want.Results[ignore]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %+v, entry %d (-never saw it +undid it):\n%s", b, g.index, diff)
		}
		if err := undone.check(); err != nil {
			t.Fatalf("after %+v: %v", b, err)
		}
		if !bytes.Equal(snapshotOf(t, plain), snapshotOf(t, undone)) || hashOf(plain) != hashOf(undone) {
			t.Fatalf("after %+v the states differ", b)
		}
	}
	same := func() {
		commands := []Command{g.command(plain), g.command(plain)}
		both(commands, commands, -1)
	}
	both([]Command{SetLevel{Level: levelLife}}, []Command{SetLevel{Level: levelLife}}, -1)
	for range before {
		same()
	}
	for range 3 {
		// Ops are drawn from the state that the ones before lead to.
		ahead := restore(t, snapshotOf(t, plain))
		ahead.goneMax = 4
		var ops []Command
		for range opsMax {
			op := g.op(ahead)
			if a, _ := ahead.apply(g.index+1, g.stamp, []Command{Batch{Atomic: true, Ops: []Command{op}}}); a.Results[0].Code == "" {
				ops = append(ops, op)
			}
		}
		ops = append(ops, Delete{ID: idMax})
		first, last := g.command(plain), g.command(plain)
		both([]Command{first, Delete{ID: idMax}, last}, []Command{first, Batch{Atomic: true, Ops: ops}, last}, 1)
		same()
		same()
	}
}

package fsm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// lifeGenerator makes random commands of feature level 2.
type lifeGenerator struct{ *generator }

// newTask returns a task with any of the options.
func (g lifeGenerator) newTask() record.NewTask {
	t := record.NewTask{
		Type:        pick(g.generator, "mail", "scan", "video"),
		Params:      []byte(pick(g.generator, "1", "2")),
		Priority:    int32(pick(g.generator, 0, 0, 5, -5)),
		MaxAttempts: pick[int32](g.generator, record.DefaultAttempts, 0, 1, 2),
		Key:         pick(g.generator, "", "", "k1", "k2", "k3"),
		Group:       pick(g.generator, "", "", "g1", "g2"),
		ShareKey:    pick(g.generator, "", "", "ann", "ben"),
		RetentionMS: pick[int64](g.generator, 0, 0, 1000, record.KeepForever, record.KeepNone),
	}
	switch g.dice(6) {
	case 0:
		t.DelayMS = int64(1 + g.dice(3000))
	case 1:
		t.RunAt = g.stamp.T + int64(g.dice(3000))
	case 2:
		t.ExpiresAt = g.stamp.T + int64(g.dice(3000))
	case 3:
		t.Backoff = &record.Backoff{InitialMS: 500, MaxMS: 2000, Factor: 2_000_000, Jitter: 500_000}
	case 4:
		t.Labels = []record.Label{{Name: "a", Value: "1"}}
	case 5:
		t.UniqueActive = true
	}
	return t
}

func (g lifeGenerator) submitOne() command.Command {
	if g.dice(6) == 1 {
		return command.Submit{Tasks: []record.NewTask{g.newParent()}}
	}
	return command.Submit{Tasks: []record.NewTask{g.newTask()}}
}

func (g lifeGenerator) claim() command.ClaimNext {
	c := g.claimNext().(command.ClaimNext)
	c.SortBy = command.SortBy(g.dice(3))
	c.MoreAttempts = int32(g.dice(2))
	return c
}

// op returns a command that a batch may hold.
func (g lifeGenerator) op(m *Machine) command.Command {
	switch g.dice(14) {
	case 12, 13:
		return g.opOfParent(m)
	case 0, 1, 2:
		return g.submitOne()
	case 3, 4:
		return g.claim()
	case 5:
		c := command.Complete{Hold: g.hold(m), Result: g.bytes("result")}
		for range g.dice(3) {
			c.Submit = append(c.Submit, g.newTask())
		}
		if g.dice(2) == 0 {
			next := g.claim()
			c.Claim = &next
		}
		return c
	case 6:
		return command.Fail{Hold: g.hold(m), Error: "no route", RetryIn: g.dice(3) == 0, RetryInMS: int64(g.dice(2000)), Permanent: g.dice(3) == 0}
	case 7:
		return command.Extend{Hold: g.hold(m), LeaseMS: g.lease(), Progress: g.bytes("7")}
	case 8:
		return command.Release{Hold: g.hold(m), DelayMS: int64(pick(g.generator, 0, 0, 1000))}
	case 9:
		return command.Retry{ID: g.id(m), AddAttempts: int32(g.dice(3))}
	case 10:
		return command.Cancel{ID: g.id(m)}
	}
	return command.Delete{ID: g.id(m)}
}

// command returns any command of feature level 2 but a batch.
func (g lifeGenerator) command(m *Machine) command.Command {
	switch g.dice(14) {
	case 13:
		return command.SetShare{Type: pick(g.generator, "mail", "scan"), ShareKey: pick(g.generator, "ann", "ben"), Settings: record.ShareSettings{
			Paused: g.dice(5) == 0, MaxClaimed: int32(g.dice(3)), RateLimit: pick[int64](g.generator, 0, 0, 500_000, 3_000_000),
		}}
	case 12:
		return g.ofParent(m)
	case 0:
		return command.Tick{}
	case 1:
		return g.setType()
	case 2:
		return command.Patch{
			ID: g.id(m), SetPriority: g.dice(2) == 0, Priority: int32(g.dice(3)),
			SetRunAt: g.dice(2) == 0, RunAt: g.stamp.T + int64(g.dice(2000)) - 1000,
			SetLabels: g.dice(2) == 0, Labels: []record.Label{{Name: "b", Value: "2"}},
			SetShareKey: g.dice(2) == 0, ShareKey: pick(g.generator, "", "ann", "ben"),
		}
	case 3:
		return command.Evict{Bytes: int64(g.dice(3000))}
	case 4:
		return g.expire(m)
	case 5:
		return command.ClaimTask{ID: g.id(m), WorkerID: g.worker(), RequestID: g.request()}
	}
	return g.op(m)
}

func (g lifeGenerator) batch(m *Machine) command.Command {
	c := command.Batch{Atomic: g.dice(3) > 0, Ops: make([]command.Command, 1+g.dice(3))}
	for i := range c.Ops {
		c.Ops[i] = g.op(m)
	}
	return c
}

func (g lifeGenerator) setType() command.Command {
	return command.SetType{
		Type: pick(g.generator, "mail", "scan", "video"), Set: record.TypeFields(g.dice(int(record.TypeFieldsAll) + 1)),
		Settings: record.TypeSettings{
			Paused: g.dice(6) == 0, MaxClaimed: int32(g.dice(4)), RateLimit: int64(pick(g.generator, 0, 500_000, 3_000_000)),
			RetentionMS: pick[int64](g.generator, 0, 1000, record.KeepNone), DeadLetter: pick(g.generator, "", "scan"), DeadLetterAfter: 1,
			MaxClaimedPerKey: int32(g.dice(3)), Fair: g.dice(2) == 0, RateLimitPerKey: pick[int64](g.generator, 0, 500_000, 3_000_000),
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

// TestBatch_UndoneLeavesNothing ensures that a machine that undid a batch cannot be told
// from one that never saw it: in the entry's other results, the state, its hash, everything
// derived, and whatever comes later.
func TestBatch_UndoneLeavesNothing(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		die := rapid.Uint32()
		p := newTwins(t, func(n int) int { return int(die.Draw(t, "die") % uint32(n)) })
		for range rapid.IntRange(0, 12).Draw(t, "before") {
			p.same()
		}
		p.undone(rapid.IntRange(0, 6).Draw(t, "ops"))
	})
}

// TestBatch_UndoneLeavesNothingOfALongRun is the same with more of everything.
func TestBatch_UndoneLeavesNothingOfALongRun(t *testing.T) {
	t.Parallel()
	for seed := range seeds(40) {
		p := newTwins(t, rand.New(rand.NewPCG(seed, 7)).IntN)
		for range 60 {
			p.same()
		}
		for range 3 {
			p.undone(12)
		}
	}
}

// twins are two machines that apply the same entries, except that only one of them
// sees the batches that are undone.
type twins struct {
	lifeGenerator
	t            rapid.TB
	plain, tried *Machine
}

func newTwins(t rapid.TB, dice func(n int) int) *twins {
	t.Helper()
	p := &twins{lifeGenerator: lifeGenerator{newGenerator(dice)}, t: t, plain: newSmall(), tried: newSmall()}
	p.plain.gone.max, p.tried.gone.max = 4, 4
	p.apply(command.SetLevel{Level: record.FeatureLevel}, command.SetTrail{Bytes: 1 << 20, AgeMS: 10_000})
	return p
}

// same applies a random entry.
func (p *twins) same() { p.apply(p.command(p.plain), p.command(p.plain)) }

// undone applies an entry that has, between two others, a batch that is refused
// at its end; then some more.
func (p *twins) undone(opsMax int) {
	refused := command.Delete{ID: record.IDMax}
	batch := command.Batch{Atomic: true, Ops: append(p.accepted(opsMax), refused)}
	first, last := p.command(p.plain), p.command(p.plain)
	p.pass()
	want := mustApplyTo(p.t, p.plain, testEntry{p.index, p.stamp, []command.Command{first, refused, last}})
	got := mustApplyTo(p.t, p.tried, testEntry{p.index, p.stamp, []command.Command{first, batch, last}})
	if r := got.Results[1]; r.Code == "" || r.Results != nil {
		p.t.Fatalf("a batch that should be refused was not: %s", outcomes(r))
	}
	got.Results[1] = want.Results[1]
	p.compare(want, got, batch)
	p.same()
	p.same()
}

// accepted returns ops that are all accepted in this order.
func (p *twins) accepted(most int) []command.Command {
	ahead := restore(p.t, snapshotOf(p.t, p.plain))
	ahead.gone.max = p.plain.gone.max
	var ops []command.Command
	for range most {
		op := p.op(ahead)
		a := mustApplyTo(p.t, ahead, testEntry{p.index + 1, p.stamp, []command.Command{command.Batch{Atomic: true, Ops: []command.Command{op}}}})
		if a.Results[0].Code == "" {
			ops = append(ops, op)
		}
	}
	return ops
}

func (p *twins) apply(commands ...command.Command) {
	p.t.Helper()
	p.pass()
	e := testEntry{p.index, p.stamp, commands}
	p.compare(mustApplyTo(p.t, p.plain, e), mustApplyTo(p.t, p.tried, e), commands)
}

// compare compares answers and states.
func (p *twins) compare(want, got Applied, after any) {
	p.t.Helper()
	if diff := diffBy(want, got, plansToo); diff != "" {
		p.t.Fatalf("after %+v, entry %d (-never saw the batch +undid it):\n%s", after, p.index, diff)
	}
	if err := p.tried.check(); err != nil {
		p.t.Fatalf("after %+v, entry %d: %v", after, p.index, err)
	}
	if !bytes.Equal(snapshotOf(p.t, p.plain), snapshotOf(p.t, p.tried)) || hashOf(p.plain) != hashOf(p.tried) {
		p.t.Fatalf("after %+v, entry %d: the states differ", after, p.index)
	}
}

// TestRestoreEqualsReplay_Batches restores at every step of logs in which
// batches, follow-ups and next claims come.
func TestRestoreEqualsReplay_Batches(t *testing.T) {
	t.Parallel()
	for seed := range seeds(4) {
		g := lifeGenerator{newGenerator(rand.New(rand.NewPCG(seed, 8)).IntN)}
		m := newSmall()
		log := make([]testEntry, 80)
		undone, done := 0, 0
		for i := range log {
			g.pass()
			log[i] = testEntry{g.index, g.stamp, []command.Command{g.command(m), g.batch(m)}}
			if i == 0 {
				log[i].Commands[0] = command.SetLevel{Level: record.FeatureLevel}
			}
			if r := mustApplyTo(t, m, log[i]).Results[1]; r.Code != "" {
				undone++
			} else {
				done++
			}
		}
		if undone < 10 || done < 10 {
			t.Errorf("seed %d: %d batches were undone, %d done", seed, undone, done)
		}
		r := newReplay(t, log)
		m = newSmall()
		for prefix := range log {
			r.checkRestore(t, m, prefix)
			applyLog(t, m, log[prefix:prefix+1])
		}
	}
}

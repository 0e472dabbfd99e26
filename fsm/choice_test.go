package fsm

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// choices makes commands for logs in which types have settings, tasks have
// groups, and claims choose in every way there is.
type choices struct {
	generator
	m *Machine
}

func newChoices(seed uint64) *choices {
	rng := rand.New(rand.NewPCG(seed, 2))
	return &choices{generator: *newGenerator(rng.IntN), m: newRestful()}
}

// log returns n entries.
func (g *choices) log(t testing.TB, n int) []testEntry {
	t.Helper()
	log := make([]testEntry, n)
	for i := range log {
		log[i] = g.apply(t)
	}
	return log
}

// apply makes the next entry and applies it.
func (g *choices) apply(t testing.TB) testEntry {
	t.Helper()
	g.stamp.U += int64(g.dice(400))
	g.stamp.T += int64(g.dice(400))
	e := testEntry{Index: g.m.Index() + 1, Stamp: g.stamp}
	if e.Index == 1 {
		e.Commands = []command.Command{command.SetLevel{Level: 1}}
	}
	for range 1 + g.dice(4) {
		e.Commands = append(e.Commands, g.choose())
	}
	mustApplyTo(t, g.m, e)
	return e
}

func (g *choices) taskType() string { return pick(&g.generator, "mail", "scan", "video") }

func (g *choices) choose() command.Command {
	switch g.dice(24) {
	case 0, 1, 2, 3, 4:
		return g.tasks()
	case 5, 6, 7, 8:
		return g.next()
	case 9:
		return command.ClaimTask{ID: g.id(g.m), WorkerID: g.worker()}
	case 10, 11, 12:
		return command.Complete{Hold: g.hold(g.m)}
	case 13, 14:
		return command.Fail{Hold: g.hold(g.m), RetryIn: g.dice(3) == 0, RetryInMS: int64(g.dice(900)), Permanent: g.dice(5) == 0}
	case 15:
		return command.Release{Hold: g.hold(g.m), DelayMS: int64(g.dice(2) * g.dice(900))}
	case 16, 17:
		return command.Retry{ID: g.id(g.m), AddAttempts: int32(g.dice(3))}
	case 18:
		return command.Cancel{ID: g.id(g.m)}
	case 19:
		return command.Patch{ID: g.id(g.m), SetPriority: true, Priority: int32(g.dice(3)), SetRunAt: g.dice(2) == 0, RunAt: g.stamp.T + int64(g.dice(900))}
	case 20:
		return g.expire(g.m)
	case 21:
		return command.Delete{ID: g.id(g.m)}
	case 22:
		return g.settings()
	}
	return command.Tick{}
}

func (g *choices) tasks() command.Command {
	tasks := make([]record.NewTask, 1+g.dice(3))
	for i := range tasks {
		tasks[i] = record.NewTask{
			Type: g.taskType(), Payload: []byte("p"),
			Priority:    int32(g.dice(3) * g.dice(2)),
			MaxAttempts: pick[int32](&g.generator, record.DefaultAttempts, 0, 1, 2, 1000, 2000),
			Group:       pick(&g.generator, "", "", "a", "b"),
			ShareKey:    pick(&g.generator, "", "", "ann", "ben"),
			DelayMS:     int64(g.dice(2) * g.dice(2) * 500),
		}
	}
	return command.Submit{Tasks: tasks}
}

func (g *choices) next() command.ClaimNext {
	c := command.ClaimNext{
		WorkerID:  g.worker(),
		Types:     pick(&g.generator, nil, []string{"mail"}, []string{"mail", "scan"}, []string{"mail", "none", "scan", "video"}),
		SortBy:    command.SortBy(g.dice(3)),
		Ascending: g.dice(2) == 0,
		Limit:     int32(pick(&g.generator, 1, 1, 2, 5)),
		RequestID: g.request(),
	}
	c.MoreAttempts = pick[int32](&g.generator, 0, 0, 1, 2, 999, 1000)
	return c
}

func (g *choices) settings() command.Command {
	return command.SetType{
		Type: g.taskType(),
		Set:  record.TypeFields(g.dice(int(record.TypeFieldsAll) + 1)),
		Settings: record.TypeSettings{
			Paused:     g.dice(3) == 0,
			MaxClaimed: int32(g.dice(4)),

			MaxClaimedPerKey: int32(g.dice(3)),
			RateLimitPerKey:  pick[int64](&g.generator, 0, 0, 1_000_000, 333_333),
			Fair:             g.dice(2) == 0,
			RateLimit:        pick[int64](&g.generator, 0, 1_000_000, 2_500_001, 333_333),
			LeaseMS:          int64(g.dice(2) * 700),
			LimitSet:         true, MaxAttempts: int32(g.dice(3)),
		},
	}
}

// TestChoices_OfARestoredMachine ensures that a machine restored at any entry
// of a log of groups, limits, pauses and random claims has the same hash and
// makes the same choices ever after, in every index in which it could differ.
func TestChoices_OfARestoredMachine(t *testing.T) {
	t.Parallel()
	for seed := range seeds(4) {
		log := newChoices(seed).log(t, 120)
		m, ahead := newSmall(), newSmall()
		results := applyLog(t, ahead, log)
		hash := hashOf(ahead)
		for i, e := range log {
			mustApplyTo(t, m, e)
			mustCheck(t, m)
			other := restore(t, snapshotOf(t, m))
			if hashOf(other) != hashOf(m) {
				t.Fatalf("seed %d: restored after entry %d, the hash differs", seed, i)
			}
			sameClaimable(t, newChoices(uint64(i)), m, other)
			if rest := applyLog(t, other, log[i+1:]); !reflect.DeepEqual(results[i+1:], rest) {
				t.Fatalf("seed %d: restored after entry %d (-replayed +restored):\n%s", seed, i, cmp.Diff(results[i+1:], rest))
			}
			if hashOf(other) != hash {
				t.Fatalf("seed %d: restored after entry %d, the last hash differs", seed, i)
			}
		}
	}
}

// sameClaimable compares what the two say of claims that are not made.
func sameClaimable(t testing.TB, g *choices, a, b *Machine) {
	t.Helper()
	for range 5 {
		c, now := g.next(), a.Stamp()
		now.T += int64(g.dice(2000))
		if a.Claimable(c, now) != b.Claimable(c, now) {
			t.Fatalf("%+v is claimable for one of them", c)
		}
	}
	now := a.Stamp()
	saved := func(m *Machine) []TypeView { // a type that has rates alone is no part of the state
		return slices.DeleteFunc(m.Types("", 0, now), func(v TypeView) bool {
			return v.Counts == TypeView{}.Counts && v.Settings == record.TypeSettings{}
		})
	}
	if diff := cmp.Diff(saved(a), saved(b), ratesAside); diff != "" {
		t.Fatalf("types (-replayed +restored):\n%s", diff)
	}
	at, ok := a.NextOpening()
	if bt, bok := b.NextOpening(); at != bt || ok != bok {
		t.Fatalf("next opening at %d %v, restored %d %v", at, ok, bt, bok)
	}
}

// TestChoices_AreWhatClaimableSays ensures that a claim takes something if, and
// only if, Claimable said so with the same clocks.
func TestChoices_AreWhatClaimableSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := newChoices(seed)
		for range 100 {
			g.apply(t)
			c := g.next()
			g.stamp.T += int64(g.dice(300))
			said := g.m.Claimable(c, g.stamp)
			r := mustApplyTo(t, g.m, testEntry{Index: g.m.Index() + 1, Stamp: g.stamp, Commands: []command.Command{c}}).Results[0]
			if took := len(r.Claims) > 0 || r.Code != ""; took != said {
				t.Fatalf("%+v: claimable %v, took %v", c, said, r.Claims)
			}
		}
	}
}

// roomPlainly returns how many tasks claims could take of the type; fewer if shares close before.
func roomPlainly(m *Machine, ts *typeState) int64 {
	r, t := ts.Record(), m.header.Stamp.T
	switch {
	case r == nil:
		return int64(ts.Ready())
	case r.Settings.Paused:
		return 0
	}
	return max(0, min(int64(ts.Ready()), ts.Slots(), r.ClaimsAt(t)))
}

// TestChoices_AreTold ensures that an entry after which claims of a type would take more
// than before names the type, so that no claim waits in front of claimable tasks. It counts
// all new ones if the type has no limits, otherwise at least one, unless time alone made
// more room where there was some.
func TestChoices_AreTold(t *testing.T) {
	t.Parallel()
	room := func(m *Machine, name string) int64 {
		ts := m.types.named(name)
		if ts == nil {
			return 0
		}
		return roomPlainly(m, ts)
	}
	for seed := range uint64(40) {
		g := newChoices(seed)
		m := New()
		for range 150 {
			e := g.apply(t)
			before := map[string]int64{}
			for _, name := range []string{"mail", "scan", "video"} {
				before[name] = room(m, name)
			}
			told := map[string]int64{}
			for _, r := range mustApplyTo(t, m, e).Ready {
				if told[r.Type] > 0 || r.Count < 1 {
					t.Fatalf("%+v is told twice, or of nothing", r)
				}
				told[r.Type] = int64(r.Count)
			}
			for name, was := range before {
				least := room(m, name) - was
				if *m.types.settingsOf(name) != (record.TypeSettings{}) {
					least = min(least, 1)
					if m.types.settingsOf(name).RateLimit > 0 && was > 0 {
						least = 0
					}
				}
				if told[name] < least {
					t.Fatalf("seed %d: entry %+v told %v, room of type %s was %d and is %d", seed, e, told, name, was, room(m, name))
				}
			}
		}
	}
}

// TestChoices_SnapshotIsOfItsMoment ensures that settings and buckets do not
// change in a snapshot that is written late.
func TestChoices_SnapshotIsOfItsMoment(t *testing.T) {
	t.Parallel()
	log := newChoices(3).log(t, 200)
	m := newSmall()
	applyLog(t, m, log[:100])
	now := snapshotOf(t, m)
	s := m.Snapshot()
	defer s.Release()
	applyLog(t, m, log[100:])
	if !bytes.Equal(written(t, s), now) {
		t.Error("the snapshot changed while it lived")
	}
}

package fsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// wide makes commands about many types and many tasks of each: more than what the
// indexes keep side by side, and lists of types that look much alike.
type wide struct {
	dice  func(n int) int
	index uint64
	stamp record.Stamp
	most  int // tasks of one submit
	lists [][]string
	near  int               // where in lists those are that are asked for now
	then  []command.Command // the next ones
}

func newWide(seed uint64) *wide {
	g := &wide{dice: rand.New(rand.NewPCG(seed, 9)).IntN, stamp: record.Stamp{T: 1_700_000_000_000}, most: 3}
	if seed%2 == 0 {
		g.most = 25
	}
	for range 40 { // more than are remembered
		list := make([]string, 1+g.dice(9))
		for i := range list {
			list[i] = g.typeName()
		}
		// Lists with the same beginning, in another order, and with duplicates.
		g.lists = append(g.lists, list, list[:1+len(list)/2], slices.Sorted(slices.Values(list)), append(slices.Clone(list), list[0]))
	}
	return g
}

// typeName returns one of 40 names: of some the bytes look like further names.
func (g *wide) typeName() string {
	switch n := g.dice(40); n {
	case 0:
		return "t\x12\x02t1"
	case 1:
		return "\x12"
	default:
		return fmt.Sprint("t", n)
	}
}

// list returns one of the lists, mostly one of a few for a while.
func (g *wide) list() []string {
	if g.dice(30) == 0 {
		g.near = g.dice(len(g.lists) - 8)
	}
	return g.lists[g.near+g.dice(8)]
}

func (g *wide) claim() command.ClaimNext {
	c := command.ClaimNext{
		WorkerID: fmt.Sprint("w", g.dice(3)), SortBy: command.SortBy(g.dice(2)), Ascending: g.dice(2) > 0,
		Limit: 1, LeaseMS: 1000, Types: g.list(),
	}
	switch g.dice(6) {
	case 0:
		c.Types = nil
	case 1:
		c.Limit = int32(1 + g.dice(100))
		c.Types = slices.Compact(slices.Sorted(slices.Values(c.Types)))
	case 2:
		c.MoreAttempts = int32(g.dice(3))
	case 3:
		c.SortBy = command.SortRandom
		c.Limit = int32(1 + g.dice(100))
		c.Types = slices.Compact(slices.Sorted(slices.Values(c.Types)))
	}
	return c
}

func (g *wide) submit(most int) command.Submit {
	s := command.Submit{Tasks: make([]record.NewTask, 1+g.dice(most))}
	name, priority := g.typeName(), int32(g.dice(8)-4)
	for i := range s.Tasks {
		if g.dice(8) == 0 {
			name, priority = g.typeName(), int32(g.dice(3))
		}
		s.Tasks[i] = record.NewTask{Type: name, Priority: priority, MaxAttempts: int32(g.dice(3)), Payload: []byte("p")}
	}
	return s
}

// id returns the id of a task that may be there.
func (g *wide) id(m *Machine) uint64 { return uint64(1 + g.dice(int(m.header.NextID))) }

// held returns the hold of a claim that lives, if there is one.
func (g *wide) held(m *Machine) command.Hold {
	id := g.id(m)
	for l := range m.Leases() {
		if id = l.TaskID; g.dice(4) == 0 {
			break
		}
	}
	h := command.Hold{ID: id}
	if t := m.Get(id); t != nil {
		h.WorkerID, h.Token = t.WorkerID, t.Token
	}
	return h
}

// op returns a command that a batch may hold.
func (g *wide) op(m *Machine) command.Command {
	switch g.dice(10) {
	case 0:
		return g.submit(1)
	case 1:
		return command.Complete{Hold: g.held(m)}
	case 2:
		return command.Fail{Hold: g.held(m), Error: "e"}
	case 3:
		return command.Release{Hold: g.held(m)}
	case 4:
		return command.Cancel{ID: g.id(m)}
	case 5, 6:
		return command.Delete{ID: g.id(m)}
	default:
		return g.claim()
	}
}

// clear returns what removes the tasks of some types, so that these are forgotten.
func (g *wide) clear(m *Machine) command.Command {
	names := g.list()
	b := command.Batch{Atomic: g.dice(2) > 0}
	for id, t := range m.tasks.All() {
		switch {
		case !slices.Contains(names, t.Type) || t.Status == record.StatusClaimed:
			continue
		case !t.Status.Ended():
			b.Ops = append(b.Ops, command.Cancel{ID: id})
		}
		b.Ops = append(b.Ops, command.Delete{ID: id})
	}
	if len(b.Ops) == 0 || g.dice(3) == 0 {
		b.Ops = append(b.Ops, command.Delete{ID: record.IDMax}) // is refused
	}
	return b
}

func (g *wide) command(m *Machine) command.Command {
	if len(g.then) > 0 {
		next := g.then[0]
		g.then = g.then[1:]
		return next
	}
	switch g.dice(12) {
	case 0, 1:
		return g.submit(g.most)
	case 2:
		c := command.SetType{Type: g.typeName(), Set: record.TypePaused | record.TypeMaxClaimed}
		if g.dice(2) > 0 {
			c.Settings = record.TypeSettings{Paused: g.dice(2) > 0, MaxClaimed: int32(g.dice(4))}
		}
		return c
	case 3:
		return command.Patch{ID: g.id(m), SetPriority: true, Priority: int32(g.dice(9) - 4)}
	case 4, 5:
		b := command.Batch{Atomic: g.dice(2) > 0}
		for range 1 + g.dice(30) {
			b.Ops = append(b.Ops, g.op(m))
		}
		if b.Atomic && g.dice(2) > 0 {
			b.Ops = append(b.Ops, command.Delete{ID: record.IDMax}) // is refused
		}
		return b
	case 6:
		g.then = []command.Command{g.clear(m), g.claim(), g.claim(), g.claim()}
		return g.claim()
	case 7:
		c := command.Complete{Hold: g.held(m)}
		then := g.claim()
		then.WorkerID = c.WorkerID
		c.Claim = &then
		return c
	default:
		return g.op(m)
	}
}

// TestMachine_RemembersNothing compares machines that differ only in caches: one that
// decodes entries, one that gets commands, one that answers into reused memory and has
// views, one that replays, and one that is restored now and then.
func TestMachine_RemembersNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g := newWide(seed)
			given, decoded, reused, replayed, restored := New(), New(), newRestful(), newRestful(), New()
			memory := NewAnswers()
			var view *snapshot.Snapshot
			var hash [16]byte
			for range 100 {
				g.index++
				g.stamp.U += int64(g.dice(300))
				g.stamp.T += int64(g.dice(300))
				e := testEntry{Index: g.index, Stamp: g.stamp}
				if g.index == 1 {
					e.Commands = []command.Command{command.SetLevel{Level: record.FeatureLevel}}
				}
				for range 1 + g.dice(12) {
					e.Commands = append(e.Commands, g.command(given))
				}
				entry := command.AppendEntry(nil, e.Stamp, e.Commands...)
				want := mustApplyTo(t, given, e)
				for name, m := range map[string]*Machine{"decoded": decoded, "restored": restored} {
					if diff := diffBy(want, mustApply(t, m, e.Index, entry), plansToo, alike); diff != "" {
						t.Fatalf("entry %d (-given +%s):\n%s", e.Index, name, diff)
					}
				}
				if _, err := replayed.Replay(e.Index, entry); err != nil {
					t.Fatal(err)
				}
				got, err := reused.ApplyInto(memory, e.Index, entry)
				if err != nil {
					t.Fatal(err)
				}
				if diff := diffBy(want, got, plansToo, alike); diff != "" {
					t.Fatalf("entry %d (-given +into reused memory):\n%s", e.Index, diff)
				}
				if g.dice(10) == 0 {
					if view != nil {
						if view.Hash() != hash {
							t.Fatalf("the view of index %d changed", view.Index())
						}
						view.Release()
					}
					view = reused.Snapshot()
					hash = view.Hash()
				}
				if g.dice(25) > 0 {
					continue
				}
				for _, m := range []*Machine{given, decoded, reused, replayed, restored} {
					mustCheck(t, m)
				}
				saved := snapshotOf(t, given)
				if !bytes.Equal(saved, snapshotOf(t, decoded)) || !bytes.Equal(saved, snapshotOf(t, reused)) || !bytes.Equal(saved, snapshotOf(t, replayed)) || !bytes.Equal(saved, snapshotOf(t, restored)) {
					t.Fatalf("the states differ after entry %d", e.Index)
				}
				if restored, err = ReadSnapshot(bytes.NewReader(saved)); err != nil {
					t.Fatal(err)
				}
			}
			if hashOf(given) != hashOf(decoded) || hashOf(given) != hashOf(reused) || hashOf(given) != hashOf(replayed) || hashOf(given) != hashOf(restored) {
				t.Fatal("the states differ at the end")
			}
			t.Logf("%d tasks, %d types", given.tasks.Len(), given.types.Len())
		})
	}
}

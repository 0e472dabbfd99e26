package replica

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Any difference in an entry gives another chain, and later entries do not make it equal
// again.
func TestChainLink_tellsApart(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	for _, c := range []struct {
		name               string
		chain, index, term uint64
		entry              string
	}{
		{"the entry", 1, 2, 3, "abc"},
		{"another chain before it", 2, 2, 3, "abc"},
		{"another index", 1, 3, 3, "abc"},
		{"another term", 1, 2, 4, "abc"},
		{"index and term in each other's place", 1, 3, 2, "abc"},
		{"another byte", 1, 2, 3, "abd"},
		{"a byte less", 1, 2, 3, "ab"},
		{"nothing", 1, 2, 3, ""},
		{"a zero", 1, 2, 3, "\x00"},
		{"two zeros", 1, 2, 3, "\x00\x00"},
	} {
		chain := chainLink(c.chain, c.index, c.term, []byte(c.entry))
		for next := uint64(4); next < 100; next++ {
			if same, ok := seen[chain]; ok {
				t.Errorf("%s: the chain of %s", c.name, same)
			}
			seen[chain] = fmt.Sprintf("%s, %d entries on", c.name, next-4)
			chain = chainLink(chain, next, 3, []byte("the same for all"))
		}
	}
}

// A node knows its chain at every index between its oldest and its newest point; at an
// index without a command it equals the previous command's.
func TestChainPoints(t *testing.T) {
	t.Parallel()
	for _, count := range []uint64{1, 2, chainPointsMax - 1, chainPointsMax, chainPointsMax + 1, 2*chainPointsMax + 7} {
		var c chainPoints
		c.restart(ChainPoint{})
		c.restart(ChainPoint{Index: 10, Chain: 100})
		for i := uint64(1); i < count; i++ { // every tenth index has a command
			c.add(ChainPoint{Index: 10 + 10*i, Chain: 100 + i})
		}
		newest := 10 * count
		if got := c.newest(); got != (ChainPoint{newest, 99 + count}) {
			t.Errorf("%d points: the newest is %v", count, got)
		}
		oldest := uint64(10)
		if count > chainPointsMax {
			oldest = 10 * (count - chainPointsMax + 1)
		}
		for _, index := range []uint64{oldest, oldest + 1, oldest + 9, (oldest + newest) / 2, newest, newest + 1000} {
			want := ChainPoint{min(index/10*10, newest), 0}
			want.Chain = 99 + want.Index/10
			if got, ok := c.at(index); !ok || got != want {
				t.Errorf("%d points: at %d %v, %v; want %v", count, index, got, ok, want)
			}
		}
		if got, ok := c.at(oldest - 1); ok {
			t.Errorf("%d points: still has %v at %d", count, got, oldest-1)
		}
	}
}

// Two nodes that have applied the same entries have the same chain, no matter whether from
// the log or from a snapshot and the rest of the log; a node that has not has another one.
func TestReplica_chain(t *testing.T) {
	t.Parallel()
	log := func(f *Replica, from, to uint64, change func(*raft.Log)) {
		for i := from; i <= to; i++ {
			l := &raft.Log{Index: i, Term: 1 + i/4, Data: replicatest.Entry(int64(i), command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}})}
			if change != nil {
				change(l)
			}
			f.Apply(l)
		}
	}
	node := func() *Replica { return newTestReplica(t, func(err error) { t.Error(err) }) }
	whole := node()
	log(whole, 1, 9, nil)
	want := whole.ChainAt(9)
	if want == "" || whole.ChainAt(8) == want {
		t.Fatalf("chains %q and %q", whole.ChainAt(8), want)
	}
	if got := whole.ChainAt(10); got != "" {
		t.Errorf("says %s of what it has not applied", got)
	}

	half := node()
	log(half, 1, 5, nil)
	rest := node()
	if err := rest.Restore(replicatest.NewSnapshot(replicatest.Persisted(t, half))); err != nil {
		t.Fatal(err)
	}
	log(rest, 6, 9, nil)
	if got := rest.ChainAt(9); got != want {
		t.Errorf("over a snapshot the chain is %s, want %s", got, want)
	}
	if got := rest.ChainAt(4); got != "" {
		t.Errorf("says %s of what is below its snapshot", got)
	}

	for name, change := range map[string]func(l *raft.Log){
		"another term": func(l *raft.Log) {
			if l.Index == 3 {
				l.Term = 9
			}
		},
		"another entry": func(l *raft.Log) {
			if l.Index == 3 {
				l.Data = replicatest.Entry(3, command.Tick{})
			}
		},
	} {
		other := node()
		log(other, 1, 9, change)
		if other.ChainAt(2) != whole.ChainAt(2) {
			t.Errorf("%s: differs before it", name)
		}
		for i := uint64(3); i <= 9; i++ {
			if other.ChainAt(i) == whole.ChainAt(i) {
				t.Errorf("%s: the same chain at %d", name, i)
			}
		}
	}

	// A node that has passed an index without a command differs from one with a command
	// there.
	short := node()
	log(short, 1, 8, nil)
	short.StoreConfiguration(9, raft.Configuration{})
	if got := short.ChainAt(9); got == "" || got == want {
		t.Errorf("without the last entry it says %q, with it %q", got, want)
	}
}

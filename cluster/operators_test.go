package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// toldOf returns the messages of the events of that kind in the node's trail.
func toldOf(t *testing.T, n *cluster.Node, kind event.Kind) []string {
	t.Helper()
	var messages []string
	_, err := n.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
		for _, e := range m.Events(event.Query{Kinds: event.Kinds(0).With(kind), Limit: 100}).Events {
			messages = append(messages, e.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// TestTell_anyNode ensures that anything a node tells is in the trail of all nodes, whether
// it leads or not, and with texts of any length.
func TestTell_anyNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		ctx := context.Background()
		nodes := append(c.Followers(), c.Leader())
		c.Leader().SetOperators(func(string) (string, bool) { return "ann", true })
		for _, n := range nodes {
			if err := n.Tell(ctx, command.Tell{Kind: event.BackupSaved, By: "ann", What: n.NodeID()}, "a key"); err != nil {
				t.Fatalf("%s tells: %v", n.NodeID(), err)
			}
		}
		if err := nodes[0].Tell(ctx, command.Tell{Kind: event.Restored, What: strings.Repeat("ž", 100_000)}, ""); err != nil {
			t.Fatal(err)
		}
		c.EnsureSame()
		for _, n := range nodes {
			got := toldOf(t, n, event.BackupSaved)
			for i, by := range nodes {
				if len(got) != len(nodes) || got[i] != by.NodeID()+" by ann" {
					t.Errorf("the trail of %s tells %q", n.NodeID(), got)
					break
				}
			}
			if got := toldOf(t, n, event.Restored); len(got) != 1 || len(got[0]) != 1024 {
				t.Errorf("the trail of %s tells %d times", n.NodeID(), len(got))
			}
		}
		// An entry of an unknown kind can be read on all nodes.
		if err := nodes[0].Tell(ctx, command.Tell{Kind: 60, What: "x"}, ""); err != nil {
			t.Fatal(err)
		}
		c.EnsureSame()
	})
}

// TestTell_byWhom ensures that the leader finds out by the key who did the thing that
// another node tells, and that no node can claim a name.
func TestTell_byWhom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		ctx, leader, other := context.Background(), c.Leader(), c.Followers()[0]
		tell := func(by, key string) {
			t.Helper()
			if err := other.Tell(ctx, command.Tell{Kind: event.BackupSaved, By: by, What: "it"}, key); err != nil {
				t.Fatal(err)
			}
		}
		tell("ann", "key of ann") // to a leader that knows no key yet
		leader.SetOperators(func(key string) (name string, ok bool) {
			name, ok = strings.CutPrefix(key, "key of ")
			return name, ok
		})
		tell("ann", "key of ann")
		tell("ann", "key of bob")
		tell("ann", "another key")
		tell("ann", "")
		if _, err := leader.Answer(ctx, "tell", []byte(`{"Kind":46,"kind":46,"what":"it","by":"ann","By":"ann"}`)); err != nil {
			t.Fatal(err)
		}
		const unknown = "it, with a key that the leader does not know"
		want := []string{unknown, "it by ann", "it by bob", unknown, "it"}
		if got := toldOf(t, leader, event.BackupSaved); !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if got := toldOf(t, leader, event.Restored); len(got) != 1 || got[0] != "it" {
			t.Errorf("a forged name: %q", got)
		}
	})
}

// TestTell_upgrade ensures that the trail tells which levels a cluster has had, and who raised
// them.
func TestTell_upgrade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.Stop(2) // then the first level is a low one
		c.Leader()
		c.Start(2)
		c.Wait("the upgrade", func() bool {
			level, err := c.Leader().Upgrade(context.Background(), "ann")
			return err == nil && level == fsm.FeatureLevel()
		})
		want := []string{"1", fmt.Sprintf("%d by ann", fsm.FeatureLevel())}
		if got := toldOf(t, c.Leader(), event.LevelRaised); !slices.Equal(got, want) {
			t.Errorf("the trail tells of the levels %q, want %q", got, want)
		}
	})
}

// TestTell_withoutLeader ensures that it fails within its bound when there is no leader.
func TestTell_withoutLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		one := c.Followers()[0]
		c.Partition(one)
		<-time.After(10 * time.Second)
		if err := one.Tell(context.Background(), command.Tell{Kind: event.Restored}, ""); !errors.Is(err, nodes.ErrNoLeader) {
			t.Errorf("told without a leader: %v, want ErrNoLeader", err)
		}
		c.Heal()
	})
}

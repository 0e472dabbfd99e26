package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// patiently bounds an operator's call in virtual time.
func patiently(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// refusedWith checks that err is a refusal with these words.
func refusedWith(t *testing.T, what string, err error, words string) {
	t.Helper()
	var refused *nodes.MembershipRefused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want a refusal that says %q", what, err, words)
	}
}

// viewOf returns a node's view of another one.
func viewOf(n *cluster.Node, nodeID string) nodes.NodeView {
	for _, v := range n.Cluster(context.Background()).Nodes {
		if v.NodeID == nodeID {
			return v
		}
	}
	return nodes.NodeView{}
}

// syncBuffer is a log shared by several nodes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A leader that has transferred its leadership restarts its Raft in the same process: it
// keeps its state, gets new entries, votes, and can lead again.
func TestNode_Transfer(t *testing.T) {
	t.Parallel()
	for _, snapshot := range []bool{false, true} {
		t.Run(fmt.Sprintf("snapshot %t", snapshot), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log syncBuffer
				c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
				old := c.Leader()
				for i := range 20 {
					c.Propose(submit(fmt.Sprint("before", i)))
				}
				if snapshot {
					if _, err := old.TakeSnapshot(t.Context()); err != nil {
						t.Fatal(err)
					}
					c.Propose(submit("after the snapshot"))
				}
				at := old.AppliedIndex()
				to := c.Followers()[0]
				leader, err := old.Transfer(patiently(t), to.NodeID())
				if err != nil || leader != to.NodeID() {
					t.Fatalf("transfer to %s: %q, %v", to.NodeID(), leader, err)
				}
				if got := old.AppliedIndex(); got < at {
					t.Errorf("the old leader went back from index %d to %d", at, got)
				}
				if !strings.Contains(log.String(), "raft started again") {
					t.Error("the old leader has not started its Raft again")
				}
				c.Propose(submit("with the new leader"))
				c.EnsureSame()

				// The entry now needs its vote and its disk.
				third := c.Followers()[0]
				if third == old {
					third = c.Followers()[1]
				}
				place := c.Place(third)
				c.Stop(place)
				c.Propose(submit("with two of three"))
				// It leads again, and is followed.
				c.Wait("the old leader to lead again", func() bool {
					leader, err := c.Leader().Transfer(patiently(t), old.NodeID())
					return err == nil && leader == old.NodeID()
				})
				c.Wait("it to serve", old.IsLeader)
				if _, err := old.Propose(t.Context(), submit("led by the old leader")); err != nil {
					t.Errorf("propose: %v", err)
				}
				c.Start(place)
				c.EnsureSame()
				// A leader that restarts from its disk has the same state.
				c.Restart(c.Place(old))
				c.Propose(submit("after a restart"))
				c.EnsureSame()
			})
		})
	}
}

// A transfer to an unsuitable node is refused with an explanation, and the leader stays.
func TestNode_Transfer_refused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader, followers := c.Leader(), c.Followers()
		nonvoter, down := followers[0].NodeID(), followers[1].NodeID()
		_, err := leader.Transfer(patiently(t), "n9")
		refusedWith(t, "to nobody", err, `No member is named "n9"`)
		if err := leader.DemoteNode(patiently(t), nonvoter, nodes.Operator{}); err != nil {
			t.Fatal(err)
		}
		_, err = leader.Transfer(patiently(t), nonvoter)
		refusedWith(t, "to a nonvoter", err, "is not a voter")
		_, err = followers[0].Transfer(patiently(t), "")
		if !errors.Is(err, nodes.ErrNotLeader) {
			t.Errorf("at a follower: %v, want ErrNotLeader", err)
		}
		if to, err := leader.Transfer(patiently(t), leader.NodeID()); err != nil || to != leader.NodeID() {
			t.Errorf("to the leader itself: %q, %v", to, err)
		}
		c.Stop(c.Place(followers[1]))
		if !leader.IsLeader() {
			return // two voters, one of them down: the leader may have noticed already
		}
		_, err = leader.Transfer(patiently(t), down)
		if errors.Is(err, nodes.ErrNoLeader) || errors.Is(err, nodes.ErrNotLeader) {
			return // it has
		}
		refusedWith(t, "to one that is down", err, "could not lead")
	})
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 1)
		_, err := c.Leader().Transfer(patiently(t), "")
		refusedWith(t, "of a single node", err, "No other voter")
		refusedWith(t, "removing the last voter", c.Leader().RemoveNode(patiently(t), "n1", nodes.Operator{}), "last voter")
		refusedWith(t, "demoting the last voter", c.Leader().DemoteNode(patiently(t), "n1", nodes.Operator{}), "last voter")
	})
}

// A demoted node gets every entry but has no vote until it is promoted, no matter who leads
// and how often it or the leader restarts.
func TestNode_DemoteNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 4)
		node := c.Followers()[0]
		id, place := node.NodeID(), c.Place(node)
		if err := c.Leader().DemoteNode(patiently(t), id, nodes.Operator{}); err != nil {
			t.Fatal(err)
		}
		stays := func(when string) {
			t.Helper()
			for range 30 {
				c.Propose(submit(""))
				<-time.After(time.Second)
				if v := viewOf(c.Leader(), id); v.Suffrage != "nonvoter" {
					t.Fatalf("%s it is a %s", when, v.Suffrage)
				}
			}
		}
		stays("after the demotion")
		if _, err := c.Leader().Transfer(patiently(t), ""); err != nil {
			t.Fatal(err)
		}
		stays("with another leader")
		c.Restart(place)
		c.Restart(c.Place(c.Leader()))
		stays("after restarts")
		c.EnsureSame()
		for range 2 { // a repeat is fine
			c.Wait("the promotion", func() bool { return c.Leader().PromoteNode(patiently(t), id, nodes.Operator{}) == nil })
		}
		if v := viewOf(c.Leader(), id); v.Suffrage != "voter" {
			t.Errorf("after the promotion it is a %s", v.Suffrage)
		}
	})
}

// A leader that should be removed, or lose its vote, transfers its leadership first, and
// the next leader makes the change.
func TestNode_removeAndDemoteLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 4)
		demoted := c.Leader()
		if err := demoted.DemoteNode(patiently(t), demoted.NodeID(), nodes.Operator{}); err != nil {
			t.Fatal(err)
		}
		if c.Leader() == demoted || viewOf(c.Leader(), demoted.NodeID()).Suffrage != "nonvoter" {
			t.Errorf("%s leads, the demoted %s is %+v", c.Leader().NodeID(), demoted.NodeID(), viewOf(c.Leader(), demoted.NodeID()))
		}
		c.Propose(submit("a"))
		removed := c.Leader()
		if err := removed.RemoveNode(patiently(t), removed.NodeID(), nodes.Operator{}); err != nil {
			t.Fatal(err)
		}
		if c.Leader() == removed || viewOf(c.Leader(), removed.NodeID()).UUID != "" {
			t.Errorf("%s leads, and sees %+v", c.Leader().NodeID(), viewOf(c.Leader(), removed.NodeID()))
		}
		c.Propose(submit("b"))
		// It learns that, and no longer takes part.
		c.Wait("the removed node to know", func() bool { return strings.Contains(fmt.Sprint(removed.Ready()), "was removed") })
		<-removed.Left()
		if _, err := removed.Propose(t.Context(), submit("c")); !errors.Is(err, nodes.ErrNoLeader) {
			t.Errorf("propose at a removed node: %v, want ErrNoLeader", err)
		}
		refusedWith(t, "removing it again", c.Leader().RemoveNode(patiently(t), removed.NodeID(), nodes.Operator{}), "No member is named")
	})
}

// A change of the leader itself is in the trail with the name of the key's owner: the next
// leader, which makes the change, finds out the name by itself.
func TestNode_changeOfLeaderIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 4)
		for _, n := range append(c.Followers(), c.Leader()) {
			n.SetOperators(func(key string) (string, bool) { return "ann", key == "ann's key" })
		}
		by := nodes.Operator{Name: "not ann", Key: "ann's key"}
		demoted := c.Leader()
		if err := demoted.DemoteNode(patiently(t), demoted.NodeID(), by); err != nil {
			t.Fatal(err)
		}
		removed := c.Leader()
		if err := removed.RemoveNode(patiently(t), removed.NodeID(), by); err != nil {
			t.Fatal(err)
		}
		refusedWith(t, "removing it again", c.Leader().RemoveNode(patiently(t), removed.NodeID(), by), "No member is named")
		for kind, id := range map[event.Kind]string{event.MemberDemoted: demoted.NodeID(), event.MemberRemoved: removed.NodeID()} {
			if got := toldOf(t, c.Leader(), kind); len(got) != 1 || got[0] != id+" by ann" {
				t.Errorf("%s: the trail tells %q", kind, got)
			}
		}
	})
}

// A member cannot make the leader change anything that no operator requested.
func TestNode_changeWithoutOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		for _, n := range append(c.Followers(), c.Leader()) {
			n.SetOperators(func(key string) (string, bool) { return "ann", key == "ann's key" })
		}
		leader, victim := c.Leader(), c.Followers()[0].NodeID()
		for _, key := range []string{"", "another key"} {
			question := fmt.Sprintf(`{"act":"remove","node_id":%q,"key":%q}`, victim, key)
			answer, err := leader.Answer(t.Context(), "member", []byte(question))
			if err != nil || !strings.Contains(string(answer), "does not know the API key") {
				t.Errorf("key %q: %s, %v", key, answer, err)
			}
			refusedWith(t, "demoting the leader", leader.DemoteNode(patiently(t), leader.NodeID(), nodes.Operator{Key: key}), "does not know the API key")
			leader = c.Leader() // the leadership has moved
		}
		if view := viewOf(leader, victim); view.Suffrage != "voter" {
			t.Errorf("the victim is %+v", view)
		}
		if got := toldOf(t, leader, event.MemberRemoved); len(got) > 0 {
			t.Errorf("the trail tells %q", got)
		}
	})
}

// A node that was cut off while it was removed learns of it when it is back, and does no
// harm until then.
func TestNode_removedWhileAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader, away := c.Leader(), c.Followers()[0]
		c.Partition(away)
		if err := leader.RemoveNode(patiently(t), away.NodeID(), nodes.Operator{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if away.Ready() == nil || strings.Contains(away.Ready().Error(), "was removed") {
			t.Errorf("a node that is cut off says %v", away.Ready())
		}
		c.Heal()
		c.Wait("it to know", func() bool { return strings.Contains(away.Ready().Error(), "was removed") })
		c.Propose(submit("a"))
		if c.Leader() != leader {
			t.Error("its return has cost the leader its leadership")
		}
	})
}

// A voter is not removed if too few of the others are healthy.
func TestNode_RemoveNode_quorum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader, followers := c.Leader(), c.Followers()
		c.Stop(c.Place(followers[0]))
		for _, id := range []string{followers[1].NodeID(), leader.NodeID()} {
			refusedWith(t, "remove "+id, leader.RemoveNode(patiently(t), id, nodes.Operator{}), "only 1 of 2 voters would be healthy")
			refusedWith(t, "demote "+id, leader.DemoteNode(patiently(t), id, nodes.Operator{}), "only 1 of 2 voters would be healthy")
		}
		refusedWith(t, "promote the dead one", leader.PromoteNode(patiently(t), followers[0].NodeID(), nodes.Operator{}), "could not vote")
		if err := leader.RemoveNode(patiently(t), followers[0].NodeID(), nodes.Operator{}); err != nil {
			t.Errorf("remove the dead one: %v", err)
		}
	})
}

// The nodes' hashes are compared at a new index; an absent node has none.
func TestNode_Hashes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.Propose(submit("a"))
		view, err := c.Leader().Hashes(patiently(t))
		if err != nil || !view.Agree || len(view.Nodes) != 3 || view.Index == 0 {
			t.Fatalf("hashes: %+v, %v", view, err)
		}
		for _, n := range view.Nodes {
			if len(n.Hash) != 32 || n.Hash != view.Nodes[0].Hash {
				t.Errorf("hashes: %+v", view)
			}
		}
		gone := c.Followers()[0]
		id := gone.NodeID()
		c.Stop(c.Place(gone))
		view, err = c.Leader().Hashes(patiently(t))
		if err != nil || !view.Agree {
			t.Fatalf("without one: %+v, %v", view, err)
		}
		for _, n := range view.Nodes {
			if (n.Hash == "") != (n.NodeID == id) {
				t.Errorf("without %s: %+v", id, view)
			}
		}
		if _, err := c.Followers()[0].Hashes(patiently(t)); !errors.Is(err, nodes.ErrNotLeader) {
			t.Errorf("at a follower: %v, want ErrNotLeader", err)
		}
	})
}

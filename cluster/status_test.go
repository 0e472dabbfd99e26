package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

func TestNode_status(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		followers := c.Followers()
		for _, f := range followers {
			c.Wait("a follower to know the leader's URL", func() bool {
				return f.LeaderHTTPAddr() == "http://"+leader.NodeID() && f.Ready() == nil
			})
			if f.IsLeader() {
				t.Error("a follower says that it leads")
			}
			if _, err := f.Propose(context.Background(), submit("x")); !errors.Is(err, nodes.ErrNotLeader) {
				t.Errorf("propose on a follower: %v, want ErrNotLeader", err)
			}
			if _, err := f.ReadLinearizable(context.Background(), 0, func(*fsm.Machine, fsm.Stamp) {}); !errors.Is(err, nodes.ErrNotLeader) {
				t.Errorf("linearizable read on a follower: %v, want ErrNotLeader", err)
			}
		}
		view := followers[0].Cluster(context.Background())
		if view.Leader != leader.NodeID() || len(view.Nodes) != 3 || view.Term == 0 {
			t.Fatalf("a follower sees %+v", view)
		}
		for i, n := range view.Nodes {
			if !n.Healthy || n.Suffrage != "voter" || n.NodeID == "" || i > 0 && view.Nodes[i-1].NodeID >= n.NodeID {
				t.Errorf("node %d is seen as %+v", i, n)
			}
		}

		// An absent node is listed, with its record and the reason.
		gone := followers[1].NodeID()
		c.Stop(c.Place(followers[1]))
		for _, n := range leader.Cluster(context.Background()).Nodes {
			if n.NodeID == gone && (n.Healthy || n.State != "unknown" || !strings.Contains(n.Problem, "does not answer")) {
				t.Errorf("a stopped node is seen as %+v", n)
			}
		}

		// Without a majority no node is ready, and clients are not sent to another one.
		rest := followers[0]
		c.Partition(leader)
		c.Wait("the nodes to notice", func() bool { return leader.Ready() != nil && rest.Ready() != nil })
		for _, n := range []*cluster.Node{leader, rest} {
			if _, err := n.Propose(context.Background(), submit("x")); !errors.Is(err, nodes.ErrNoLeader) {
				t.Errorf("propose without a leader: %v, want ErrNoLeader", err)
			}
		}
	})
}

// Contact with a member in an earlier leadership of this node does not count in a later
// one.
func TestNode_status_heardInAnEarlierLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		first := c.Leader()
		c.Partition(first)
		c.Wait("the first leader to notice", func() bool { return first.Ready() != nil })
		second := c.Leader()
		c.Heal()
		c.Wait("the first leader to follow", func() bool { return first.Ready() == nil })
		<-time.After(3 * time.Minute)
		for _, f := range c.Followers() {
			if f != first {
				c.Partition(f) // so it lacks the next entries, and only the first can lead next
			}
		}
		c.Propose(submit("x"))
		gone := second.NodeID()
		c.Stop(c.Place(second))
		c.Heal()
		c.Wait("the first leader to lead again", first.IsLeader)
		for _, n := range first.Cluster(context.Background()).Nodes {
			if n.NodeID == gone && (n.LastContactMS > time.Minute.Milliseconds() || !strings.Contains(n.Problem, "does not answer")) {
				t.Errorf("a leader that stopped seconds ago is seen as %+v", n)
			}
		}
	})
}

// Above its memory limit a node refuses submits, and nothing else.
func TestNode_memoryLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 1, func(cfg *cluster.Config) { cfg.MemoryLimit = 100_000 })
		leader := c.Leader()
		var err error
		for range 1000 {
			if _, err = leader.Propose(context.Background(), submit("")); err != nil {
				break
			}
		}
		if !errors.Is(err, nodes.ErrOverloaded) {
			t.Fatalf("after a thousand submits: %v, want ErrOverloaded", err)
		}
		claimed := c.Propose(claim("w", time.Minute)).Result.Claims[0]
		done := c.Propose(command.Complete{Hold: command.Hold{ID: claimed.Task.ID, WorkerID: "w", Token: claimed.Token}})
		if done.Result.Code != "" {
			t.Errorf("complete: %s", done.Result.Code)
		}
	})
}

// A node that closes refuses calls with its own error, and may be closed twice.
func TestNode_close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		wait := make(chan error, 1)
		go func() {
			_, err := leader.ReadStale(context.Background(), 1<<40, func(*fsm.Machine, fsm.Stamp) {})
			wait <- err
		}()
		synctest.Wait()
		for range 2 {
			if err := leader.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if err := <-wait; !errors.Is(err, nodes.ErrShuttingDown) {
			t.Errorf("a read that waited: %v, want ErrShuttingDown", err)
		}
		if _, err := leader.Propose(context.Background(), submit("x")); !errors.Is(err, nodes.ErrShuttingDown) {
			t.Errorf("propose: %v, want ErrShuttingDown", err)
		}
		if err := leader.Ready(); !errors.Is(err, nodes.ErrShuttingDown) {
			t.Errorf("ready: %v, want ErrShuttingDown", err)
		}
		// It had transferred its leadership: another one serves at once.
		before := time.Now()
		c.Propose(submit("after"))
		if took := time.Since(before); took > 500*time.Millisecond {
			t.Errorf("%s without a leader after a graceful stop", took)
		}
	})
}

// The leader compares the nodes' states; if they are equal no node stops, and clocks move
// on while claims exist.
func TestNode_dutiesOverTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.Propose(submit("a"))
		c.Propose(claim("w", time.Hour))
		stamps := func() (u int64) {
			_, _ = c.Leader().ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) { u = m.Stamp().U })
			return u
		}
		for range 10 {
			before := stamps()
			<-time.After(5 * time.Second)
			if after := stamps(); after <= before {
				t.Fatalf("no tick within 5 s while a claim lives: U stayed at %d", after)
			}
		}
		c.EnsureSame()
	})
}

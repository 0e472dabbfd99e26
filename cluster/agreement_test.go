package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// differsWithin bounds the time until a node that differs learns of it: an interval of the
// leader's questions, and the time to ask.
const differsWithin = 7 * time.Second

// flipped makes a log write every "right" as "wrong".
func flipped(l *raft.Log) { l.Data = bytes.ReplaceAll(l.Data, []byte(`"right"`), []byte(`"wrong"`)) }

// differ makes the i-th node differ from the others in one task, which is committed.
func differ(c *clustertest.Cluster, i int) {
	c.Tamper(i, flipped)
	c.Propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`"right"`), Key: "it"}}})
	c.Wait("the node to have its own version of the task", func() bool { return paramsAt(c.Node(i)) == `"wrong"` })
	c.Tamper(i, nil)
}

// paramsAt returns that task's parameters at n.
func paramsAt(n *cluster.Node) (params string) {
	_, _ = n.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
		if task := m.ByKey("it"); task != nil {
			params = string(task.Params)
		}
	})
	return params
}

// watchReads repeatedly reads from the node, linearizably, until it is stopped. The returned
// function waits for that and tells whether the wrong version was ever answered.
func watchReads(n *cluster.Node) (wrong func() bool) {
	ctx, cancel := context.WithCancel(context.Background())
	var answered atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = n.ReadLinearizable(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) {
				if task := m.ByKey("it"); task != nil && string(task.Params) == `"wrong"` {
					answered.Store(true)
				}
			})
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() bool {
		cancel()
		<-done
		return answered.Load()
	}
}

// A follower that differs stops within seconds and says what to do; the others go on. Restarted
// from its own log it still differs, and stops again.
func TestAgreement_followerDiffers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.ExpectStops()
		c.Propose(submit("a"))
		at := c.Place(c.Followers()[0])
		differ(c, at)
		for range 2 {
			begun := time.Now()
			c.Wait("the follower to stop", func() bool { return c.Stopped(at) != nil })
			if took := time.Since(begun); took > differsWithin {
				t.Errorf("it took %s", took)
			}
			if text := c.Stopped(at).Error(); !strings.Contains(text, "join it again with an empty data folder") {
				t.Errorf("it says %q", text)
			}
			c.Restart(at)
		}
		c.Stop(at)
		c.Propose(submit("b"))
		for i := range 3 {
			if i != at && c.Stopped(i) != nil {
				t.Errorf("node %d stopped: %v", i, c.Stopped(i))
			}
		}
	})
}

// A node that differs and is elected answers nothing, and stops.
func TestAgreement_electedNodeDiffers(t *testing.T) {
	t.Parallel()
	for _, size := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := clustertest.New(t, size)
			c.ExpectStops()
			c.Propose(submit("a"))
			leader := c.Leader()
			wrongAt := c.Place(c.Followers()[0])
			node := c.Node(wrongAt)
			differ(c, wrongAt)
			wrong := watchReads(node)
			if _, err := leader.Transfer(context.Background(), node.NodeID()); err != nil && !errors.Is(err, nodes.ErrNoLeader) {
				t.Logf("transfer: %v", err)
			}
			c.Wait("it to stop", func() bool { return c.Stopped(wrongAt) != nil })
			if wrong() {
				t.Error("a linearizable read was answered by the node that differs")
			}
			c.Stop(wrongAt)
			c.Propose(submit("b"))
			if got := paramsAt(c.Leader()); got != `"right"` {
				t.Errorf("the others have %s", got)
			}
		})
	}
}

// A node that is elected before it has applied the entry in which it differs answers nothing
// either.
func TestAgreement_electedNodeComesToDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.ExpectStops()
		leader, followers := c.Leader(), c.Followers()
		node, wrongAt := followers[0], c.Place(followers[0])
		<-time.After(10 * time.Second) // the node records are written by now
		goOn := holdFirst(t, c, wrongAt, flipped)
		other := make(chan struct{})
		c.Tamper(c.Place(followers[1]), func(*raft.Log) { <-other }) // the other one makes the majority
		c.Propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`"right"`), Key: "it"}}})
		close(other)
		synctest.Wait() // all have it in their logs, and only the leader knows that it is committed
		wrong := watchReads(node)
		handed := make(chan struct{})
		go func() {
			defer close(handed)
			if _, err := leader.Transfer(context.Background(), node.NodeID()); err != nil && !errors.Is(err, nodes.ErrNoLeader) {
				t.Logf("transfer: %v", err)
			}
		}()
		awaitElected(c, node)
		if got := paramsAt(node); got != "" {
			t.Errorf("it has applied %s already", got)
		}
		goOn()
		c.Wait("it to stop", func() bool { return c.Stopped(wrongAt) != nil })
		<-handed
		if wrong() {
			t.Error("a linearizable read was answered by the node that differs")
		}
	})
}

// If two nodes are alive and differ, neither serves, and the leader says so; once the third is
// back, the one that it agrees with serves, and the other stops.
func TestAgreement_twoAliveDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.ExpectStops()
		c.Propose(submit("a"))
		followers := c.Followers()
		third, other := c.Place(followers[0]), c.Place(followers[1])
		leader := c.Leader()
		c.Stop(third)
		differ(c, other)
		c.Wait("the leader to serve no more", func() bool { return leader.Ready() != nil && !leader.IsLeader() })
		c.Wait("it to say why", func() bool { return strings.Contains(leader.Ready().Error(), "claimq cluster recover") })
		if _, err := leader.ReadLinearizable(context.Background(), 0, func(*fsm.Machine, fsm.Stamp) { t.Error("a read is answered") }); !errors.Is(err, nodes.ErrNoLeader) {
			t.Errorf("a read: %v", err)
		}
		if _, err := leader.Propose(context.Background(), submit("b")); !clustertest.NothingWritten(err) {
			t.Errorf("a submit: %v", err)
		}
		view := leader.Cluster(context.Background())
		for _, v := range view.Nodes {
			if v.NodeID == leader.NodeID() && (v.Healthy || v.TakesPart || !strings.Contains(v.Problem, "no majority")) {
				t.Errorf("the leader's view of itself: %+v", v)
			}
		}
		for i := range 3 {
			if c.Stopped(i) != nil {
				t.Errorf("node %d stopped: %v", i, c.Stopped(i))
			}
		}
		c.Start(third)
		c.Wait("the odd one to stop", func() bool { return c.Stopped(other) != nil })
		c.Propose(submit("b"))
		if got := paramsAt(c.Leader()); got != `"right"` || c.Place(c.Leader()) == other {
			t.Errorf("served is %s, by node %d", got, c.Place(c.Leader()))
		}
	})
}

// A nonvoter that differs gets no vote, and stops.
func TestAgreement_nonvoterDiffers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 4)
		c.ExpectStops()
		c.Propose(submit("a"))
		node := c.Followers()[0]
		at := c.Place(node)
		leader := c.Leader()
		if err := leader.DemoteNode(context.Background(), node.NodeID(), nodes.Operator{}); err != nil {
			t.Fatal(err)
		}
		differ(c, at)
		var refused *nodes.MembershipRefused
		if err := leader.PromoteNode(context.Background(), node.NodeID(), nodes.Operator{}); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "applied something else") {
			t.Errorf("promoted: %v", err)
		}
		c.Wait("it to stop", func() bool { return c.Stopped(at) != nil })
		for _, v := range leader.Cluster(context.Background()).Nodes {
			if v.NodeID == node.NodeID() && v.Suffrage != "nonvoter" {
				t.Errorf("it has become a %s", v.Suffrage)
			}
		}
	})
}

// A node continues the chain of the snapshot and log from which it starts, or without either
// that of the snapshot that it is sent: all nodes always agree.
func TestAgreement_afterSnapshots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.SnapshotLogCommands = 100 })
		for range 3 {
			for range 60 {
				c.Propose(submit("a"))
			}
			c.EnsureSame()
			for i := range 3 {
				c.Restart(i)
				c.Leader()
			}
		}
		begun := time.Now()
		c.Wait("them to be compared", func() bool { return time.Since(begun) > differsWithin })
		c.EnsureSame() // and no node has stopped, which would fail the test
	})
}

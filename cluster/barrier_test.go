package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
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

// holdFirst holds up the disk of node i as soon as it leads, at its first entry, until goOn is
// called: without that entry the node does not learn what is committed. change, if not nil, is
// first applied to everything that it writes.
func holdFirst(t *testing.T, c *clustertest.Cluster, i int, change func(*raft.Log)) (goOn func()) {
	held := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(held) })
	t.Cleanup(goOn)
	c.Tamper(i, func(l *raft.Log) {
		if l.Type == raft.LogNoop {
			<-held
		}
		if change != nil {
			change(l)
		}
	})
	return goOn
}

// awaitElected waits until the node leads, serving or not, and has made all progress that it can.
func awaitElected(c *clustertest.Cluster, n *cluster.Node) {
	c.Wait("it to be elected", func() bool {
		err := n.Ready()
		return n.IsLeader() || err != nil && strings.Contains(err.Error(), "has just been elected")
	})
	synctest.Wait()
}

// electBehind makes the leader acknowledge last. Then the only other node whose log has it is
// elected before it hears that last is committed, and before it can find out by itself, which it
// can after goOn is called.
func electBehind(t *testing.T, c *clustertest.Cluster, last command.Command) (next *cluster.Node, acknowledged nodes.Proposed, goOn func()) {
	t.Helper()
	<-time.After(10 * time.Second) // the node records are written by now
	c.EnsureSame()
	followers := c.Followers()
	next, other := followers[0], followers[1]
	c.Partition(other)
	acknowledged = c.Propose(last)
	goOn = holdFirst(t, c, c.Place(next), nil)
	c.Partition(next, other)
	awaitElected(c, next)
	if applied := next.AppliedIndex(); applied >= acknowledged.Index {
		t.Fatalf("it has applied entry %d already, want less than %d", applied, acknowledged.Index)
	}
	return next, acknowledged, goOn
}

// A node that is elected before it has applied acknowledged entries answers nothing until it has,
// and then correctly: nothing is missing or given out twice, no claim is refused, and no extended
// lease ends.
func TestLeader_behindWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		const lease = 15 * time.Second
		var holds []command.Hold
		for _, worker := range []string{"w1", "w2"} {
			c.Propose(submitOf("mail", 1))
			holds = append(holds, hold(c.Propose(claim(worker, lease))))
		}
		c.Propose(submitOf("fax", 1))
		next, acknowledged, goOn := electBehind(t, c, command.Batch{Ops: []command.Command{
			submitOf("mail", 1),
			command.Complete{Hold: holds[0]},
			command.Extend{Hold: holds[1], LeaseMS: time.Hour.Milliseconds()},
			claimOf("w3", "fax"),
		}})
		results := acknowledged.Result.Results
		submitted := results[0].Submitted[0].Task.ID
		fax := results[3].Claims[0]
		complete := command.Complete{Hold: command.Hold{ID: fax.Task.ID, WorkerID: "w3", Token: fax.Token}}

		for begun := time.Now(); time.Since(begun) < 2*lease; {
			ctx, cancel := context.WithTimeout(context.Background(), lease/10)
			_, err := next.ReadLinearizable(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) {
				t.Errorf("a read is answered of a state that has what was acknowledged: %t", m.Get(submitted) != nil)
			})
			if !errors.Is(err, nodes.ErrNoLeader) {
				t.Errorf("a read: %v", err)
			}
			for _, cmd := range []command.Command{claimOf("w4", "mail"), complete} {
				if p, err := next.Propose(ctx, cmd); !errors.Is(err, nodes.ErrNoLeader) {
					t.Errorf("%T: %+v, %v", cmd, p.Result, err)
				}
			}
			<-ctx.Done()
			cancel()
			if t.Failed() {
				return
			}
		}
		goOn()
		if leader := c.Leader(); leader != next {
			t.Fatalf("%s leads, want %s", leader.NodeID(), next.NodeID())
		}
		ctx := context.Background()
		if _, err := next.ReadLinearizable(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) {
			if m.Get(submitted) == nil || m.Get(holds[0].ID).Status != fsm.StatusCompleted {
				t.Error("a read does not show what was acknowledged")
			}
		}); err != nil {
			t.Error(err)
		}
		if p, err := next.Propose(ctx, complete); err != nil || p.Result.Code != "" {
			t.Errorf("a complete of a claim that was acknowledged: %q, %v", p.Result.Code, err)
		}
		many := claimOf("w4", "mail")
		many.Limit = 10
		p, err := next.Propose(ctx, many)
		if err != nil || len(p.Result.Claims) != 1 || p.Result.Claims[0].Task.ID != submitted {
			t.Errorf("a claim takes %+v, %v, want task %d alone", p.Result.Claims, err, submitted)
		}
		<-time.After(lease)
		if held := taskOf(next, holds[1].ID); held.Status != fsm.StatusClaimed || held.Token != holds[1].Token {
			t.Errorf("the task whose lease was extended: %s, token %d, want token %d", held.Status, held.Token, holds[1].Token)
		}
		c.Heal()
		c.EnsureSame()
	})
}

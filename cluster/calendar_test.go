package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// calendarAhead returns how far the calendar of an entry made now is ahead of the correct
// time.
func calendarAhead(c *clustertest.Cluster) time.Duration {
	p := c.Propose(command.Tick{})
	return time.Until(time.UnixMilli(p.Stamp.T))
}

// near reports whether d is within the normal deviation of the calendar when all clocks are
// correct.
func near(d time.Duration) bool { return d.Abs() < 100*time.Millisecond }

// The wall clock of one node does not move the calendar, neither by a jump while it leads
// nor when it becomes the leader, so that data kept for a day stay. Clocks of a majority do
// move it.
func TestNode_wallClockOfOne(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour, lease.WallBound + time.Second} {
		t.Run(jump.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.New(t, 3)
				id := c.Propose(submit("a")).Result.Submitted[0].Task.ID
				c.Propose(command.Complete{Hold: hold(c.Propose(claim("w", time.Minute)))})
				if ahead := calendarAhead(c); !near(ahead) {
					t.Fatalf("the calendar is %s ahead when all clocks are right", ahead)
				}
				wrong := c.Place(c.Leader())
				c.Clock(wrong).Jump(jump)
				for range 30 {
					if ahead := calendarAhead(c); !near(ahead) {
						t.Fatalf("the leader's clock jumped by %s: the calendar is %s ahead", jump, ahead)
					}
					<-time.After(400 * time.Millisecond)
				}
				// It leads again later, and others in between.
				led := 0
				for rounds := 0; led < 2 && rounds < 20; rounds++ {
					c.Restart(c.Place(c.Leader()))
					if c.Place(c.Leader()) == wrong {
						led++
					}
					if ahead := calendarAhead(c); !near(ahead) {
						t.Fatalf("node %d came to lead, node %d's clock is off by %s: the calendar is %s ahead", c.Place(c.Leader()), wrong, jump, ahead)
					}
				}
				if led == 0 {
					t.Error("the node whose clock is wrong never came to lead again")
				}
				if taskOf(c.Leader(), id) == nil {
					t.Error("the task that has ended is gone")
				}
				for i := range c.Len() {
					if i != wrong {
						c.Clock(i).Jump(jump.Abs())
					}
				}
				c.Wait("the calendar to follow two of three clocks", func() bool { return near(calendarAhead(c) - jump.Abs()) })
				c.EnsureSame()
			})
		})
	}
}

// hold returns the hold of the first new claim.
func hold(p nodes.Proposed) command.Hold {
	claim := &p.Result.Claims[0]
	return command.Hold{ID: claim.Task.ID, WorkerID: claim.Task.WorkerID, Token: claim.Token}
}

// If two voters answer, the earlier clock counts: one that is ahead moves nothing.
func TestNode_wallClockOfTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.Leader()
		c.Stop(0)
		c.Leader()
		c.Clock(1).Jump(365 * 24 * time.Hour)
		for range 4 {
			if ahead := calendarAhead(c); !near(ahead) {
				t.Fatalf("node %d leads two, node 1's clock is ahead: the calendar is %s ahead", c.Place(c.Leader()), ahead)
			}
			<-time.After(6 * time.Second) // the clocks are read again
			c.Restart(c.Place(c.Leader()))
		}
	})
}

// A new leader proposes nothing but ticks before it knows the time from a majority of the
// voters: by the state's it would be an old time, in a new cluster 1970, and a task that
// ended then would be removed with the first entry of the right time.
func TestNode_calendarOfANewLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		for i := range c.Len() {
			c.Tamper(i, func(l *raft.Log) {
				if l.Type != raft.LogCommand {
					return
				}
				stamp, commands, err := command.DecodeEntry(l.Data)
				if err != nil {
					t.Error(err)
				}
				if _, ok := commands[0].(command.Tick); !ok && !near(time.Until(time.UnixMilli(stamp.T))) {
					t.Errorf("entry %d, %T, is of %s", l.Index, commands[0], time.UnixMilli(stamp.T).UTC())
				}
			})
		}
		for range 3 {
			c.LoseCalls("status", 2) // the new leader's first
			id := c.Propose(submit("")).Result.Submitted[0].Task.ID
			c.Propose(command.Complete{Hold: hold(c.Propose(claim("w", time.Minute)))})
			<-time.After(10 * time.Second)
			if taskOf(c.Leader(), id) == nil {
				t.Errorf("task %d, which has ended, is gone", id)
			}
			for i := range c.Len() {
				c.Stop(i)
			}
			<-time.After(30 * 24 * time.Hour)
			for i := range c.Len() {
				c.Start(i)
			}
		}
	})
}

// A single node has no other clock: it follows its own, and soon also a jump of it.
func TestNode_wallClockAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 1)
		if ahead := calendarAhead(c); !near(ahead) {
			t.Fatalf("the calendar is %s ahead", ahead)
		}
		c.Clock(0).Jump(365 * 24 * time.Hour)
		c.Wait("the calendar to follow the only clock", func() bool { return near(calendarAhead(c) - 365*24*time.Hour) })
	})
}

// The status of the cluster says for each node how far its clock is off.
func TestNode_Cluster_clocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.Leader()
		c.Clock(1).Jump(time.Hour)
		for i := range c.Len() {
			for k, v := range c.Node(i).Cluster(context.Background()).Nodes {
				want := int64(0)
				if k == 1 {
					want = time.Hour.Milliseconds()
				}
				if v.ClockAheadMS == nil || *v.ClockAheadMS != want || (v.Problem != "") != (k == 1) || !v.TakesPart {
					t.Errorf("node %d says of node %d: %v ms ahead, problem %q; want %d ms", i, k, v.ClockAheadMS, v.Problem, want)
				}
			}
		}
	})
}

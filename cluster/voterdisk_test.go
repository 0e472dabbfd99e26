package cluster_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// diskSize is the size of the disks in tests. A twentieth is kept free.
const diskSize = 1 << 30

// disks holds the free bytes of the nodes' disks.
type disks map[string]*atomic.Uint64

func newDisks() disks {
	d := disks{"n1": {}, "n2": {}, "n3": {}}
	d.set(diskSize, "n1", "n2", "n3")
	return d
}

func (d disks) set(free uint64, nodeIDs ...string) {
	for _, id := range nodeIDs {
		d[id].Store(free)
	}
}

func (d disks) option(cfg *cluster.Config) {
	free := d[cfg.NodeID]
	cfg.DiskSpace = func() (uint64, uint64, error) { return free.Load(), diskSize, nil }
	cfg.DiskInodes = func() (uint64, uint64, error) { return 0, 0, nil } // inodes are unlimited in tests
}

// checkFull checks that submits are refused because of the disk, but claims and settles are
// not.
func checkFull(t *testing.T, n *cluster.Node) {
	t.Helper()
	var over *nodes.Overload
	for _, cmd := range []command.Command{
		submitOf("mail", 1),
		command.SetSchedule{Schedule: every("tick", time.Minute)},
		command.Batch{Ops: []command.Command{command.Extend{}, submitOf("mail", 1)}},
	} {
		if _, err := n.Propose(context.Background(), cmd); !errors.As(err, &over) || over.Bound != nodes.BoundDisk {
			t.Errorf("%T: %v, want that the disk is low", cmd, err)
		}
	}
	p, err := n.Propose(context.Background(), claimOf("w1", "mail"))
	if err != nil || len(p.Result.Claims) != 1 {
		t.Fatalf("claim: %+v, %v", p.Result, err)
	}
	hold := command.Hold{ID: p.Result.Claims[0].Task.ID, WorkerID: "w1"}
	for _, cmd := range []command.Command{
		command.Extend{Hold: hold, LeaseMS: 1000},
		command.Complete{Hold: hold, Submit: []fsm.NewTask{{Type: "mail", MaxAttempts: 3}}},
		command.Retry{ID: hold.ID},
		command.Delete{ID: hold.ID},
	} {
		if _, err := n.Propose(context.Background(), cmd); err != nil {
			t.Errorf("%T: %v", cmd, err)
		}
	}
}

// A leader whose disk is low transfers its leadership to a voter whose disk is not.
func TestDisk_leaderHandsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		c := clustertest.New(t, 3, d.option)
		old := c.Leader()
		c.Propose(submitOf("mail", 3))
		low := c.Followers()[0].NodeID()
		d.set(diskSize/100, old.NodeID(), low)
		c.Wait("another leader", func() bool { return c.Leader() != old })
		if c.Leader().NodeID() == low {
			t.Error("one whose disk is low leads")
		}
		for _, v := range c.Leader().Cluster(context.Background()).Nodes {
			if isLow := d[v.NodeID].Load() < diskSize/20; isLow == v.Healthy {
				t.Errorf("%s: healthy %v, %q", v.NodeID, v.Healthy, v.Problem)
			}
			if r := v.Room; r == nil || r.State <= 0 || r.State >= r.StateMax || r.DiskFree != int64(d[v.NodeID].Load()) || r.DiskMin != diskSize/20 {
				t.Errorf("%s: it has %+v left", v.NodeID, r)
			}
		}
		d.set(diskSize, low)
		<-time.After(5 * time.Second)
		c.Propose(submitOf("mail", 1)) // two of three have room
		c.EnsureSame()
	})
}

// While all disks are low, no node hands its leadership over and submits are refused, until
// there is room again.
func TestDisk_allLow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		c := clustertest.New(t, 3, d.option)
		leader := c.Leader()
		c.Propose(submitOf("mail", 3))
		d.set(diskSize/20-1, "n1", "n2", "n3")
		<-time.After(2 * time.Minute) // twice the time until the next transfer is possible
		if c.Leader() != leader {
			t.Error("the leadership was handed over")
		}
		checkFull(t, leader)
		d.set(diskSize/20+1, "n1", "n2", "n3") // not enough to be sure
		<-time.After(5 * time.Second)
		checkFull(t, leader)
		d.set(diskSize/20*9/8+1, "n1", "n2", "n3")
		<-time.After(5 * time.Second)
		c.Propose(submitOf("mail", 1))
		c.EnsureSame()
	})
}

// When half of the disk's reserve is used up, follow-ups are refused, too, but claims and
// settles are not.
func TestDisk_strained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		c := clustertest.New(t, 1, d.option)
		leader := c.Leader()
		c.Propose(submitOf("mail", 3))
		hold := command.Hold{ID: c.Propose(claimOf("w1", "mail")).Result.Claims[0].Task.ID, WorkerID: "w1"}
		d.set(diskSize/40-1, "n1")
		<-time.After(time.Second)
		followed := command.Complete{Hold: hold, Submit: []fsm.NewTask{{Type: "mail", MaxAttempts: 3}}}
		for _, cmd := range []command.Command{followed, command.Batch{Ops: []command.Command{followed}}} {
			if _, err := leader.Propose(context.Background(), cmd); !errors.Is(err, nodes.ErrOverloaded) {
				t.Errorf("%T with follow-ups: %v, want ErrOverloaded", cmd, err)
			}
		}
		if r := c.Propose(command.Complete{Hold: hold}).Result; r.Code != "" {
			t.Errorf("complete: %s", r.Code)
		}
		if claims := c.Propose(claimOf("w1", "mail")).Result.Claims; len(claims) != 1 {
			t.Errorf("claims: %+v", claims)
		}
	})
}

// The leader also refuses submits while followers' disks are low and it would have no
// majority if those stopped.
func TestDisk_followersLow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		c := clustertest.New(t, 3, d.option)
		leader := c.Leader()
		c.Propose(submitOf("mail", 3))
		followers := c.Followers()
		d.set(0, followers[0].NodeID())
		<-time.After(10 * time.Second)
		c.Propose(submitOf("mail", 1)) // one of three may stop
		d.set(0, followers[1].NodeID())
		<-time.After(10 * time.Second)
		checkFull(t, leader)
		d.set(diskSize, followers[0].NodeID())
		<-time.After(10 * time.Second)
		c.Propose(submitOf("mail", 1))
		// A stopped node does not help either.
		c.Stop(c.Place(followers[0]))
		<-time.After(10 * time.Second)
		if _, err := leader.Propose(context.Background(), submitOf("mail", 1)); !errors.Is(err, nodes.ErrOverloaded) {
			t.Errorf("with one stopped and one low: %v, want ErrOverloaded", err)
		}
		if c.Leader() != leader {
			t.Error("the leadership was handed over")
		}
	})
}

// Disks that fill up alternately do not move the leadership back and forth.
func TestDisk_notToAndFro(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		c := clustertest.New(t, 3, d.option)
		changes, last := 0, c.Leader()
		const minutes = 2
		for range minutes * 12 { // the leader's disk is always the low one
			leader := c.Leader()
			if leader != last {
				changes++
				last = leader
			}
			d.set(diskSize, "n1", "n2", "n3")
			d.set(0, leader.NodeID())
			<-time.After(5 * time.Second)
		}
		if changes == 0 || changes > 3*(minutes+1) {
			t.Errorf("%d changes of leader in %d minutes, want some, one for each node and minute at most", changes, minutes)
		}
	})
}

package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// overChange bounds the time that a change of leader adds to a lease, not counting the time
// without a leader, and laterMax the delay of a requeue at any time.
const (
	overChange = 500 * time.Millisecond
	laterMax   = 100 * time.Millisecond
)

// heldOver lets a task be claimed, and after a while the cluster go through change, which
// returns when there is no leader any more; later allows a new leader. It returns the time
// for which the task was held beyond its lease and the time without a leader.
func heldOver(t *testing.T, c *clustertest.Cluster, lease, after time.Duration, change func(leader *cluster.Node), later func()) time.Duration {
	t.Helper()
	id := c.Propose(submit("")).Result.Submitted[0].Task.ID
	asked := time.Now()
	if got := c.Propose(claim("w", lease)).Result.Claims; len(got) != 1 || got[0].Task.ID != id {
		t.Fatalf("not the claim of task %d: %+v", id, got)
	}
	<-time.After(after)
	gone := time.Now()
	change(c.Leader())
	later()
	leader := c.Leader()
	without := time.Since(gone)
	c.Wait("the lease to end", func() bool { return taskOf(leader, id).Status == fsm.StatusPending })
	over := time.Since(asked) - lease - without
	if time.Since(asked) < lease {
		t.Errorf("the lease of %s ended after %s", lease, time.Since(asked))
	}
	// For the next one.
	c.Propose(command.Cancel{ID: id})
	return over
}

// The worker dies with the leader, long after the last entry: the task comes back when its
// lease is over by the time of that leader, which wrote nothing.
func TestNode_leaseOverLeaderThatDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		for range 5 {
			var place int
			over := heldOver(t, c, 3*time.Second, 2500*time.Millisecond, func(leader *cluster.Node) {
				place = c.Place(leader)
				c.Stop(place)
			}, func() {})
			if over > overChange+laterMax {
				t.Errorf("the task was held for %s more than its lease and the time without a leader", over)
			}
			c.Start(place)
		}
		c.EnsureSame()
	})
}

// Time without a leader does not count towards a lease, because it cannot be extended then.
func TestNode_leaseOverTimeWithoutLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		for range 8 {
			var places [2]int
			over := heldOver(t, c, 5*time.Second, 2500*time.Millisecond, func(leader *cluster.Node) {
				places = [2]int{c.Place(leader), c.Place(c.Followers()[0])}
				c.Stop(places[1])
				c.Stop(places[0])
			}, func() {
				<-time.After(10 * time.Second)
				c.Start(places[0])
			})
			if over > overChange+laterMax || over < -overChange {
				t.Errorf("the task was held for %s more than its lease and the time without a leader", over)
			}
			c.Start(places[1])
		}
		c.EnsureSame()
	})
}

// Hints write nothing, and none are sent while nothing is claimed.
func TestNode_hintsWriteNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		for range 3 {
			c.Propose(submit(""))
		}
		leader := c.Leader()
		<-time.After(10 * time.Second) // the node records are written by now
		const span = time.Minute
		grown := func() (entries uint64, hints int) {
			index, calls := leader.AppliedIndex(), c.Calls("hint")
			<-time.After(span)
			return leader.AppliedIndex() - index, c.Calls("hint") - calls
		}
		if entries, hints := grown(); entries > uint64(2*span/time.Minute) || hints != 0 {
			t.Errorf("%d entries and %d hints in %s in which nothing is claimed; want a tick and a checkpoint a minute, no hint", entries, hints, span)
		}
		c.Propose(claim("w", time.Hour))
		entries, hints := grown()
		if most := uint64(span/(4*time.Second)) + uint64(span/time.Minute); entries > most {
			t.Errorf("%d entries in %s in which a claim lives, want %d at most", entries, span, most)
		}
		if most := 2 * int(span/(250*time.Millisecond)); hints > most || hints < most/2 {
			t.Errorf("%d hints in %s in which a claim lives, want about %d", hints, span, most)
		}
	})
}

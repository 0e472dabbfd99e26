package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/nodes"
)

// taskOf returns a copy of the task at n, nil if n has none.
func taskOf(n *cluster.Node, id uint64) (task *fsm.Task) {
	_, _ = n.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
		if have := m.Get(id); have != nil {
			copied := *have
			task = &copied
		}
	})
	return task
}

// A leader that is cut off neither acknowledges writes nor answers linearizable reads from
// the moment another one may lead; and the outcome of its commands in flight is unknown,
// not a refusal.
func TestNode_leaderCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		first := c.Propose(submit("a"))
		old := c.Leader()
		c.Partition(old)

		var wg sync.WaitGroup
		for i := range 8 {
			wg.Add(2)
			go func() {
				defer wg.Done()
				_, err := old.Propose(context.Background(), submit(fmt.Sprint("lost", i)))
				if !errors.Is(err, nodes.ErrOutcomeUnknown) && !clustertest.NothingWritten(err) {
					t.Errorf("propose on a leader that is cut off: %v", err)
				}
			}()
			go func() {
				defer wg.Done()
				_, err := old.ReadLinearizable(context.Background(), 0, func(*fsm.Machine, fsm.Stamp) { t.Error("a leader that is cut off answered") })
				if !errors.Is(err, nodes.ErrNoLeader) && !errors.Is(err, nodes.ErrNotLeader) {
					t.Errorf("read on a leader that is cut off: %v", err)
				}
			}()
		}
		wg.Wait()

		leader := c.Leader()
		if leader == old {
			t.Fatal("the leader that is cut off leads the majority")
		}
		second := c.Propose(submit("b"))
		if second.Index <= first.Index {
			t.Errorf("index %d after %d", second.Index, first.Index)
		}
		c.Heal()
		c.EnsureSame()
		if taskOf(old, second.Result.Submitted[0].Task.ID) == nil {
			t.Error("the old leader did not catch up")
		}
	})
}

// The outcome of commands in an entry when the leader was cut off is unknown: the one entry
// in flight is neither acknowledged nor refused.
func TestNode_unknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		old := c.Leader()
		c.Partition(old)
		_, err := old.Propose(context.Background(), submit("maybe"))
		if !errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
		leader := c.Leader()
		<-time.After(10 * time.Second) // its own first duties are written by now
		c.Partition(leader)            // nodes cannot reach each other
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err = leader.Propose(ctx, submit("late"))
		if !errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Fatalf("a caller that goes while its entry is in flight: %v, want ErrOutcomeUnknown", err)
		}
		c.Heal()
		c.Propose(submit("after"))
		c.EnsureSame()
	})
}

// Leases end within a second after their time, even if the wall clock jumps or the leader
// changes; and never early.
func TestNode_leasesExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		const lease = 10 * time.Second
		id := c.Propose(submit("a")).Result.Submitted[0].Task.ID

		held := func() (time.Duration, *cluster.Node) {
			asked := time.Now()
			claimed := c.Propose(claim("w", lease))
			if len(claimed.Result.Claims) != 1 {
				t.Fatalf("nothing to claim: %+v", claimed.Result)
			}
			leader := c.Leader()
			c.Wait("the lease to end", func() bool { return taskOf(leader, id).Status == fsm.StatusPending })
			return time.Since(asked), leader
		}
		if d, _ := held(); d < lease || d > lease+time.Second {
			t.Errorf("the lease of %s ended after %s", lease, d)
		}
		for _, jump := range []time.Duration{time.Hour, -3 * time.Hour, 48 * time.Hour} {
			time.AfterFunc(2*time.Second, func() {
				for i := range c.Len() {
					c.Clock(i).Jump(jump)
				}
			})
			if d, _ := held(); d < lease || d > lease+time.Second {
				t.Errorf("the lease of %s ended after %s when the wall clock jumped by %s", lease, d, jump)
			}
		}
	})
}

func TestNode_leaseAcrossFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		const lease = 20 * time.Second
		id := c.Propose(submit("a")).Result.Submitted[0].Task.ID
		asked := time.Now()
		c.Propose(claim("w", lease))
		changes := 0
		for range 2 {
			before := c.Leader()
			wake := time.NewTimer(5 * time.Second)
			<-wake.C
			c.Partition(before)
			c.Wait("another leader", func() bool { return c.Leader() != before })
			c.Heal()
			changes++
		}
		leader := c.Leader()
		c.Wait("the lease to end", func() bool { return taskOf(leader, id).Status == fsm.StatusPending })
		held := time.Since(asked)
		if most := lease + time.Second + time.Duration(changes)*6*time.Second; held < lease || held > most {
			t.Errorf("the lease of %s ended after %s over %d changes of leader, want at most %s", lease, held, changes, most)
		}
		c.EnsureSame()
	})
}

// An accepted extend keeps the claim, because the timer checks the state.
func TestNode_extendKeepsTheClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		id := c.Propose(submit("a")).Result.Submitted[0].Task.ID
		claimed := c.Propose(claim("w", time.Second)).Result.Claims[0]
		for range 20 {
			<-time.After(900 * time.Millisecond)
			p := c.Propose(command.Extend{Hold: command.Hold{ID: id, WorkerID: "w", Token: claimed.Token}})
			if p.Result.Code != "" {
				t.Fatalf("extend: %s", p.Result.Code)
			}
		}
		done := c.Propose(command.Complete{Hold: command.Hold{ID: id, WorkerID: "w", Token: claimed.Token}})
		if done.Result.Code != "" {
			t.Errorf("complete: %s", done.Result.Code)
		}
	})
}

// A claim that finds nothing writes nothing.
func TestNode_claimOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		c.Wait("the node records", func() bool { return len(leader.Cluster(context.Background()).Nodes) == 3 })
		<-time.After(6 * time.Second) // the node records are written by now
		before := leader.AppliedIndex()
		for range 10 {
			p, err := leader.Propose(context.Background(), claim("w", time.Second))
			if err != nil || len(p.Result.Claims) != 0 || p.Index > before {
				t.Fatalf("claim of nothing: %+v, %v", p, err)
			}
		}
		if after := leader.AppliedIndex(); after != before {
			t.Errorf("ten claims of nothing moved the log from %d to %d", before, after)
		}
	})
}

func TestNode_restartOfAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		var last nodes.Proposed
		for i := range 50 {
			last = c.Propose(submit(fmt.Sprint(i)))
		}
		for i := range c.Len() {
			c.Stop(i)
		}
		for i := range c.Len() {
			c.Start(i)
		}
		read := 0
		index, err := c.Leader().ReadLinearizable(context.Background(), last.Index, func(m *fsm.Machine, _ fsm.Stamp) {
			read = int(m.Stats(fsm.Stamp{}).Counts[fsm.StatusPending])
		})
		if err != nil || read != 50 || index < last.Index {
			t.Errorf("after the restart: %d tasks at %d, %v; want 50 at %d or later", read, index, err, last.Index)
		}
		c.EnsureSame()
	})
}

// A follower that was away while the log was compacted catches up with a snapshot, and one
// that restarts restores its own.
func TestNode_snapshots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		away := c.Place(c.Followers()[0])
		c.Stop(away)
		// More entries than Raft keeps behind a snapshot.
		for i := range 300 {
			c.Propose(submit(fmt.Sprint(i)))
		}
		if _, err := leader.TakeSnapshot(context.Background()); err != nil {
			t.Fatal(err)
		}
		c.Restart(c.Place(leader))
		c.Start(away)
		c.Propose(submit("after"))
		c.EnsureSame()
	})
}

// Random load over a network that is cut and healed: whatever happens, all nodes end up in
// the same state, with everything that was acknowledged.
func TestNode_randomLoad(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		random := rand.New(rand.NewPCG(seed, 1))
		ctx, cancel := context.WithCancel(context.Background())
		var mu sync.Mutex
		var acknowledged []uint64
		unknown := 0
		var wg sync.WaitGroup
		for worker := range 12 {
			wg.Add(1)
			own := rand.New(rand.NewPCG(seed, uint64(worker)+2))
			go func() {
				defer wg.Done()
				for ctx.Err() == nil {
					n := c.Node(own.IntN(3))
					p, err := n.Propose(ctx, randomCommand(own, worker))
					mu.Lock()
					for _, s := range p.Result.Submitted {
						acknowledged = append(acknowledged, s.Task.ID)
					}
					if errors.Is(err, nodes.ErrOutcomeUnknown) {
						unknown++
					}
					mu.Unlock()
					<-time.After(time.Duration(own.IntN(20)) * time.Millisecond)
				}
			}()
		}
		for range proof.Count(3, 6) {
			<-time.After(time.Duration(1+random.IntN(4)) * time.Second)
			c.Partition(c.Leader())
			<-time.After(time.Duration(1+random.IntN(4)) * time.Second)
			c.Heal()
			c.Clock(random.IntN(3)).Jump(time.Duration(random.IntN(7200)-3600) * time.Second)
		}
		cancel()
		wg.Wait()
		c.Propose(command.Tick{})
		c.EnsureSame()
		t.Logf("%d acknowledged, %d unknown", len(acknowledged), unknown)
		for _, id := range acknowledged {
			if taskOf(c.Node(0), id) == nil {
				t.Errorf("task %d was acknowledged and is gone", id)
			}
		}
	})
}

func randomCommand(r *rand.Rand, worker int) command.Command {
	hold := command.Hold{ID: uint64(1 + r.IntN(200)), WorkerID: fmt.Sprint("w", worker)}
	switch r.IntN(6) {
	case 0, 1:
		return submit(fmt.Sprint("k", r.IntN(10_000)))
	case 2, 3:
		return claim(hold.WorkerID, time.Duration(1+r.IntN(5))*time.Second)
	case 4:
		return command.Complete{Hold: hold}
	}
	return command.Fail{Hold: hold, Error: "no luck"}
}

package cluster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// A scheduled task is pending as soon as its time has come, and a waiting claim gets it,
// although nothing else is written.
func TestDuty_scheduled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		w := startClaim(leader, claimOf("w1", "mail"), time.Hour)
		<-time.After(10 * time.Second)
		for _, delay := range []time.Duration{3217 * time.Millisecond, 100 * time.Millisecond, 65 * time.Second} {
			begun := time.Now()
			s := submitOf("mail", 1)
			s.Tasks[0].DelayMS = delay.Milliseconds()
			c.Propose(s)
			if w.took(t) == 0 {
				t.Fatal("nothing was claimed")
			}
			if late := time.Since(begun) - delay; late < -time.Millisecond || late > 20*time.Millisecond {
				t.Errorf("a task for in %s was claimed %s after that", delay, late)
			}
			w = startClaim(leader, claimOf("w1", "mail"), time.Hour)
		}
		w.gone(errGone)
	})
}

// Due work that exceeds one tick is still done at once; a trickle does not cause an entry
// for each task.
func TestDuty_ticks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		at := time.Now().Add(20 * time.Second).UnixMilli()
		flood := submitOf("mail", 5_000)
		for i := range flood.Tasks {
			flood.Tasks[i].RunAt = at
		}
		c.Propose(flood)
		trickle := submitOf("mail", 1_000)
		for i := range trickle.Tasks {
			trickle.Tasks[i].RunAt = at + 30_000 + int64(i)
		}
		c.Propose(trickle)
		<-time.After(20*time.Second + 100*time.Millisecond)
		if pending := countOf(leader, fsm.StatusPending); pending != 5_000 {
			t.Errorf("%d tasks are pending 100 ms after their time, want 5000", pending)
		}
		<-time.After(20 * time.Second)
		index, _ := leader.StateHash()
		<-time.After(11 * time.Second)
		if pending := countOf(leader, fsm.StatusPending); pending != 6_000 {
			t.Errorf("%d tasks are pending after their time, want 6000", pending)
		}
		if now, _ := leader.StateHash(); now-index > 150 {
			t.Errorf("%d entries for a second's trickle", now-index)
		}
	})
}

func countOf(n *cluster.Node, s fsm.Status) (count int64) {
	_, _ = n.ReadStale(context.Background(), 0, func(m *fsm.Machine, now fsm.Stamp) { count = m.Stats(now).Counts[s] })
	return count
}

// Ended tasks take no more than their share of the memory, even when no more tasks are
// claimed.
func TestDuty_evicts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 4 << 20
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.MemoryLimit = limit })
		leader := c.Leader()
		ids := c.Propose(submitOf("mail", 5_000)).Result.Submitted
		for range 5 {
			claim := claimOf("w1", "mail")
			claim.Limit = 1000
			completeAll(c, c.Propose(claim).Result.Claims, make([]byte, 200))
		}
		<-time.After(2 * time.Second)
		var ended int64
		_, _ = leader.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) { ended = m.EndedBytes() })
		if ended == 0 || ended > limit/4 {
			t.Errorf("ended tasks take %d bytes, want some, at most %d", ended, limit/4)
		}
		if taskOf(leader, ids[0].Task.ID) != nil || taskOf(leader, ids[len(ids)-1].Task.ID) == nil {
			t.Error("it was not the oldest that were evicted")
		}
		c.EnsureSame()
	})
}

// completeAll completes the tasks that w1 has claimed, 100 in a batch.
func completeAll(c *clustertest.Cluster, claims []fsm.Claim, result []byte) (completes []command.Command) {
	for _, held := range claims {
		completes = append(completes, command.Complete{Hold: command.Hold{ID: held.Task.ID, WorkerID: "w1", Token: held.Token}, Result: result})
	}
	for ops := range slices.Chunk(completes, 100) {
		c.Propose(command.Batch{Ops: ops})
	}
	return completes
}

// The data kept for repeats about removed tasks and claim requests take at most a quarter
// of the limit: the latest removals are still remembered then, the first are not, and no
// submit is refused because of them.
func TestDuty_forgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, rounds = 2 << 20, 10
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.MemoryLimit = limit })
		leader := c.Leader()
		var completes []command.Command
		for range rounds {
			submit := submitOf("mail", 1_000)
			for i := range submit.Tasks {
				submit.Tasks[i].RetentionMS = fsm.KeepNone
			}
			if _, err := leader.Propose(context.Background(), submit); err != nil {
				t.Fatalf("submit: %v", err)
			}
			claim := claimOf("w1", "mail")
			claim.Limit = 1000
			completes = append(completes, completeAll(c, c.Propose(claim).Result.Claims, nil)...)
		}
		<-time.After(2 * time.Second)
		var remembered int64
		_, _ = leader.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) { remembered = m.RememberedBytes() })
		if remembered == 0 || remembered > limit/4 {
			t.Errorf("%d bytes are remembered, want some, at most %d", remembered, limit/4)
		}
		if r := c.Propose(completes[0]).Result; r.Code != fsm.CodeTaskNotFound {
			t.Errorf("a repeat of the first complete is answered %+v, it should be forgotten", r)
		}
		if r := c.Propose(completes[len(completes)-1]).Result; !r.Repeated {
			t.Errorf("a repeat of the last complete is answered %+v", r)
		}
		c.EnsureSame()
	})
}

// Ended tasks are never a reason to refuse a submit: they are evicted before the limit is
// reached, however little room the others leave.
func TestDuty_endedTasksMakeWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 8 << 20
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.MemoryLimit = limit })
		leader := c.Leader()
		for range 24 {
			c.Propose(command.Submit{Tasks: []fsm.NewTask{{Type: "ballast", Params: make([]byte, 256<<10)}}})
		}
		claim := claimOf("w1", "mail")
		claim.Limit = 100
		most := int64(0)
		for range 40 {
			if _, err := leader.Propose(context.Background(), submitOf("mail", 100)); err != nil {
				t.Fatalf("submit: %v", err)
			}
			done := command.Batch{}
			for _, held := range c.Propose(claim).Result.Claims {
				done.Ops = append(done.Ops, command.Complete{Hold: command.Hold{ID: held.Task.ID, WorkerID: "w1"}, Result: make([]byte, 2_000)})
			}
			c.Propose(done)
			synctest.Wait() // meanwhile the leader proposes evictions
			_, _ = leader.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
				most = max(most, m.Bytes())
			})
		}
		if most > limit {
			t.Errorf("the state took %d bytes, the limit is %d", most, limit)
		}
		if left := countOf(leader, fsm.StatusCompleted); left == 0 || left > 1_250 {
			t.Errorf("%d of 4,000 ended tasks are left", left)
		}
		c.EnsureSame()
	})
}

// A new cluster starts at the highest level that all its voters know.
func TestLevel_ofNewCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		if got := leader.Cluster(context.Background()).FeatureLevel; got != fsm.FeatureLevel() {
			t.Errorf("level %d, want %d", got, fsm.FeatureLevel())
		}
		c.Propose(command.SetType{Type: "mail", Set: fsm.TypePaused})
		if level, err := leader.Upgrade(context.Background(), ""); level != fsm.FeatureLevel() || err != nil {
			t.Errorf("upgrade: %d, %v", level, err)
		}
	})
}

// A new cluster starts with safe defaults, also after a restart of all nodes: a task that
// fails three times within a moment is tried again.
func TestDefaults_ofNewCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.Propose(submitDefault)
		for range 3 {
			if task := failsOnce(t, c); task.Status != fsm.StatusScheduled {
				t.Errorf("after a failure it is %v, want scheduled", task.Status)
			}
		}
		restart(c)
		want := fsm.InForce{
			MaxAttempts: 10, LeaseMS: 30_000, Backoff: &fsm.Backoff{InitialMS: 1_000, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000},
			RetentionMS: 86_400_000, FailedRetentionMS: 14 * 86_400_000,
		}
		wantInForce(t, c, want)
	})
}

// submitDefault submits a task without attempts and backoff.
var submitDefault = command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`{}`), MaxAttempts: fsm.DefaultAttempts}}}

// failsOnce fails the next task of type mail, as soon as there is one, and returns it
// afterwards.
func failsOnce(t *testing.T, c *clustertest.Cluster) fsm.Task {
	t.Helper()
	claimed, err := c.Leader().Claim(context.Background(), claimOf("w1", "mail"), time.Minute, nil)
	if err != nil || len(claimed.Result.Claims) != 1 {
		t.Fatalf("claim: %+v, %v", claimed.Result, err)
	}
	return *c.Propose(command.Fail{Hold: command.Hold{ID: claimed.Result.Claims[0].Task.ID, WorkerID: "w1"}, Error: "no"}).Result.Task
}

// restart stops all nodes and starts them again.
func restart(c *clustertest.Cluster) {
	for i := range 3 {
		c.Stop(i)
	}
	for i := range 3 {
		c.Start(i)
	}
}

func wantInForce(t *testing.T, c *clustertest.Cluster, want fsm.InForce) {
	t.Helper()
	var got fsm.InForce
	_, _ = c.Leader().ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) { got = m.DefaultsInForce() })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// While a voter does not report its level, the cluster's stays low: newer commands are
// refused until the voter is back and an operator raises the level. It changes the table of the
// commands, so it does not run in parallel.
func TestLevel_upgrade(t *testing.T) {
	for _, newer := range []command.Kind{command.KindSetType, command.KindClaimNext} {
		row := newer.Row()
		row.Level = fsm.FeatureLevel()
		t.Cleanup(func() { row.Level = 1 })
	}
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c := clustertest.New(t, 3)
		c.Stop(2)
		leader := c.Leader()
		c.Propose(submitOf("mail", 1))
		for _, cmd := range []command.Command{
			command.SetType{Type: "mail", Set: fsm.TypePaused},
			command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, SortBy: command.SortRandom},
		} {
			if _, err := leader.Propose(ctx, cmd); !errors.Is(err, nodes.ErrLevel) {
				t.Errorf("%T above the level: %v, want ErrLevel", cmd, err)
			}
		}
		random := command.ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1, SortBy: command.SortRandom}
		if _, err := leader.Claim(ctx, random, time.Minute, nil); !errors.Is(err, nodes.ErrLevel) {
			t.Errorf("waiting claim above the level: %v, want ErrLevel", err)
		}
		var refused *nodes.MembershipRefused
		if level, err := leader.Upgrade(ctx, ""); !errors.As(err, &refused) {
			t.Errorf("upgrade without a voter: %d, %v, want MembershipRefused", level, err)
		}
		c.Start(2)
		c.Wait("the upgrade", func() bool {
			level, err := c.Leader().Upgrade(ctx, "")
			return err == nil && level == fsm.FeatureLevel()
		})
		if c.Propose(random).Result.Claims == nil {
			t.Error("nothing claimed at the new level")
		}
		for _, follower := range c.Followers() {
			if _, err := follower.Upgrade(ctx, ""); !errors.Is(err, nodes.ErrNotLeader) && !errors.Is(err, nodes.ErrNoLeader) {
				t.Errorf("upgrade on a follower: %v", err)
			}
		}
	})
}

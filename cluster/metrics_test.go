package cluster_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// gathered returns the values of a registry: counters and gauges by name, or by name and
// label value, and for histograms the number of observations.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// watched starts three nodes with their metrics' registries, by node id. A restarted node
// starts with new metrics.
func watched(t *testing.T, options ...clustertest.Option) (*clustertest.Cluster, map[string]*prometheus.Registry) {
	registries := make(map[string]*prometheus.Registry)
	options = append(options, func(cfg *cluster.Config) {
		registries[cfg.NodeID] = prometheus.NewRegistry()
		cfg.Registerer = registries[cfg.NodeID]
	})
	return clustertest.New(t, 3, options...), registries
}

// Only the leader counts events of tasks, and a node that replays its log counts nothing.
func TestNode_countsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, registries := watched(t)
		work(c)
		<-time.After(31 * time.Second) // a lease ends; slots of the schedule after the first overlap its task
		want := map[string]float64{
			"claimq_tasks_submitted_total": 6, "claimq_claims_total": 4, "claimq_expiries_total": 1, "claimq_requeues_total": 2,
			"claimq_tasks_completed_total": 1, "claimq_tasks_failed_total": 1, "claimq_tasks_cancelled_total": 1,
			"claimq_schedule_runs_total": 1, "claimq_raft_leaderships_total": 1,
		}
		leader := c.Leader().NodeID()
		for i, r := range registries {
			got := gathered(t, r)
			for name, n := range want {
				if i != leader {
					n = 0
				}
				if got[name] != n {
					t.Errorf("%s of leader %s: %s is %v, want %v", i, leader, name, got[name], n)
				}
			}
			if skips := got["claimq_schedule_skips_total"]; (skips > 20) != (i == leader) {
				t.Errorf("%s of leader %s: %v slots skipped", i, leader, skips)
			}
			if commits := got["claimq_raft_commit_seconds"]; (commits > 7) != (i == leader) {
				t.Errorf("%s of leader %s: %v commits timed", i, leader, commits)
			}
		}

		follower := c.Followers()[0]
		c.Restart(c.Place(follower))
		c.EnsureSame()
		got := gathered(t, registries[follower.NodeID()])
		if got["claimq_tasks_submitted_total"] != 0 || got["claimq_raft_applied_index"] == 0 {
			t.Errorf("a node that has replayed its log counts %v", got)
		}
	})
}

// work does a little of everything that is counted, and leaves one claim.
func work(c *clustertest.Cluster) {
	last := c.Propose(submitOf("mail", 5)).Result.Submitted[4].Task.ID
	claims := c.Propose(command.ClaimNext{WorkerID: "w", Types: []string{"mail"}, Limit: 4}).Result.Claims
	hold := func(i int) command.Hold {
		return command.Hold{ID: claims[i].Task.ID, WorkerID: "w", Token: claims[i].Token}
	}
	c.Propose(command.Complete{Hold: hold(0)})
	c.Propose(command.Fail{Hold: hold(1), Error: "no", Permanent: true})
	c.Propose(command.Release{Hold: hold(2)})
	c.Propose(command.Cancel{ID: last})
	c.Propose(command.Batch{Atomic: true, Ops: []command.Command{submitOf("mail", 1), command.Cancel{ID: 1 << 40}}}) // is refused
	c.Propose(command.SetSchedule{Schedule: fsm.Schedule{
		Name: "often", EveryMS: 1000, NextRunAt: time.Now().UnixMilli() + 1000, Task: submitOf("tick", 1).Tasks[0],
	}})
}

// The leader reports how far the other nodes' clocks are ahead of its clock, and logs once
// that they are more than a second apart.
func TestNode_clocksApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		printed := &safeBuffer{}
		c, registries := watched(t, func(cfg *cluster.Config) { cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: printed}) })
		leader := c.Leader()
		follower := c.Followers()[0]
		alarms := func() int { return strings.Count(printed.String(), "wall clocks are apart") }
		ahead := func(n *cluster.Node) float64 {
			v, ok := gathered(t, registries[leader.NodeID()])["claimq_clock_ahead_seconds "+n.NodeID()]
			if !ok {
				t.Fatalf("nothing is known of the clock of %s", n.NodeID())
			}
			return v
		}
		near := func(a, b float64) bool { return a-b < 0.1 && b-a < 0.1 }
		<-time.After(10 * time.Second)
		if got := ahead(follower); !near(got, 0) || alarms() != 0 {
			t.Errorf("equal clocks are %v s apart, with %d alarms", got, alarms())
		}
		c.Clock(c.Place(follower)).Jump(-3 * time.Second)
		<-time.After(30 * time.Second)
		if got := ahead(follower); !near(got, -3) || ahead(leader) != 0 || alarms() != 1 {
			t.Errorf("a clock 3 s behind is %v s ahead of the leader's, which is %v, with %d alarms", got, ahead(leader), alarms())
		}
		c.Clock(c.Place(follower)).Jump(3 * time.Second)
		<-time.After(10 * time.Second)
		if strings.Count(printed.String(), "wall clocks agree again") != 1 || alarms() != 1 {
			t.Errorf("%d alarms, and:\n%s", alarms(), printed.String())
		}
	})
}

// safeBuffer is a buffer that several goroutines may write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

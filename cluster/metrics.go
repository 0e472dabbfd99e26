package cluster

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/fsm"
)

// nodeStats are the node's metrics. Raft reports its own only with a build tag,
// so what dashboards and alerts need is collected here.
type nodeStats struct {
	batch batchStats
	fsm   fsmStats
	fsync prometheus.Histogram

	registerer prometheus.Registerer // nil if not registered
	collectors []prometheus.Collector
}

// batchStats are what the batcher counts.
type batchStats struct {
	commands prometheus.Histogram
	bytes    prometheus.Histogram
	queued   atomic.Int64
}

func (s *batchStats) entry(commands, bytes int) {
	s.commands.Observe(float64(commands))
	s.bytes.Observe(float64(bytes))
}

// fsmStats are what the state machine's adapter counts.
type fsmStats struct {
	capture       prometheus.Histogram
	restores      prometheus.Counter
	persist       prometheus.Histogram
	snapshotBytes prometheus.Gauge
	claims        prometheus.Counter
	expiries      prometheus.Counter
	requeues      prometheus.Counter
	evictions     prometheus.Counter
	removals      prometheus.Counter
	wakes         prometheus.Counter
}

func (s *fsmStats) woken(count int) { s.wakes.Add(float64(count)) }

// applied counts what an entry did, on the leader only: so that the sum over
// the nodes is right, and a replay at start counts nothing.
func (s *fsmStats) applied(a *fsm.Applied, leading bool) {
	if !leading {
		return
	}
	if len(a.Leases) > 0 {
		s.claims.Add(float64(len(a.Leases)))
	}
	expired, evicted := 0, 0
	for i := range a.Results {
		expired += a.Results[i].Expired
		evicted += a.Results[i].Evicted
	}
	add := func(c prometheus.Counter, n int) {
		if n > 0 {
			c.Add(float64(n))
		}
	}
	add(s.requeues, a.Requeued)
	add(s.expiries, expired)
	add(s.evictions, evicted)
	add(s.removals, a.Removed-evicted)
}

func (s *fsmStats) snapshot(took time.Duration, bytes int64) {
	s.persist.Observe(took.Seconds())
	s.snapshotBytes.Set(float64(bytes))
}

// newNodeStats makes the metrics and registers them, unless registerer is nil.
func newNodeStats(n *Node, registerer prometheus.Registerer) (*nodeStats, error) {
	s := &nodeStats{registerer: registerer}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		s.collectors = append(s.collectors, h)
		return h
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		s.collectors = append(s.collectors, c)
		return c
	}
	seconds := prometheus.ExponentialBuckets(0.0001, 2, 18) // 0.1 ms to 13 s
	s.batch.commands = histogram("claimq_batch_commands", "Commands in a log entry that this node proposed.", prometheus.ExponentialBuckets(1, 2, 11))
	s.batch.bytes = histogram("claimq_batch_bytes", "Bytes of a log entry that this node proposed.", prometheus.ExponentialBuckets(64, 4, 10))
	s.fsync = histogram("claimq_raft_fsync_seconds", "How long an append to the log took until it was on disk.", seconds)
	s.fsm.capture = histogram("claimq_raft_snapshot_capture_seconds", "How long applying stood still for a snapshot.", seconds)
	s.fsm.persist = histogram("claimq_raft_snapshot_seconds", "How long writing a snapshot took.", prometheus.ExponentialBuckets(0.001, 4, 10))
	s.fsm.restores = counter("claimq_raft_restores_total", "Snapshots that this node restored, at start or from the leader.")
	s.fsm.claims = counter("claimq_claims_total", "Claims begun, counted by the leader.")
	s.fsm.expiries = counter("claimq_expiries_total", "Claims ended because their lease ran out, counted by the leader.")
	s.fsm.requeues = counter("claimq_requeues_total", "Tasks made pending again, or scheduled, by fail, release, retry or expiry, counted by the leader.")
	s.fsm.evictions = counter("claimq_evictions_total", "Ended tasks removed before their time because they took more than their share of the memory, counted by the leader.")
	s.fsm.removals = counter("claimq_removed_tasks_total", "Ended tasks removed when their retention was over, counted by the leader.")
	s.fsm.wakes = counter("claimq_waiting_wakes_total", "Times that a waiting claim was tried because tasks had become claimable, counted by the leader.")
	s.fsm.snapshotBytes = prometheus.NewGauge(prometheus.GaugeOpts{Name: "claimq_raft_snapshot_bytes", Help: "Size of the last snapshot that this node wrote."})
	s.collectors = append(s.collectors, s.fsm.snapshotBytes, newNodeCollector(n))
	if registerer == nil {
		return s, nil
	}
	for i, c := range s.collectors {
		if err := registerer.Register(c); err != nil {
			s.collectors = s.collectors[:i]
			s.unregister()
			return nil, err
		}
	}
	return s, nil
}

// unregister lets another node of this process register.
func (s *nodeStats) unregister() {
	if s.registerer == nil {
		return
	}
	for _, c := range s.collectors {
		s.registerer.Unregister(c)
	}
}

// nodeCollector reads what the node and Raft know when they are asked.
type nodeCollector struct {
	node   *Node
	gauges []nodeGauge
}

// The leader's view of its followers, labelled with their node ids.
var (
	followerLagDesc = prometheus.NewDesc("claimq_raft_follower_lag_entries",
		"Log entries that a follower did not have yet when it last answered this leader.", []string{"node_id"}, nil)
	followerContactDesc = prometheus.NewDesc("claimq_raft_follower_last_contact_seconds",
		"How long ago a follower last answered this leader.", []string{"node_id"}, nil)
)

type nodeGauge struct {
	desc *prometheus.Desc
	read func() (float64, error)
}

var errNoRaft = errors.New("no raft")

func newNodeCollector(n *Node) *nodeCollector {
	c := &nodeCollector{node: n}
	add := func(name, help string, read func() (float64, error)) {
		c.gauges = append(c.gauges, nodeGauge{prometheus.NewDesc(name, help, nil, nil), read})
	}
	ofRaft := func(read func() uint64) func() (float64, error) {
		return func() (float64, error) {
			if n.raft == nil {
				return 0, errNoRaft
			}
			return float64(read()), nil
		}
	}
	of := func(read func() int64) func() (float64, error) {
		return func() (float64, error) { return float64(read()), nil }
	}
	add("claimq_raft_term", "Raft's term on this node.", of(func() int64 { return int64(n.currentTerm()) }))
	add("claimq_raft_leader", "1 if this node leads and serves, else 0.", of(func() int64 {
		if n.IsLeader() {
			return 1
		}
		return 0
	}))
	add("claimq_raft_has_leader", "1 if this node knows a leader, else 0.", of(func() int64 {
		if n.leaderID() != "" {
			return 1
		}
		return 0
	}))
	add("claimq_raft_commit_index", "Highest log index that this node knows to be committed.", ofRaft(func() uint64 { return n.raft.CommitIndex() }))
	add("claimq_raft_last_log_index", "Highest log index that this node has.", ofRaft(func() uint64 { return n.raft.LastIndex() }))
	add("claimq_raft_applied_index", "Log index that this node's state reflects.", of(func() int64 { return int64(n.fsm.applied.Load()) }))
	add("claimq_raft_last_contact_seconds", "How long ago the leader was last heard from; 0 on the leader.", func() (float64, error) {
		switch {
		case n.raft == nil:
			return 0, errNoRaft
		case n.leader.Load() != nil:
			return 0, nil
		}
		return float64(n.lastContactMS()) / 1000, nil
	})
	add("claimq_queue_commands", "Commands waiting to be written when the last entry was packed.", of(n.queuedCount))
	add("claimq_live_claims", "Claims that live, by this node's state.", of(func() int64 { return n.fsm.claims.Load() }))
	add("claimq_waiting_claims", "Claims that wait on this node, as the leader, for tasks.", of(func() int64 {
		if l := n.leader.Load(); l != nil {
			return int64(l.waiters.len())
		}
		return 0
	}))
	add("claimq_state_limit_bytes", "State size from which on submits are refused.", of(func() int64 { return n.cfg.MemoryLimit }))
	add("claimq_feature_level", "Replicated feature level.", of(func() int64 { return int64(n.fsm.level.Load()) }))
	return c
}

func (n *Node) queuedCount() int64 { return n.stats.batch.queued.Load() }

// Describe implements prometheus.Collector.
func (c *nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		ch <- g.desc
	}
	ch <- followerLagDesc
	ch <- followerContactDesc
}

// Collect implements prometheus.Collector.
func (c *nodeCollector) Collect(ch chan<- prometheus.Metric) {
	for _, g := range c.gauges {
		if v, err := g.read(); err == nil {
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, v)
		}
	}
	c.collectFollowers(ch)
}

// collectFollowers reports on the followers while this node leads.
func (c *nodeCollector) collectFollowers(ch chan<- prometheus.Metric) {
	n := c.node
	if n.raft == nil || n.leader.Load() == nil {
		return
	}
	names := make(map[string]string)
	n.fsm.read(func(m *fsm.Machine) {
		for _, r := range m.Nodes() {
			names[r.UUID] = r.NodeID
		}
	})
	last := n.raft.LastIndex()
	for _, s := range n.servers() {
		name, known := names[string(s.ID)]
		h, ok := n.confirmer.lastHeard(s.ID)
		if !known || !ok || string(s.ID) == n.uuid {
			continue
		}
		lag := float64(last - min(last, h.lastLog))
		ch <- prometheus.MustNewConstMetric(followerLagDesc, prometheus.GaugeValue, lag, name)
		ch <- prometheus.MustNewConstMetric(followerContactDesc, prometheus.GaugeValue, time.Since(h.at).Seconds(), name)
	}
}

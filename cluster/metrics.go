package cluster

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

// nodeStats holds the node's metrics. Raft reports its own only with a build tag, so the
// ones needed for dashboards and alerts are collected here.
type nodeStats struct {
	batch batchStats
	fsm   fsmStats
	fsync prometheus.Histogram
	// commit is the time from handing an entry to Raft until it was applied here.
	commit           prometheus.Histogram
	leaderships      prometheus.Counter
	snapshotFailures prometheus.Counter

	registerer prometheus.Registerer // nil if not registered
	collectors []prometheus.Collector
}

// batchStats are the batcher's metrics.
type batchStats struct {
	commands prometheus.Histogram
	bytes    prometheus.Histogram
}

func (s *batchStats) entry(commands, bytes int) {
	s.commands.Observe(float64(commands))
	s.bytes.Observe(float64(bytes))
}

// fsmStats are the metrics of the replica.
type fsmStats struct {
	capture       prometheus.Histogram
	restores      prometheus.Counter
	persist       prometheus.Histogram
	snapshotBytes prometheus.Gauge
	submitted     prometheus.Counter
	completed     prometheus.Counter
	failed        prometheus.Counter
	cancelled     prometheus.Counter
	slotsRun      prometheus.Counter
	slotsSkipped  prometheus.Counter
	claims        prometheus.Counter
	expiries      prometheus.Counter
	requeues      prometheus.Counter
	evictions     prometheus.Counter
	forgotten     prometheus.Counter
	removals      prometheus.Counter
	wakes         prometheus.Counter
}

func (s *fsmStats) woken(count int) { s.wakes.Add(float64(count)) }

// Applied counts what an entry did, only on the leader, so that the sum over the nodes is
// correct and a replay at start counts nothing.
func (s *fsmStats) Applied(a *fsm.Applied, leading bool) {
	if !leading {
		return
	}
	expired, evicted, forgotten := 0, 0, 0
	for i := range a.Results {
		expired += a.Results[i].Expired
		evicted += a.Results[i].Evicted
		forgotten += a.Results[i].Forgotten
	}
	add := func(c prometheus.Counter, n int) {
		if n > 0 {
			c.Add(float64(n))
		}
	}
	add(s.claims, len(a.Leases))
	add(s.submitted, a.Tally.Submitted)
	add(s.completed, a.Tally.Completed)
	add(s.failed, a.Tally.Failed)
	add(s.cancelled, a.Tally.Cancelled)
	add(s.slotsRun, a.Tally.SlotsRun)
	add(s.slotsSkipped, a.Tally.SlotsSkipped)
	add(s.requeues, a.Requeued)
	add(s.expiries, expired)
	add(s.evictions, evicted)
	add(s.forgotten, forgotten)
	add(s.removals, a.Removed-evicted)
}

// Persisted implements replica.Stats.
func (s *fsmStats) Persisted(took time.Duration, bytes int64) {
	s.persist.Observe(took.Seconds())
	s.snapshotBytes.Set(float64(bytes))
}

// Captured implements replica.Stats.
func (s *fsmStats) Captured(took time.Duration) { s.capture.Observe(took.Seconds()) }

// Restored implements replica.Stats.
func (s *fsmStats) Restored() { s.restores.Inc() }

// newStats creates the metrics without registering them.
func newStats() *nodeStats {
	s := new(nodeStats)
	s.makeRaft()
	s.makeCounters()
	return s
}

// newNodeStats creates the metrics and registers them, unless registerer is nil.
func newNodeStats(n *Node, registerer prometheus.Registerer) (*nodeStats, error) {
	s := newStats()
	s.registerer = registerer
	s.collectors = append(s.collectors, newNodeCollector(n))
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

// makeRaft creates the metrics of entries and snapshots.
func (s *nodeStats) makeRaft() {
	seconds := prometheus.ExponentialBuckets(0.0001, 2, 18) // 0.1 ms to 13 s
	s.batch.commands = s.histogram("claimq_batch_commands", "Commands in a log entry that this node proposed.", prometheus.ExponentialBuckets(1, 2, 11))
	s.batch.bytes = s.histogram("claimq_batch_bytes", "Bytes of a log entry that this node proposed.", prometheus.ExponentialBuckets(64, 4, 10))
	s.fsync = s.histogram("claimq_raft_fsync_seconds", "How long an append to the log took until it was on disk.", seconds)
	s.commit = s.histogram("claimq_raft_commit_seconds",
		"How long a log entry that this node proposed took until a quorum had it and it was applied here.", seconds)
	s.leaderships = s.counter("claimq_raft_leaderships_total", "Times that this node was elected leader.")
	s.fsm.capture = s.histogram("claimq_raft_snapshot_capture_seconds", "How long applying stood still for a snapshot.", seconds)
	s.fsm.persist = s.histogram("claimq_raft_snapshot_seconds", "How long writing a snapshot took.", prometheus.ExponentialBuckets(0.001, 4, 10))
	s.fsm.snapshotBytes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "claimq_raft_snapshot_bytes", Help: "Size of the last snapshot that this node wrote, 0 if none since its start.",
	})
	s.collectors = append(s.collectors, s.fsm.snapshotBytes)
	s.snapshotFailures = s.counter("claimq_raft_snapshot_failures_total", "Snapshots that were due and could not be taken; each is tried again.")
	s.fsm.restores = s.counter("claimq_raft_restores_total", "Snapshots that this node restored, at start or from the leader.")
}

// makeCounters creates the counters of the cluster's work, which only the leader
// increments.
func (s *nodeStats) makeCounters() {
	f := &s.fsm
	for _, c := range []struct {
		counter    *prometheus.Counter
		name, help string
	}{
		{&f.submitted, "claimq_tasks_submitted_total", "New tasks, also follow-ups and those of schedules"},
		{&f.completed, "claimq_tasks_completed_total", "Tasks that ended as completed"},
		{&f.failed, "claimq_tasks_failed_total", "Tasks that failed for good: no attempts left, permanent, or not started by expires_at"},
		{&f.cancelled, "claimq_tasks_cancelled_total", "Tasks that ended as cancelled"},
		{&f.claims, "claimq_claims_total", "Claims begun"},
		{&f.expiries, "claimq_expiries_total", "Claims ended because their lease ran out"},
		{&f.requeues, "claimq_requeues_total", "Tasks made pending again, or scheduled, by fail, release, retry or expiry"},
		{&f.evictions, "claimq_evictions_total", "Ended tasks removed before their time because they took more than their share of the memory"},
		{&f.forgotten, "claimq_forgotten_total", "Removed tasks and claim requests forgotten before their time because what is remembered took more than its share of the memory"},
		{&f.removals, "claimq_removed_tasks_total", "Ended tasks removed when their retention was over"},
		{&f.slotsRun, "claimq_schedule_runs_total", "Slots of schedules that submitted their task"},
		{&f.slotsSkipped, "claimq_schedule_skips_total", "Slots of schedules that were passed over, as they were missed or the last task had not ended"},
		{&f.wakes, "claimq_waiting_wakes_total", "Times that a waiting claim was tried because tasks had become claimable"},
	} {
		*c.counter = s.counter(c.name, c.help+", counted by the leader.")
	}
}

func (s *nodeStats) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	s.collectors = append(s.collectors, h)
	return h
}

func (s *nodeStats) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	s.collectors = append(s.collectors, c)
	return c
}

// unregister lets another node in this process register.
func (s *nodeStats) unregister() {
	if s.registerer == nil {
		return
	}
	for _, c := range s.collectors {
		s.registerer.Unregister(c)
	}
}

// nodeCollector reads the current values of the node and of Raft.
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
	clockAheadDesc = prometheus.NewDesc("claimq_clock_ahead_seconds",
		"How far a node's wall clock is ahead of what a majority of the voters' show, below 0 if behind.", []string{"node_id"}, nil)
	clockFollowedDesc = prometheus.NewDesc("claimq_clock_followed",
		"1 if times of day follow this leader's wall clock, 0 if it is too far from what a majority of the voters' show, or too few of these are known.", nil, nil)
)

type nodeGauge struct {
	desc *prometheus.Desc
	read func() (float64, error)
}

// Reasons for a gauge to have no value.
var (
	errNoRaft    = errors.New("no raft")
	errNoDisk    = errors.New("no data folder, or not looked at yet")
	errNoContact = errors.New("nothing heard from a leader yet")
)

func newNodeCollector(n *Node) *nodeCollector {
	c := &nodeCollector{node: n}
	c.addRaft()
	c.addLoad()
	c.addDisk()
	return c
}

func (c *nodeCollector) add(name, help string, read func() (float64, error)) {
	c.gauges = append(c.gauges, nodeGauge{prometheus.NewDesc(name, help, nil, nil), read})
}

// always adds a gauge that always has a value.
func (c *nodeCollector) always(name, help string, read func() int64) {
	c.add(name, help, func() (float64, error) { return float64(read()), nil })
}

// whether adds a gauge that is 1 or 0.
func (c *nodeCollector) whether(name, help string, read func() bool) {
	c.always(name, help, func() int64 { return oneIf(read()) })
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func (c *nodeCollector) addRaft() {
	n := c.node
	ofRaft := func(read func() uint64) func() (float64, error) {
		return func() (float64, error) {
			if n.raft == nil {
				return 0, errNoRaft
			}
			return float64(read()), nil
		}
	}
	c.always("claimq_raft_term", "Raft's term on this node.", func() int64 { return int64(n.currentTerm()) })
	c.whether("claimq_raft_leader", "1 if this node leads and serves, else 0.", n.IsLeader)
	c.whether("claimq_raft_has_leader", "1 if this node knows a leader, else 0.", func() bool { return n.leaderID() != "" })
	c.whether("claimq_raft_divided", "1 if this node leads and answers nothing, as the voters have applied different things and no majority the same, else 0.",
		func() bool { d := n.doubt(); return d != nil && d.divided })
	c.add("claimq_raft_commit_index", "Highest log index that this node knows to be committed.", ofRaft(func() uint64 { return n.raft.CommitIndex() }))
	c.add("claimq_raft_last_log_index", "Highest log index that this node has.", ofRaft(func() uint64 { return n.raft.LastIndex() }))
	c.always("claimq_raft_applied_index", "Log index that this node's state reflects.", func() int64 { return int64(n.fsm.AppliedIndex()) })
	c.add("claimq_raft_last_contact_seconds", "How long ago the leader was last heard from; 0 on the leader.", func() (float64, error) {
		switch {
		case n.raft == nil:
			return 0, errNoRaft
		case n.leader.Load() != nil:
			return 0, nil
		}
		ms := n.lastContactMS()
		if ms < 0 {
			return 0, errNoContact
		}
		return float64(ms) / 1000, nil
	})
	c.always("claimq_raft_log_since_snapshot_bytes", "Bytes of log applied since the last snapshot.", func() int64 { bytes, _ := n.fsm.SinceSnapshot(); return bytes })
	c.always("claimq_feature_level", "Replicated feature level.", func() int64 { return int64(n.fsm.Level()) })
}

func (c *nodeCollector) addLoad() {
	n := c.node
	c.always("claimq_queue_commands", "Commands waiting to be written when the last entry was packed.", n.queuedCount)
	c.always("claimq_live_claims", "Claims that live, by this node's state.", func() int64 { return int64(n.fsm.Claims()) })
	c.always("claimq_waiting_claims", "Claims that wait on this node, as the leader, for tasks.", func() int64 {
		if l := n.leader.Load(); l != nil {
			return int64(l.waiters.Len())
		}
		return 0
	})
	c.always("claimq_waiting_ends", "Requests that wait on this node for the end of a task.", func() int64 { return n.fsm.WaitingEnds() })
	c.always("claimq_state_limit_bytes", "State size from which on submits are refused.", func() int64 { return n.cfg.MemoryLimit })
}

func (c *nodeCollector) addDisk() {
	n := c.node
	add := func(name, help string, read func(free, size, mark uint64) float64) {
		c.add(name, help, func() (float64, error) {
			free, size, mark, ok := n.space.Disk.Look()
			if !ok {
				return 0, errNoDisk
			}
			return read(free, size, mark), nil
		})
	}
	add("claimq_disk_free_bytes", "Bytes that this node may still write on the data folder's file system.",
		func(free, _, _ uint64) float64 { return float64(free) })
	add("claimq_disk_size_bytes", "Size of the data folder's file system.", func(_, size, _ uint64) float64 { return float64(size) })
	add("claimq_disk_free_min_bytes", "Free bytes of the data folder's file system below which submits are refused.",
		func(_, _, mark uint64) float64 { return float64(mark) })
	inodes := func(name, help string, read func(free, mark uint64) uint64) {
		c.add(name, help, func() (float64, error) {
			free, mark, ok := n.space.Disk.Inodes()
			if !ok {
				return 0, errNoDisk
			}
			return float64(read(free, mark)), nil
		})
	}
	inodes("claimq_disk_inodes_free", "Files that may still be made on the data folder's file system.", func(free, _ uint64) uint64 { return free })
	inodes("claimq_disk_inodes_free_min", "Free inodes of the data folder's file system below which submits are refused.", func(_, mark uint64) uint64 { return mark })
	add("claimq_disk_low", "1 if the data folder's file system has less free than one of these, else 0.",
		func(_, _, _ uint64) float64 { return float64(oneIf(n.space.Disk.Low())) })
}

func (n *Node) queuedCount() int64 { return n.batcher.LastQueued() }

// Describe implements prometheus.Collector.
func (c *nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		ch <- g.desc
	}
	ch <- followerLagDesc
	ch <- followerContactDesc
	ch <- clockAheadDesc
	ch <- clockFollowedDesc
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
	l := n.leader.Load()
	if n.raft == nil || l == nil {
		return
	}
	l.collectClocks(ch)
	names := make(map[string]string)
	n.fsm.Read(func(m *fsm.Machine) {
		for _, r := range m.Nodes() {
			names[r.UUID] = r.NodeID
		}
	})
	last := n.raft.LastIndex()
	for _, s := range n.servers() {
		name, known := names[string(s.ID)]
		h, ok := n.raft.confirmer().LastHeard(s.ID, l.term)
		if !known || !ok || string(s.ID) == n.uuid {
			continue
		}
		lag := float64(last - min(last, h.LastLog))
		ch <- prometheus.MustNewConstMetric(followerLagDesc, prometheus.GaugeValue, lag, name)
		ch <- prometheus.MustNewConstMetric(followerContactDesc, prometheus.GaugeValue, time.Since(h.At).Seconds(), name)
	}
}

// collectClocks reports on the members' wall clocks.
func (l *leadership) collectClocks(ch chan<- prometheus.Metric) {
	if !l.serves() {
		return
	}
	own, known := l.clock.Ahead()
	ch <- prometheus.MustNewConstMetric(clockFollowedDesc, prometheus.GaugeValue, float64(oneIf(known && lease.Follows(own))))
	n := l.node
	voters, _ := n.clockVoters()
	majority, known := l.wallClocks.Majority(n.clock.Mono(), voters)
	if !known {
		return
	}
	for nodeID, ahead := range l.wallClocks.Ahead(majority) {
		ch <- prometheus.MustNewConstMetric(clockAheadDesc, prometheus.GaugeValue, ahead.Seconds(), nodeID)
	}
}

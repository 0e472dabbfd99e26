package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

// nodeCollector reads the current values of the node and of Raft.
type nodeCollector struct {
	node   *role
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

func newNodeCollector(n *role) *nodeCollector {
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
	c.always("claimq_queue_commands", "Commands waiting to be written when the last entry was packed.", func() int64 { return n.batcher.LastQueued() })
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
			free, size, mark, ok := n.space.Disk.Bytes()
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

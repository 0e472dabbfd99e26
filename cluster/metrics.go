package cluster

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
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
	expired, evicted, forgotten, begun := 0, 0, 0, 0
	for i := range a.Leases {
		if a.Leases[i].Seq == command.FirstAnswer { // the others were shortened
			begun++
		}
	}
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
	add(s.claims, begun)
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

// register registers the metrics, and more, unless registerer is nil.
func (s *nodeStats) register(registerer prometheus.Registerer, more ...prometheus.Collector) error {
	s.registerer = registerer
	s.collectors = append(s.collectors, more...)
	if registerer == nil {
		return nil
	}
	for i, c := range s.collectors {
		if err := registerer.Register(c); err != nil {
			s.collectors = s.collectors[:i]
			s.unregister()
			return err
		}
	}
	return nil
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

// Reasons for a gauge to have no value.
var (
	errNoRaft    = errors.New("no raft")
	errNoDisk    = errors.New("no data folder, or not looked at yet")
	errNoContact = errors.New("nothing heard from a leader yet")
)

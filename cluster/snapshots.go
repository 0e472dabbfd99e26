package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/space"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// snapshotCheckInterval is the interval at which a node checks whether a snapshot is
	// due.
	snapshotCheckInterval = time.Second
	// lowDiskLogBytes is the amount of log that triggers a snapshot while the disk is low,
	// if the normal amount is not less.
	lowDiskLogBytes = 2 * trailingBytes

	// trailingLogsMax and trailingLogsMin bound the entries kept below a snapshot's index
	// for followers that lag a little; trailingBytes lowers them when entries are large.
	// The minimum is far above what can be in flight: a deposed leader's tail, if it
	// reaches that index, begins among them (docs/adr/0008-install-snapshot-livelock.md).
	trailingLogsMax = 10_240
	trailingLogsMin = 1_024
	trailingBytes   = 64 << 20
)

// snapshots takes the snapshots of a node.
type snapshots struct {
	fsm   *replica.Replica
	raft  *raftHandle // nil without Raft
	space *space.Space
	// logBytes and logCommands are the amounts of log that trigger a snapshot.
	logBytes    int64
	logCommands uint64
	// trailing returns the number of entries to keep: trailingLogs, unless a test wants
	// fewer.
	trailing func(bytes, entries int64) uint64
	failures prometheus.Counter
	logger   hclog.Logger
}

// monitor takes a snapshot whenever enough log has been applied since the last one. Raft
// counts entries, which hold up to a thousand commands, so Raft's own trigger is disabled.
func (s *snapshots) monitor(ctx context.Context) {
	for pause.For(ctx, pause.Beat(snapshotCheckInterval)) {
		if !s.due() {
			continue
		}
		err := s.space.SnapshotFits()
		if err == nil {
			err = s.take(ctx)
		}
		if err != nil && ctx.Err() == nil {
			// Also when a membership change is under way: the next check retries.
			s.failures.Inc()
			s.logger.Warn("snapshot not taken, trying again", "error", err)
		}
	}
}

// due reports whether there has been enough log since the last snapshot. Less is enough
// while the disk is low, because the log before a snapshot is deleted. During a restore no
// snapshot is due.
func (s *snapshots) due() bool {
	bytes := s.logBytes
	if s.fsm.Restoring() {
		return false
	}
	if s.space.Disk.Low() {
		bytes = min(bytes, lowDiskLogBytes)
	}
	applied, commands := s.fsm.SinceSnapshot()
	return applied >= bytes || commands >= int64(s.logCommands)
}

// take takes a snapshot now and compacts the log before it.
func (s *snapshots) take(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.raft.Snapshot().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		// Closing stops Persist, and Raft answers when it shuts down.
		return ctx.Err()
	}
}

// keepTrailing sets how much of the log Raft keeps when it next compacts it, before the
// snapshot at index. Raft counts from the end of the log, which has moved on while the
// snapshot was written; without this correction it might keep nothing below index.
func (s *snapshots) keepTrailing(index uint64, bytes, entries int64) {
	if s.raft == nil {
		return
	}
	config := s.raft.ReloadableConfig()
	config.TrailingLogs = s.trailing(bytes, entries) + s.raft.LastIndex() - index
	if err := s.raft.ReloadConfig(config); err != nil {
		s.logger.Error("the number of log entries to keep was not set", "error", err)
	}
}

// trailingLogs returns the number of entries to keep, given their mean size.
func trailingLogs(bytes, entries int64) uint64 {
	if bytes <= 0 || entries <= 0 {
		return trailingLogsMax
	}
	return uint64(min(max(trailingBytes*entries/bytes, trailingLogsMin), trailingLogsMax))
}

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

// callSnapshot is the call by which a leader has another node take a snapshot: {} → indexAnswer, once it
// is on disk.
const callSnapshot = "snapshot"

const (
	// snapshotCheckInterval is the interval at which a node checks whether a snapshot is
	// due.
	snapshotCheckInterval = time.Second
	// lowDiskLogBytes is the amount of log that triggers a snapshot while the disk is low,
	// if the normal amount is not less.
	lowDiskLogBytes = 2 * trailingBytes
)

// snapshots takes the snapshots of a node.
type snapshots struct {
	*role
	// logBytes and logCommands are the amounts of log that trigger a snapshot.
	logBytes    int64
	logCommands uint64
	// trailing returns the number of entries to keep: trailingLogs, unless a test wants
	// fewer.
	trailing func(bytes, entries int64) uint64
	requests snapshotRequests
}

// monitor takes a snapshot whenever enough log has been applied since the last one. Raft
// counts entries, which hold up to a thousand commands, so Raft's own trigger is disabled.
func (s *snapshots) monitor(ctx context.Context) {
	for pause.For(ctx, pause.Beat(s.cfg.interval(snapshotCheckInterval))) {
		if !s.due() {
			continue
		}
		err := s.space.SnapshotFits()
		if err == nil {
			err = s.take(ctx)
		}
		if err != nil && ctx.Err() == nil {
			// Also when a membership change is under way: the next check retries.
			s.stats.snapshotFailures.Inc()
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

// snapshotRequest is a requested snapshot that is being taken.
type snapshotRequest struct {
	done chan struct{} // closed at the end
	err  error         // why it failed; set before done is closed
}

// snapshotRequests runs requested snapshots one at a time. Requests made meanwhile wait for the current one.
type snapshotRequests struct {
	mu      sync.Mutex
	current *snapshotRequest // guarded by mu; nil if none is under way
}

// join returns the current snapshot. If there is no current one, it calls begin to start one; begin
// must not block and must call done exactly once at the end.
func (s *snapshotRequests) join(begin func(done func(error))) *snapshotRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current
	}
	t := &snapshotRequest{done: make(chan struct{})}
	s.current = t
	begin(func(err error) {
		s.mu.Lock()
		s.current = nil
		s.mu.Unlock()
		t.err = err
		close(t.done)
	})
	return t
}

// everywhere takes a snapshot here and asks every other node to take one. A node that cannot is only
// logged. See Node.TakeSnapshot.
func (s *snapshots) everywhere(ctx context.Context) (index uint64, err error) {
	if s.raft == nil {
		return 0, errNoRaft
	}
	if _, err := s.serving(); err != nil {
		return 0, err
	}
	var others []raft.Server
	for _, other := range s.servers() {
		if string(other.ID) != s.uuid {
			others = append(others, other)
		}
	}
	failed := make(chan string, len(others))
	for _, other := range others {
		go func() {
			_, err := ask[indexAnswer](ctx, s.core, string(other.Address), callSnapshot, struct{}{})
			if err != nil {
				failed <- fmt.Sprintf("%s: %v", other.Address, err)
				return
			}
			failed <- ""
		}()
	}
	index, err = s.takeHere(ctx)
	var problems []string
	for range others { // each ends with ctx
		if problem := <-failed; problem != "" {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		s.logger.Warn("not every node took a snapshot", "problems", strings.Join(problems, "; "))
	}
	return index, err
}

// takeHere writes a requested snapshot of this node, or waits for the one that is being written, and
// returns its index once it is on disk. Errors: those of Node.TakeSnapshot.
func (s *snapshots) takeHere(ctx context.Context) (uint64, error) {
	if s.raft == nil {
		return 0, errNoRaft
	}
	t := s.requests.join(func(done func(error)) {
		s.start(func() { done(s.take(s.ctx)) })
	})
	select {
	case <-t.done:
		if t.err != nil && !errors.Is(t.err, raft.ErrNothingNewToSnapshot) {
			if s.closing.Load() {
				return 0, fmt.Errorf("%w: %w", nodes.ErrShuttingDown, t.err)
			}
			return 0, fmt.Errorf("%w: take a snapshot: %w", nodes.ErrOverloaded, t.err)
		}
		return s.fsm.SnapshotIndex(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: the snapshot is still being written", nodes.ErrOutcomeUnknown)
	}
}

func (s *snapshots) answerSnapshot(ctx context.Context, _ []byte) ([]byte, error) {
	index, err := s.takeHere(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(indexAnswer{Index: index, Chain: s.fsm.ChainAt(index)})
}

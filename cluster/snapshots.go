package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
)

const (
	// snapshotCheckInterval is how often a node looks whether a snapshot is due.
	snapshotCheckInterval = time.Second
	// snapshotRateMax bounds the writing of a snapshot, in bytes per second, so
	// that the log's own writes are not held up: with four times as much, requests
	// waited for up to 0.6 s beside the snapshots of three nodes on one disk
	// (docs/benchmarks.md).
	snapshotRateMax = 25 << 20
	// snapshotChunkSize is how much is written between two pauses: a step that goes
	// to disk at once.
	snapshotChunkSize = storage.WriteBackStep
	// lowDiskLogBytes is how much log makes a snapshot due while the disk is low, if
	// not less does.
	lowDiskLogBytes = 2 * trailingBytes

	// trailingLogsMax and trailingLogsMin bound the entries kept below a
	// snapshot's index for followers that lag a little; trailingBytes lowers them
	// when entries are large. The minimum is far above what can be in flight: a
	// deposed leader's tail, if it reaches that index, begins among them
	// (docs/adr/0008-install-snapshot-livelock.md).
	trailingLogsMax = 10_240
	trailingLogsMin = 1_024
	trailingBytes   = 64 << 20
)

// fsmSnapshot writes a captured state. It is a raft.FSMSnapshot.
type fsmSnapshot struct {
	fsm *raftFSM
	// ctx ends with the Raft that took it, or when its state was replaced.
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	state *fsm.Snapshot // guarded by mu; nil when it was released
	// What had been applied since the snapshot before, at the capture.
	bytes, commands, entries int64
}

// Persist writes the snapshot, at a bounded rate. It is given up when the Raft that
// took it is shut down, or another snapshot replaces the state: the next look takes
// another.
func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	start := time.Now()
	state := s.captured()
	if state == nil {
		return errors.Join(context.Cause(s.ctx), sink.Cancel())
	}
	w := &pacedWriter{sink: sink, ctx: s.ctx, rate: s.fsm.persistRate, due: start}
	if _, err := state.WriteTo(w); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return err
	}
	s.fsm.snapshotIndex.Store(state.Index())
	s.fsm.beforeCompact(state.Index(), s.bytes, s.entries)
	s.fsm.sinceBytes.Add(-s.bytes)
	s.fsm.sinceCommands.Add(-s.commands)
	s.fsm.sinceEntries.Add(-s.entries)
	s.fsm.stats.snapshot(time.Since(start), w.written)
	return nil
}

// captured returns the state, nil if it was released.
func (s *fsmSnapshot) captured() *fsm.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Release ends the capture.
func (s *fsmSnapshot) Release() {
	s.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != nil {
		s.state.Release()
		s.state = nil
	}
}

// void gives up the snapshot of a state that is about to be replaced. What is being
// written keeps the state for as long as a chunk takes; what has not begun, and may
// wait for the restore, does not.
func (s *fsmSnapshot) void() {
	s.cancel(errReplaced)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = nil
}

// pacedWriter writes so many bytes per second at most, until ctx ends.
type pacedWriter struct {
	sink    raft.SnapshotSink
	ctx     context.Context
	rate    int64
	due     time.Time // when the next chunk may be written; at first the beginning
	written int64
}

func (w *pacedWriter) Write(b []byte) (int, error) {
	total := 0
	for len(b) > 0 {
		chunk := b[:min(len(b), snapshotChunkSize)]
		n, err := w.sink.Write(chunk)
		total += n
		w.written += int64(n)
		if err != nil {
			return total, err
		}
		b = b[n:]
		if err := w.pace(n); err != nil {
			return total, err
		}
	}
	return total, nil
}

// pace waits until n bytes that were written are no longer ahead of the rate. After
// a stall no more than a chunk is caught up with: what held the snapshot up held the
// log up too, which comes first.
func (w *pacedWriter) pace(n int) error {
	now := time.Now()
	w.due = w.due.Add(w.takes(n))
	if earliest := now.Add(-w.takes(snapshotChunkSize)); w.due.Before(earliest) {
		w.due = earliest
	}
	timer := time.NewTimer(w.due.Sub(now))
	defer timer.Stop()
	select {
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	case <-timer.C:
		return nil
	}
}

// takes returns how long n bytes take at the rate; n is at most a chunk.
func (w *pacedWriter) takes(n int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(w.rate)
}

// monitorSnapshots takes a snapshot whenever enough log has been applied since
// the last one. Raft counts entries, and an entry holds up to a thousand
// commands, so Raft's own count is switched off.
func (n *Node) monitorSnapshots(ctx context.Context) {
	ticker := time.NewTicker(snapshotCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !n.snapshotDue() {
			continue
		}
		err := n.snapshotFits()
		if err == nil {
			err = n.takeSnapshot(ctx)
		}
		if err != nil && ctx.Err() == nil {
			// Also when a membership change is under way: the next look retries.
			n.stats.snapshotFailures.Inc()
			n.logger.Warn("snapshot not taken, trying again", "error", err)
		}
	}
}

// snapshotDue reports whether there has been enough log since the last snapshot:
// less is enough while the disk is low, for the log behind a snapshot is deleted.
// Of a restore that is under way there is none.
func (n *Node) snapshotDue() bool {
	f, bytes := n.fsm, n.cfg.SnapshotLogBytes
	if f.restoring() {
		return false
	}
	if n.disk.low.Load() {
		bytes = min(bytes, lowDiskLogBytes)
	}
	return f.sinceBytes.Load() >= bytes || f.sinceCommands.Load() >= int64(n.cfg.SnapshotLogCommands)
}

// snapshotFits returns an error if the disk may have no room for a snapshot: to
// write until it is full would stop the log, and so the node.
func (n *Node) snapshotFits() error {
	bytes := n.fsm.bytes.Load()
	if n.disk.fits(bytes) {
		return nil
	}
	return fmt.Errorf("the data folder's disk has %d bytes free, a snapshot may take %d", n.disk.free.Load(), bytes)
}

// takeSnapshot takes a snapshot now and compacts the log behind it.
func (n *Node) takeSnapshot(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- n.raft.Snapshot().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		// Closing stops Persist, and Raft answers when it shuts down.
		return ctx.Err()
	}
}

// keepTrailing sets how much of the log Raft keeps when it compacts it, which
// it does next, behind the snapshot at index. Raft counts from the end of the
// log, which has moved on while the snapshot was written: counted so, it might
// keep nothing below index.
func (n *Node) keepTrailing(index uint64, bytes, entries int64) {
	if n.raft == nil {
		return
	}
	config := n.raft.ReloadableConfig()
	config.TrailingLogs = n.trailing(bytes, entries) + n.raft.LastIndex() - index
	if err := n.raft.ReloadConfig(config); err != nil {
		n.logger.Error("the number of log entries to keep was not set", "error", err)
	}
}

// trailingLogs returns how many entries to keep, by their mean size.
func trailingLogs(bytes, entries int64) uint64 {
	if bytes <= 0 || entries <= 0 {
		return trailingLogsMax
	}
	return uint64(min(max(trailingBytes*entries/bytes, trailingLogsMin), trailingLogsMax))
}

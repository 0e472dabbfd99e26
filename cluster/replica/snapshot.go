package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
)

const (
	// SnapshotRateMax bounds the writing of a snapshot, in bytes per second, so that it
	// does not delay the log's own writes. With four times as much, requests waited for up
	// to 0.6 s during the snapshots of three nodes on one disk (bench/HISTORY.md).
	SnapshotRateMax = 25 << 20
	// snapshotChunkSize is the amount written between two pauses: one step that goes to
	// disk at once.
	snapshotChunkSize = storage.WriteBackStep
)

// snapshot writes a captured state. It is a raft.FSMSnapshot.
type snapshot struct {
	of *Replica
	// ctx ends with the Raft that took it, or when its state was replaced.
	ctx    context.Context
	cancel context.CancelCauseFunc

	released chan struct{} // closed by Release: Raft has recorded the snapshot and compacted its log

	mu        sync.Mutex
	state     *fsm.Snapshot // guarded by mu; nil after release
	completed bool          // guarded by mu; Persist tells Raft that it is on disk
	// What had been applied since the previous snapshot, at the capture.
	bytes, commands, entries int64
}

// Persist writes the snapshot at a bounded rate. It is abandoned when the Raft that took it
// is shut down, or when another snapshot replaces the state, even if it is on disk
// completely by then: the next check takes another one.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	start := time.Now()
	state := s.captured()
	if state == nil {
		return errors.Join(context.Cause(s.ctx), sink.Cancel())
	}
	w := &pacedWriter{sink: sink, ctx: s.ctx, rate: s.of.PersistRate, due: start}
	if _, err := state.WriteTo(w); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return err
	}
	if !s.complete() {
		// Otherwise Raft would take it for its newest and forget the one that has arrived
		// in the meantime.
		return context.Cause(s.ctx)
	}
	s.of.snapshotIndex.Store(state.Index())
	s.of.cfg.BeforeCompact(state.Index(), s.bytes, s.entries)
	s.of.sinceBytes.Add(-s.bytes)
	s.of.sinceCommands.Add(-s.commands)
	s.of.sinceEntries.Add(-s.entries)
	s.of.cfg.Stats.Persisted(time.Since(start), w.written)
	return nil
}

// captured returns the state, or nil after release.
func (s *snapshot) captured() *fsm.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// complete marks the snapshot as completed, unless it was abandoned. It returns whether it did.
func (s *snapshot) complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.completed = s.ctx.Err() == nil
	return s.completed
}

// Release ends the capture.
func (s *snapshot) Release() {
	s.cancel(nil)
	close(s.released)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != nil {
		s.state.Release()
		s.state = nil
	}
}

// abandon abandons the snapshot of a state that is about to be replaced. One that is being
// written keeps the state for as long as a chunk takes; one that has not begun, and may
// wait for the restore, does not. If it was completed already, abandon waits until it is
// released: otherwise Raft would take it for its newest after the restored one, and compact
// its log accordingly.
func (s *snapshot) abandon() {
	s.cancel(errReplaced)
	s.mu.Lock()
	s.state = nil
	completed := s.completed
	s.mu.Unlock()
	if completed {
		<-s.released
	}
}

// pacedWriter limits the bytes written per second, until ctx ends.
type pacedWriter struct {
	sink    raft.SnapshotSink
	ctx     context.Context
	rate    int64
	due     time.Time // when the next chunk may be written; initially the start
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

// pace waits until the n bytes written are no longer ahead of the rate. After a stall it
// catches up by at most one chunk, because what delayed the snapshot also delayed the log,
// which has priority.
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

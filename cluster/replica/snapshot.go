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
	// SnapshotRateMax bounds the writing of a snapshot, in bytes per second, so
	// that the log's own writes are not held up: with four times as much, requests
	// waited for up to 0.6 s beside the snapshots of three nodes on one disk
	// (bench/HISTORY.md).
	SnapshotRateMax = 25 << 20
	// snapshotChunkSize is how much is written between two pauses: a step that goes
	// to disk at once.
	snapshotChunkSize = storage.WriteBackStep
)

// snapshot writes a captured state. It is a raft.FSMSnapshot.
type snapshot struct {
	of *Replica
	// ctx ends with the Raft that took it, or when its state was replaced.
	ctx    context.Context
	cancel context.CancelCauseFunc

	released chan struct{} // closed by Release: Raft has noted the snapshot, and compacted its log

	mu     sync.Mutex
	state  *fsm.Snapshot // guarded by mu; nil when it was released
	counts bool          // guarded by mu; Raft is told that it was taken
	// What had been applied since the snapshot before, at the capture.
	bytes, commands, entries int64
}

// Persist writes the snapshot, at a bounded rate. It is given up when the Raft that
// took it is shut down, or another snapshot replaces the state, also when all of it is on
// disk by then: the next look takes another.
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
	if !s.count() {
		// Raft would take it for its newest, and no more know the one that came meanwhile.
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

// captured returns the state, nil if it was released.
func (s *snapshot) captured() *fsm.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// count has the snapshot count, unless it was given up.
func (s *snapshot) count() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = s.ctx.Err() == nil
	return s.counts
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

// void gives up the snapshot of a state that is about to be replaced. What is being
// written keeps the state for as long as a chunk takes; what has not begun, and may
// wait for the restore, does not. One that counts already is waited for: else Raft would
// take it for its newest after the one that is restored, and compact its log while that
// goes for it.
func (s *snapshot) void() {
	s.cancel(errReplaced)
	s.mu.Lock()
	s.state = nil
	counts := s.counts
	s.mu.Unlock()
	if counts {
		<-s.released
	}
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

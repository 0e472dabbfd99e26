package replica

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// smallStatePart: a state smaller than this part of the room for a restore is kept during
// it, because dropping it would free too little.
const smallStatePart = 64

// ErrRestoring is returned to readers while the state is absent.
var ErrRestoring = fmt.Errorf("%w: this node is restoring a snapshot, and has no memory for its old state meanwhile", nodes.ErrNoLeader)

// errReplaced ends the writing of a snapshot whose state was replaced by another.
var errReplaced = errors.New("another snapshot has replaced the state")

// RestoreRoom returns the maximum size of the old and the new state together while a
// snapshot is restored: 40 % of the memory, or 80 % of memory_limit if that is less.
func RestoreRoom(memoryLimit int64, total uint64) int64 {
	return min(memoryLimit, int64(total/2)) / 5 * 4
}

// Restore replaces the state by a snapshot's. The old state stays until the new one is
// complete, and also if the snapshot does not verify. If there is no room for both, the
// snapshot is verified first, then the old state is dropped, and a failure after that is
// fatal.
func (r *Replica) Restore(source io.ReadCloser) error {
	defer source.Close()
	r.replacing.Store(true)
	defer r.replacing.Store(false)
	if s := r.taken.Swap(nil); s != nil {
		s.abandon()
	}
	absent, err := r.makeRoom(source)
	var m *fsm.Machine
	if err == nil {
		m, err = fsm.ReadSnapshot(source)
	}
	if err != nil {
		err = fmt.Errorf("restore snapshot: %w", err)
		if absent {
			r.fatal(fmt.Errorf("%w: the state that this node had was dropped before, as there is no memory for both; the snapshot had been verified: "+
				"start this node again; if that does not help, check its disk and its memory, remove it from the cluster and join it again with an empty folder", err))
		}
		if !r.started.Load() {
			r.startErr.Store(&err)
		}
		return err
	}
	r.replace(m)
	r.replayTo = 0
	r.sinceBytes.Store(0)
	r.sinceCommands.Store(0)
	r.sinceEntries.Store(0)
	r.cfg.Stats.Restored()
	if r.restores.restored(m.Index()) {
		r.fatal(fmt.Errorf("%w: it was sent %d snapshots in a row without getting past log entry %d: start it again; "+
			"if that does not help, remove it from the cluster and join it again with an empty folder",
			ErrRestoreLoop, restoresMax, m.Index()))
	}
	return nil
}

// replace makes m the state.
func (r *Replica) replace(m *fsm.Machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machine = m
	r.chain.restart(ChainPoint{Index: m.Index(), Chain: m.Chain()})
	r.absent.Store(false)
	r.appliedAt = r.cfg.Clock.Mono()
	r.noteLocked(m.Index())
	r.watches.restored()
}

// makeRoom drops the state if there is no room for it and the snapshot's together, after
// verifying the snapshot as far as that is possible without building its state. When it
// returns, source is at its start. absent reports whether the state was dropped. Errors:
// those of fsm.VerifySnapshot and of reading; the state is then unchanged.
func (r *Replica) makeRoom(source io.ReadCloser) (absent bool, err error) {
	old := r.bytes.Load()
	file := rewindable(source)
	if old < r.RestoreRoom/smallStatePart || file == nil {
		return false, nil
	}
	bytes, err := fsm.VerifySnapshot(file)
	if err != nil {
		return false, err
	}
	if err := file.Rewind(); err != nil {
		return false, err
	}
	if bytes <= r.RestoreRoom-old {
		return false, nil
	}
	r.cfg.Logger.Info("there is no memory for two states: the old one is dropped before the snapshot is restored", "old", bytesize.Text(old), "new", bytesize.Text(bytes))
	r.mu.Lock()
	r.machine = r.machine.Remnant()
	r.absent.Store(true)
	r.mu.Unlock()
	// Otherwise the garbage collector would wait until the heap is several times the live
	// data.
	runtime.GC()
	return true, nil
}

// rewinder is a snapshot that can be read again from its start.
type rewinder interface {
	io.Reader
	Rewind() error
}

// rewindable returns the snapshot that Raft has wrapped in r, or nil if it cannot be read
// twice because it is not from a data folder.
func rewindable(r io.ReadCloser) rewinder {
	for {
		if file, ok := r.(rewinder); ok {
			return file
		}
		wrapper, ok := r.(raft.ReadCloserWrapper)
		if !ok {
			return nil
		}
		r = wrapper.WrappedReadCloser()
	}
}

// restoresMax is the number of snapshots that a follower restores in a row. If its log does
// not fit the leader's, it can be sent one after the other as fast as possible without
// making progress (docs/adr/0008-install-snapshot-livelock.md).
const restoresMax = 10

// ErrRestoreLoop ends a node that is sent one snapshot after the other without making
// progress. After a restart it makes progress, because its log is then empty.
var ErrRestoreLoop = errors.New("this node cannot catch up")

// restoreWatch detects restores without progress by their number, because a large state
// takes long to restore. It belongs to Raft's apply goroutine.
type restoreWatch struct {
	count int    // restores since anything was applied or the index grew
	index uint64 // the highest index restored
}

// applied records progress.
func (w *restoreWatch) applied() { w.count = 0 }

// restored records a restore and reports whether it was the restoresMax-th without
// progress.
func (w *restoreWatch) restored(index uint64) bool {
	if index > w.index {
		w.count, w.index = 0, index
	}
	w.count++
	return w.count >= restoresMax
}

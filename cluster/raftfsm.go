package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

// indexWaitersMax bounds the reads that wait for an index to be applied here.
const indexWaitersMax = 16_384

// raftFSM hands committed entries to the state machine. It holds the one lock
// around the state: Apply writes under it, reads read under it, so readers see
// states between entries only.
type raftFSM struct {
	clock  ClockSource
	fatal  func(error) // never returns
	stats  *fsmStats
	logger hclog.Logger
	// captured takes the state at a checkpoint, to be hashed beside Apply. If
	// nobody is ready for it the checkpoint goes unnoted.
	captured chan *fsm.Snapshot
	// beforeCompact is told of a snapshot that has been written, before Raft
	// compacts the log: its index, and how many bytes and entries had been applied
	// since the one before.
	beforeCompact func(index uint64, bytes, entries int64)
	// stored, if not nil, waits until this node's disk has the log up to an index. It is
	// set between two runs of Raft. unstored is its first error; it belongs to Raft's
	// apply goroutine.
	stored   func(index uint64) error
	unstored error
	// awaited, if not nil, reports whether somebody here waits for what becomes of
	// an entry. Else nobody does, and the entry's results are dropped.
	awaited func() bool
	answers answerPool
	// lifetime is that of the Raft which runs: its end ends a snapshot that is being
	// written. It is set between two runs.
	lifetime context.Context
	// persistRate is how many bytes of a snapshot are written per second at most.
	persistRate int64
	// restoreRoom is how many bytes of state there may be while a snapshot is
	// restored, the old and the new one together; past that the old one goes first.
	restoreRoom int64

	mu sync.RWMutex
	// machine is replaced by Restore. It is guarded by mu. While absent is true it
	// has of the state what does not grow with the tasks.
	machine   *fsm.Machine
	absent    atomic.Bool   // set under mu
	appliedAt time.Duration // guarded by mu; monotonic time of the last entry
	chain     chainPoints   // guarded by mu; the newest is machine's
	// leading is told of each entry; nil while not leading. It is guarded by mu,
	// and called with it held.
	leading func(*fsm.Machine, *fsm.Applied)

	// watches are told of each entry, with mu held.
	watches *watches

	// applied is the index that the state reflects: of the last entry, or of a
	// configuration entry after it. Raft's own applied index runs ahead of this
	// one. It is set under mu.
	applied atomic.Uint64
	// bytes is the state's size by its own estimate, ended that of the tasks that
	// have ended, and claims how many live.
	bytes atomic.Int64
	ended atomic.Int64
	// remembered is that of what is remembered of removed tasks and of claim requests.
	remembered atomic.Int64
	claims     atomic.Int64
	level      atomic.Uint32
	// sinceBytes and sinceCommands count the log applied since the snapshot.
	sinceBytes    atomic.Int64
	sinceCommands atomic.Int64
	sinceEntries  atomic.Int64
	// snapshotIndex is the index of the newest snapshot that was taken here.
	snapshotIndex atomic.Uint64
	restores      restoreWatch
	// replayTo is set while a Raft that was started anew hands out entries that
	// are in the state already: the last of them. It belongs to Raft's apply
	// goroutine.
	replayTo uint64
	// taken is the snapshot that was captured last, nil once its state was replaced.
	taken atomic.Pointer[fsmSnapshot]
	// replacing is true while a snapshot is restored: who still reads the state that
	// it replaces, and so keeps it in memory, is to be quick.
	replacing atomic.Bool
	// started is true once Raft runs; startErr is why a snapshot could not be
	// restored before.
	started  atomic.Bool
	startErr atomic.Pointer[error]

	waitMu  sync.Mutex
	waiters indexHeap    // guarded by waitMu
	waiting atomic.Int64 // len(waiters)
}

func newRaftFSM(clock ClockSource, fatal func(error), stats *fsmStats) *raftFSM {
	f := &raftFSM{
		clock:    clock,
		stats:    stats,
		logger:   hclog.NewNullLogger(),
		captured: make(chan *fsm.Snapshot),
		machine:  fsm.New(),
		watches:  newWatches(),

		lifetime:    context.Background(),
		persistRate: snapshotRateMax,
		restoreRoom: math.MaxInt64,
	}
	f.chain.restart(chainPoint{})
	// Returning from Apply would advance Raft's index past an entry that was
	// not applied, so a fatal that returns is followed by nothing.
	f.fatal = func(err error) {
		fatal(err)
		select {}
	}
	return f
}

// Apply applies one committed entry and returns *fsm.Applied, without results if
// nobody waits for them.
func (f *raftFSM) Apply(l *raft.Log) any {
	if f.replayed(l.Index) {
		return &fsm.Applied{}
	}
	if err := f.awaitStored(l.Index); err != nil {
		return err
	}
	return f.apply(l.Index, l.Term, l.Data)
}

// awaitStored waits until this node's disk has the log up to index: what it does not
// have is not committed, whatever Raft takes it for. After an error, which ends the
// node, nothing is ever applied or captured again.
func (f *raftFSM) awaitStored(index uint64) error {
	if f.unstored == nil && f.stored != nil {
		f.unstored = f.stored(index)
	}
	return f.unstored
}

// expectReplay is called between two runs of Raft: the next one hands out again
// what is in the state already.
func (f *raftFSM) expectReplay() { f.replayTo = f.applied.Load() }

// replayed reports whether the entry is in the state already.
func (f *raftFSM) replayed(index uint64) bool {
	if f.replayTo == 0 {
		return false
	}
	known := index <= f.replayTo
	if index >= f.replayTo {
		f.replayTo = 0
	}
	return known
}

func (f *raftFSM) apply(index, term uint64, data []byte) *fsm.Applied {
	// An entry of this node's is awaited since before Raft was given it.
	replay := f.awaited != nil && !f.awaited()
	f.mu.Lock()
	chain := chainLink(f.machine.Chain(), index, term, data)
	applied, err := f.applyLocked(index, data, replay)
	if err != nil {
		f.fatal(fmt.Errorf("apply log entry %d: %w", index, err))
	}
	f.machine.SetChain(chain)
	f.chain.add(chainPoint{Index: index, Chain: chain})
	f.appliedAt = f.clock.Mono()
	if f.leading != nil {
		f.leading(f.machine, &applied)
	}
	if applied.Restored {
		f.watches.restored()
	}
	f.watches.applied(&applied)
	var capture *fsm.Snapshot
	if applied.Checkpoint {
		capture = f.machine.Snapshot()
	}
	leading := f.leading != nil
	f.noteLocked(index)
	f.mu.Unlock()

	f.restores.applied()
	f.sinceBytes.Add(int64(len(data)))
	f.sinceCommands.Add(int64(len(applied.Results)))
	f.sinceEntries.Add(1)
	f.stats.applied(&applied, leading)
	if replay {
		applied.Results = nil
	}
	if capture != nil {
		select {
		case f.captured <- capture:
		default:
			capture.Release()
		}
	}
	return &applied
}

// applyLocked applies an entry. If it is a replay its results are good until the
// next one, else until they have been released.
func (f *raftFSM) applyLocked(index uint64, data []byte, replay bool) (fsm.Applied, error) {
	if replay {
		return f.machine.Replay(index, data)
	}
	answers := f.answers.take()
	applied, err := f.machine.ApplyInto(answers.memory, index, data)
	answers.share(&applied)
	return applied, err
}

// noteLocked publishes what changed, under the lock: who reads the index and
// then takes the lock finds at least that state.
func (f *raftFSM) noteLocked(index uint64) {
	f.bytes.Store(f.machine.Bytes())
	f.ended.Store(f.machine.EndedBytes())
	f.remembered.Store(f.machine.RememberedBytes())
	f.claims.Store(int64(f.machine.ClaimCount()))
	f.level.Store(f.machine.Level())
	f.applied.Store(index)
	f.wake(index)
}

// held returns what the state takes. Its numbers may be of neighbouring entries.
func (f *raftFSM) held() stateBytes {
	return stateBytes{f.bytes.Load(), f.ended.Load(), f.remembered.Load()}
}

// StoreConfiguration moves the applied index over a configuration entry, which
// does not concern the state. It makes raftFSM a raft.ConfigurationStore.
func (f *raftFSM) StoreConfiguration(index uint64, _ raft.Configuration) {
	if f.replayed(index) || f.unstored != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied.Store(index)
	f.wake(index)
}

// errReplaying is returned for a snapshot while a Raft that was started anew has
// not come to the state's own entry yet.
var errReplaying = errors.New("raft was started anew and has not caught up with the state")

// errRestoreUnderWay is returned for a snapshot while a restore goes through the log:
// the snapshot would not have it, and the log that it is of would go.
var errRestoreUnderWay = errors.New("a backup is being restored")

// Snapshot captures the state. It runs on Raft's apply goroutine.
func (f *raftFSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.replayTo != 0 {
		// Raft would take the state for that of an earlier entry.
		return nil, errReplaying
	}
	if f.unstored != nil {
		return nil, f.unstored
	}
	start := time.Now()
	f.mu.Lock()
	if _, under := f.machine.Restoring(); under {
		f.mu.Unlock()
		return nil, errRestoreUnderWay
	}
	s := f.machine.Snapshot()
	f.mu.Unlock()
	f.stats.capture.Observe(time.Since(start).Seconds())
	taken := &fsmSnapshot{
		state: s, fsm: f,
		bytes: f.sinceBytes.Load(), commands: f.sinceCommands.Load(), entries: f.sinceEntries.Load(),
	}
	taken.ctx, taken.cancel = context.WithCancelCause(f.lifetime)
	f.taken.Store(taken)
	return taken, nil
}

// read calls fn with the state, under the read lock, and returns its index. While
// the state is absent fn sees no tasks, but the nodes, the clocks and the level: it
// is for who needs these, or would be right to do nothing.
func (f *raftFSM) read(fn func(m *fsm.Machine)) uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	fn(f.machine)
	return f.machine.Index()
}

// restoring reports whether a restore goes through the log.
func (f *raftFSM) restoring() (under bool) {
	f.read(func(m *fsm.Machine) { _, under = m.Restoring() })
	return under
}

// readState is read for who tells others what is there. Errors: errRestoring, and
// fn is not called.
func (f *raftFSM) readState(fn func(m *fsm.Machine)) (uint64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.absent.Load() {
		return 0, errRestoring
	}
	fn(f.machine)
	return f.machine.Index(), nil
}

// capture captures the state for who reads it beside Apply. Errors: errRestoring.
func (f *raftFSM) capture() (*fsm.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.absent.Load() {
		return nil, errRestoring
	}
	return f.machine.Snapshot(), nil
}

// estimate returns what the clocks would be now, judging by the last entry:
// what a node that does not lead knows of the time. Call it under the lock.
func (f *raftFSM) estimate(m *fsm.Machine) fsm.Stamp {
	since := (f.clock.Mono() - f.appliedAt).Milliseconds()
	s := m.Stamp()
	return fsm.Stamp{U: s.U + since, T: s.T + since}
}

// wait waits until the state reflects index. Errors: ctx's cause;
// fsm.ErrOverloaded if too many wait.
func (f *raftFSM) wait(ctx context.Context, index uint64) error {
	if f.applied.Load() >= index {
		return nil
	}
	w := &indexWaiter{index: index, done: make(chan struct{})}
	f.waitMu.Lock()
	if len(f.waiters) >= indexWaitersMax {
		f.waitMu.Unlock()
		return &fsm.Overload{Bound: fsm.BoundWaitingReads, Text: fmt.Sprintf("%d reads wait for an index", indexWaitersMax)}
	}
	f.waiters.push(w)
	f.waiting.Store(int64(len(f.waiters)))
	f.waitMu.Unlock()
	// It may have been applied between the look and the push: wake stores
	// applied before it looks at waiting.
	if f.applied.Load() >= index {
		f.wake(f.applied.Load())
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		f.waitMu.Lock()
		f.waiters.remove(w)
		f.waiting.Store(int64(len(f.waiters)))
		f.waitMu.Unlock()
		return context.Cause(ctx)
	}
}

// wake ends the waits for indexes up to index.
func (f *raftFSM) wake(index uint64) {
	if f.waiting.Load() == 0 {
		return
	}
	f.waitMu.Lock()
	defer f.waitMu.Unlock()
	for len(f.waiters) > 0 && f.waiters[0].index <= index {
		close(f.waiters.pop().done)
	}
	f.waiting.Store(int64(len(f.waiters)))
}

// indexWaiter is a wait for an index; pos is its place in the heap, -1 when it
// is no longer there.
type indexWaiter struct {
	index uint64
	pos   int
	done  chan struct{}
}

// indexHeap is a binary heap, lowest index first.
type indexHeap []*indexWaiter

func (h *indexHeap) push(w *indexWaiter) {
	w.pos = len(*h)
	*h = append(*h, w)
	h.up(w.pos)
}

func (h *indexHeap) pop() *indexWaiter {
	w := (*h)[0]
	h.remove(w)
	return w
}

func (h *indexHeap) remove(w *indexWaiter) {
	i := w.pos
	if i < 0 {
		return
	}
	last := len(*h) - 1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	w.pos = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

func (h indexHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h indexHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].index <= h[i].index {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h indexHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].index < h[child].index {
			child++
		}
		if h[i].index <= h[child].index {
			return
		}
		h.swap(i, child)
		i = child
	}
}

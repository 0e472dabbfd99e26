package replica

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

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

// Stats counts what a Replica does. It is called under the state's lock or on Raft's
// goroutines, and must be quick.
type Stats interface {
	// Applied is told of every entry, and whether this node leads.
	Applied(a *fsm.Applied, leading bool)
	// Captured is told how long applying stood still for a snapshot.
	Captured(took time.Duration)
	// Persisted is told of a snapshot that was written.
	Persisted(took time.Duration, bytes int64)
	// Restored is told of a snapshot that was restored.
	Restored()
}

// Config is what a Replica is made of. All but Awaited must be set.
type Config struct {
	Clock lease.ClockSource
	// Fatal ends the node. If it returns, as in tests, nothing is ever applied after it.
	Fatal  func(error)
	Stats  Stats
	Logger hclog.Logger
	// BeforeCompact is told of a snapshot that has been written, before Raft
	// compacts the log: its index, and how many bytes and entries had been applied
	// since the one before.
	BeforeCompact func(index uint64, bytes, entries int64)
	// Awaited, if not nil, reports whether somebody here waits for the result of
	// an entry. Else nobody does, and the entry's results are dropped.
	Awaited func() bool
}

// Replica is one node's copy of the state, to which Raft hands committed entries: it is
// a raft.FSM. It holds the one lock around the state: Apply writes under it, readers
// read under it, so readers see states between entries only.
type Replica struct {
	cfg Config
	// Captured gets the state at each checkpoint, to be hashed beside Apply. If
	// nobody is ready for it the checkpoint goes unnoted.
	Captured chan *fsm.Snapshot
	// PersistRate is how many bytes of a snapshot are written per second at most. It
	// may be set while none is being written.
	PersistRate int64
	// RestoreRoom is how many bytes of state there may be while a snapshot is
	// restored, the old and the new one together; past that the old one goes first. It
	// may be set while none is being restored.
	RestoreRoom int64

	// stored, if not nil, waits until this node's disk has the log up to an index. It is
	// set between two runs of Raft. unstored is its first error; it belongs to Raft's
	// apply goroutine.
	stored   func(index uint64) error
	unstored error
	answers  answerPool
	// lifetime is that of the Raft which runs: its end ends a snapshot that is being
	// written. It is set between two runs.
	lifetime context.Context

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
	// What the state takes, by its own estimate.
	bytes, ended, remembered atomic.Int64
	claims                   atomic.Int64
	level                    atomic.Uint32
	// What was applied of the log since the newest snapshot.
	sinceBytes, sinceCommands, sinceEntries atomic.Int64
	// snapshotIndex is the index of the newest snapshot that was taken here.
	snapshotIndex atomic.Uint64
	restores      restoreWatch
	// replayTo is set while a Raft that was started again hands out entries that
	// are in the state already: the last of them. It belongs to Raft's apply
	// goroutine.
	replayTo uint64
	// taken is the snapshot that was captured last, nil once its state was replaced.
	taken atomic.Pointer[snapshot]
	// replacing is true while a snapshot is restored.
	replacing atomic.Bool
	// started is true once Raft runs; startErr is why a snapshot could not be
	// restored before.
	started  atomic.Bool
	startErr atomic.Pointer[error]

	waitMu  sync.Mutex
	waiters indexHeap    // guarded by waitMu
	waiting atomic.Int64 // len(waiters)
}

// New returns a replica with an empty state.
func New(cfg Config) *Replica {
	r := &Replica{
		cfg:      cfg,
		Captured: make(chan *fsm.Snapshot),
		machine:  fsm.New(),
		watches:  newWatches(),

		lifetime:    context.Background(),
		PersistRate: SnapshotRateMax,
		RestoreRoom: math.MaxInt64,
	}
	r.chain.restart(ChainPoint{})
	return r
}

// fatal ends the node. It never returns: returning from Apply would advance Raft's
// index past an entry that was not applied.
func (r *Replica) fatal(err error) {
	r.cfg.Fatal(err)
	select {}
}

// BeginRun is called before each start of Raft: lifetime ends with it, and stored, if
// not nil, waits until this node's disk has the log up to an index. again is true for a
// Raft that is started again: it hands out what is in the state already.
func (r *Replica) BeginRun(lifetime context.Context, stored func(index uint64) error, again bool) {
	r.lifetime, r.stored = lifetime, stored
	if again {
		r.replayTo = r.applied.Load()
	}
}

// Started is called once Raft runs. It returns why the newest snapshot could not be
// restored, nil if it was, or there is none.
func (r *Replica) Started() error {
	r.started.Store(true)
	if refused := r.startErr.Load(); refused != nil {
		return *refused
	}
	return nil
}

// Lead has applied told of each entry from now on, under the state's lock, and calls
// begin with the state of that moment; unless ctx has ended.
func (r *Replica) Lead(ctx context.Context, applied func(*fsm.Machine, *fsm.Applied), begin func(*fsm.Machine)) (leads bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil { // Follow may have been called, and would not be again
		return false
	}
	r.leading = applied
	begin(r.machine)
	return true
}

// Follow ends what Lead began.
func (r *Replica) Follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading = nil
}

// JumpCounters has the state's counters jump, as those of a state that is put back do:
// other nodes may have given out more. Errors: fsm.Machine.JumpCounters'.
func (r *Replica) JumpCounters() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.JumpCounters(r.cfg.Clock.Wall() / 1e6)
}

// AppliedIndex returns the log index that the state reflects.
func (r *Replica) AppliedIndex() uint64 { return r.applied.Load() }

// Level returns the cluster's feature level, as the state has it.
func (r *Replica) Level() uint32 { return r.level.Load() }

// Claims returns how many claims live.
func (r *Replica) Claims() int { return int(r.claims.Load()) }

// SnapshotIndex returns the index of the newest snapshot that was taken here, 0 if none
// was since the start.
func (r *Replica) SnapshotIndex() uint64 { return r.snapshotIndex.Load() }

// SinceSnapshot returns how much of the log was applied since the newest snapshot.
func (r *Replica) SinceSnapshot() (bytes, commands int64) {
	return r.sinceBytes.Load(), r.sinceCommands.Load()
}

// Absent reports whether this node has no state, as it restores a snapshot beside which
// there was no room for the one that it had.
func (r *Replica) Absent() bool { return r.absent.Load() }

// Replacing reports whether a snapshot is being restored: who still reads the state that
// it replaces, and so keeps it in memory, is to be quick.
func (r *Replica) Replacing() bool { return r.replacing.Load() }

// WaitingEnds returns how many wait for the end of a task.
func (r *Replica) WaitingEnds() int64 { return r.watches.endCount.Load() }

// Close ends all who wait for what entries do, and those to come.
func (r *Replica) Close() { r.watches.end() }

// Held is what the state takes by its own estimate, in bytes.
type Held struct {
	All               int64
	Ended, Remembered int64 // parts of All: of ended tasks; of what is remembered of removed tasks and of claim requests
}

// HeldBy returns what m takes.
func HeldBy(m *fsm.Machine) Held { return Held{m.Bytes(), m.EndedBytes(), m.RememberedBytes()} }

// Lasting is what neither an eviction nor forgetting can make less.
func (h Held) Lasting() int64 { return h.All - h.Ended - h.Remembered }

// Held returns what the state takes. Its numbers may be of neighbouring entries.
func (r *Replica) Held() Held { return Held{r.bytes.Load(), r.ended.Load(), r.remembered.Load()} }

// Apply applies one committed entry and returns *fsm.Applied, without results if
// nobody waits for them.
func (r *Replica) Apply(l *raft.Log) any {
	if r.replayed(l.Index) {
		return &fsm.Applied{}
	}
	if err := r.awaitStored(l.Index); err != nil {
		return err
	}
	return r.ApplyEntry(l.Index, l.Term, l.Data)
}

// awaitStored waits until this node's disk has the log up to index: what it does not
// have is not committed, whatever Raft takes it for. After an error, which ends the
// node, nothing is ever applied or captured again.
func (r *Replica) awaitStored(index uint64) error {
	if r.unstored == nil && r.stored != nil {
		r.unstored = r.stored(index)
	}
	return r.unstored
}

// replayed reports whether the entry is in the state already.
func (r *Replica) replayed(index uint64) bool {
	if r.replayTo == 0 {
		return false
	}
	known := index <= r.replayTo
	if index >= r.replayTo {
		r.replayTo = 0
	}
	return known
}

// ApplyEntry applies the entry at index, of that term. What it returns has no results if
// nobody waits for them; else they are good until each was released.
func (r *Replica) ApplyEntry(index, term uint64, data []byte) *fsm.Applied {
	// An entry of this node's is awaited since before Raft was given it.
	replay := r.cfg.Awaited != nil && !r.cfg.Awaited()
	r.mu.Lock()
	chain := chainLink(r.machine.Chain(), index, term, data)
	applied, err := r.applyLocked(index, data, replay)
	if err != nil {
		r.fatal(fmt.Errorf("apply log entry %d: %w", index, err))
	}
	r.machine.SetChain(chain)
	r.chain.add(ChainPoint{Index: index, Chain: chain})
	r.appliedAt = r.cfg.Clock.Mono()
	if r.leading != nil {
		r.leading(r.machine, &applied)
	}
	if applied.Restored {
		r.watches.restored()
	}
	r.watches.applied(&applied)
	var capture *fsm.Snapshot
	if applied.Checkpoint {
		capture = r.machine.Snapshot()
	}
	leading := r.leading != nil
	r.noteLocked(index)
	r.mu.Unlock()

	r.restores.applied()
	r.sinceBytes.Add(int64(len(data)))
	r.sinceCommands.Add(int64(len(applied.Results)))
	r.sinceEntries.Add(1)
	r.cfg.Stats.Applied(&applied, leading)
	if replay {
		applied.Results = nil
	}
	if capture != nil {
		select {
		case r.Captured <- capture:
		default:
			capture.Release()
		}
	}
	return &applied
}

// applyLocked applies an entry. If it is a replay its results are good until the
// next one, else until they have been released.
func (r *Replica) applyLocked(index uint64, data []byte, replay bool) (fsm.Applied, error) {
	if replay {
		return r.machine.Replay(index, data)
	}
	answers := r.answers.take()
	applied, err := r.machine.ApplyInto(answers.memory, index, data)
	answers.share(&applied)
	return applied, err
}

// noteLocked publishes what changed, under the lock: who reads the index and
// then takes the lock finds at least that state.
func (r *Replica) noteLocked(index uint64) {
	r.bytes.Store(r.machine.Bytes())
	r.ended.Store(r.machine.EndedBytes())
	r.remembered.Store(r.machine.RememberedBytes())
	r.claims.Store(int64(r.machine.ClaimCount()))
	r.level.Store(r.machine.Level())
	r.applied.Store(index)
	r.wake(index)
}

// StoreConfiguration moves the applied index over a configuration entry, which
// does not concern the state. It makes Replica a raft.ConfigurationStore.
func (r *Replica) StoreConfiguration(index uint64, _ raft.Configuration) {
	if r.replayed(index) || r.unstored != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied.Store(index)
	r.wake(index)
}

// errReplaying is returned for a snapshot while a Raft that was started again has
// not come to the state's own entry yet.
var errReplaying = errors.New("raft was started again and has not caught up with the state")

// ErrRestoreUnderWay is returned for a snapshot while a restore goes through the log:
// the snapshot would not have it, and the log that it is of would go.
var ErrRestoreUnderWay = errors.New("a backup is being restored")

// Snapshot captures the state. It runs on Raft's apply goroutine.
func (r *Replica) Snapshot() (raft.FSMSnapshot, error) {
	if r.replayTo != 0 {
		// Raft would take the state for that of an earlier entry.
		return nil, errReplaying
	}
	if r.unstored != nil {
		return nil, r.unstored
	}
	start := time.Now()
	r.mu.Lock()
	if _, under := r.machine.Restoring(); under {
		r.mu.Unlock()
		return nil, ErrRestoreUnderWay
	}
	s := r.machine.Snapshot()
	r.mu.Unlock()
	r.cfg.Stats.Captured(time.Since(start))
	taken := &snapshot{
		state: s, of: r, released: make(chan struct{}),
		bytes: r.sinceBytes.Load(), commands: r.sinceCommands.Load(), entries: r.sinceEntries.Load(),
	}
	taken.ctx, taken.cancel = context.WithCancelCause(r.lifetime)
	r.taken.Store(taken)
	return taken, nil
}

// Read calls fn with the state, under the read lock, and returns its index. While
// the state is absent fn sees no tasks, but the nodes, the clocks and the level: it
// is for who needs these, or would be right to do nothing.
func (r *Replica) Read(fn func(m *fsm.Machine)) uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	fn(r.machine)
	return r.machine.Index()
}

// Restoring reports whether a restore goes through the log.
func (r *Replica) Restoring() (under bool) {
	r.Read(func(m *fsm.Machine) { _, under = m.Restoring() })
	return under
}

// ReadState is Read for who tells others what is there. Errors: ErrRestoring, and
// fn is not called.
func (r *Replica) ReadState(fn func(m *fsm.Machine)) (uint64, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.absent.Load() {
		return 0, ErrRestoring
	}
	fn(r.machine)
	return r.machine.Index(), nil
}

// Capture captures the state for who reads it beside Apply. Errors: ErrRestoring.
func (r *Replica) Capture() (*fsm.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.absent.Load() {
		return nil, ErrRestoring
	}
	return r.machine.Snapshot(), nil
}

// Estimate returns what the clocks would be now, judging by the last entry:
// what a node that does not lead knows of the time. Call it under the lock.
func (r *Replica) Estimate(m *fsm.Machine) fsm.Stamp {
	since := (r.cfg.Clock.Mono() - r.appliedAt).Milliseconds()
	s := m.Stamp()
	return fsm.Stamp{U: s.U + since, T: s.T + since}
}

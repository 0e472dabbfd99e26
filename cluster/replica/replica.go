// Package replica holds one node's copy of the state, which Raft calls its FSM.
//
//	replica.go    applies committed entries to the state; readers access it
//	chain.go      the running checksum of what was applied
//	snapshot.go   captures the state and writes it at a bounded rate
//	restore.go    replaces the state by a snapshot
//	watch.go      waits for the end of a task, or for events
//	indexwait.go  waits for an index of the log
//	space.go      what is left of memory (memory.go) and disk (disk.go), and what is refused for that
//
// It decides nothing about tasks (package fsm does), and knows no other node and no leadership.
// Package cluster creates it, gives it to Raft, and registers with [Replica.Lead] for each entry.
// Invariants:
//
//   - There is one lock around the state. Apply holds it for an entry, readers between entries.
//   - Nothing is applied or captured that is not on this node's own disk.
//   - An entry that cannot be applied ends the node; nothing is applied after it.
//   - A wait checks the state under the lock under which entries are reported, so that no entry
//     comes between the check and the wait.
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

// Stats counts what a Replica does. Its methods are called under the state's lock or on
// Raft's goroutines, so they must be fast.
type Stats interface {
	// Applied is called for every entry, with whether this node leads.
	Applied(a *fsm.Applied, leading bool)
	// Captured is called with the time for which applying stopped for a snapshot.
	Captured(took time.Duration)
	// Persisted is called for each snapshot that was written.
	Persisted(took time.Duration, bytes int64)
	// Restored is called for each snapshot that was restored.
	Restored()
}

// Config configures a Replica. All fields except Awaited must be set.
type Config struct {
	Clock lease.ClockSource
	// Fatal ends the node. If it returns, as in tests, nothing is ever applied after it.
	Fatal  func(error)
	Stats  Stats
	Logger hclog.Logger
	// BeforeCompact is called with a snapshot that has been written, before Raft compacts
	// the log: its index, and the bytes and entries applied since the previous one.
	BeforeCompact func(index uint64, bytes, entries int64)
	// Awaited, if not nil, reports whether a caller here waits for the result of an entry.
	// Otherwise the results are dropped.
	Awaited func() bool
}

// Replica is one node's copy of the state: the raft.FSM to which Raft hands committed
// entries. It holds the one lock around the state: Apply writes under it and readers read
// under it, so readers only see states between entries.
type Replica struct {
	cfg Config
	// Captured receives the state at each checkpoint, to be hashed while applying goes on.
	// If it is not received at once, the checkpoint is skipped.
	Captured chan *fsm.Snapshot
	// PersistRate bounds the bytes per second at which a snapshot is written. It may be set
	// while none is being written.
	PersistRate int64
	// RestoreRoom bounds the size of the old and the new state together while a snapshot is
	// restored; beyond it the old one is dropped first. It may be set while none is being
	// restored.
	RestoreRoom int64

	// stored, if not nil, waits until this node's disk has the log up to an index. It is
	// set between two runs of Raft. unstored is its first error; it belongs to Raft's apply
	// goroutine.
	stored   func(index uint64) error
	unstored error
	answers  answerPool
	// lifetime is the lifetime of the current Raft; its end aborts a snapshot that is being
	// written. It is set between two runs.
	lifetime context.Context

	mu sync.RWMutex
	// machine is replaced by Restore. It is guarded by mu. While absent is true it has only
	// the parts of the state that do not grow with the tasks.
	machine   *fsm.Machine
	absent    atomic.Bool   // set under mu
	appliedAt time.Duration // guarded by mu; monotonic time of the last entry
	chain     chainPoints   // guarded by mu; the newest belongs to machine
	// leading is called for each entry; nil while not leading. It is guarded by mu, and
	// called with it held.
	leading func(*fsm.Machine, *fsm.Applied)

	// watches are informed of each entry, with mu held.
	watches *watches

	// applied is the index that the state reflects: of the last entry, or of a
	// configuration entry after it. Raft's own applied index runs ahead of it. It is set
	// under mu.
	applied atomic.Uint64
	// What Held returns, and the other values of the state that are read without its lock.
	bytes, ended, remembered atomic.Int64
	claims                   atomic.Int64
	level                    atomic.Uint32
	// What was applied of the log since the newest snapshot.
	sinceBytes, sinceCommands, sinceEntries atomic.Int64
	// snapshotIndex is the index of the newest snapshot taken here.
	snapshotIndex atomic.Uint64
	restores      restoreWatch
	// replayTo is set while a restarted Raft hands out entries that are in the state
	// already: the last of them. It belongs to Raft's apply goroutine.
	replayTo uint64
	// taken is the snapshot captured last, nil once its state was replaced.
	taken atomic.Pointer[snapshot]
	// replacing is true while a snapshot is restored.
	replacing atomic.Bool
	// started is true once Raft runs; startErr says why a snapshot could not be restored
	// before.
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

// fatal ends the node. It never returns, because returning from Apply would advance Raft's
// index past an entry that was not applied.
func (r *Replica) fatal(err error) {
	r.cfg.Fatal(err)
	select {}
}

// BeginRun must be called before each start of Raft. lifetime ends with it; stored, if not
// nil, waits until this node's disk has the log up to an index. again is true for a
// restarted Raft, which hands out entries that are in the state already.
func (r *Replica) BeginRun(lifetime context.Context, stored func(index uint64) error, again bool) {
	r.lifetime, r.stored = lifetime, stored
	if again {
		r.replayTo = r.applied.Load()
	}
}

// Started is called once Raft runs. It returns the error if the newest snapshot could not
// be restored.
func (r *Replica) Started() error {
	r.started.Store(true)
	if refused := r.startErr.Load(); refused != nil {
		return *refused
	}
	return nil
}

// Lead makes applied be called for each entry from now on, under the state's lock, and
// calls begin with the state at this moment, unless ctx has ended.
func (r *Replica) Lead(ctx context.Context, applied func(*fsm.Machine, *fsm.Applied), begin func(*fsm.Machine)) (leads bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil { // Follow may have been called already
		return false
	}
	r.leading = applied
	begin(r.machine)
	return true
}

// Follow undoes Lead.
func (r *Replica) Follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading = nil
}

// JumpCounters makes the state's counters jump as for a restored state, because other nodes
// may have assigned more. Errors: those of fsm.Machine.JumpCounters.
func (r *Replica) JumpCounters() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.JumpCounters(r.cfg.Clock.Wall() / 1e6)
}

// AppliedIndex returns the log index that the state reflects.
func (r *Replica) AppliedIndex() uint64 { return r.applied.Load() }

// Level returns the cluster's feature level in the state.
func (r *Replica) Level() uint32 { return r.level.Load() }

// Claims returns the number of live claims.
func (r *Replica) Claims() int { return int(r.claims.Load()) }

// SnapshotIndex returns the index of the newest snapshot taken here since the start, or 0.
func (r *Replica) SnapshotIndex() uint64 { return r.snapshotIndex.Load() }

// SinceSnapshot returns how much of the log was applied since the newest snapshot.
func (r *Replica) SinceSnapshot() (bytes, commands int64) {
	return r.sinceBytes.Load(), r.sinceCommands.Load()
}

// Absent reports whether this node has no state, because it restores a snapshot and had no
// room to keep the old state.
func (r *Replica) Absent() bool { return r.absent.Load() }

// Replacing reports whether a snapshot is being restored. Readers of the old state, which
// keep it in memory, should hurry.
func (r *Replica) Replacing() bool { return r.replacing.Load() }

// WaitingEnds returns how many requests wait for the end of a task.
func (r *Replica) WaitingEnds() int64 { return r.watches.endCount.Load() }

// Close ends all current and future waits.
func (r *Replica) Close() { r.watches.end() }

// Held is the size of the state by its own estimate, in bytes.
type Held struct {
	All               int64
	Ended, Remembered int64 // parts of All: ended tasks; remembered removed tasks and claim requests
}

// HeldBy returns the size of m.
func HeldBy(m *fsm.Machine) Held { return Held{m.Bytes(), m.EndedBytes(), m.RememberedBytes()} }

// Lasting is the part that neither evicting nor forgetting can reduce.
func (h Held) Lasting() int64 { return h.All - h.Ended - h.Remembered }

// Held returns the size of the state. Its numbers may come from neighbouring entries.
func (r *Replica) Held() Held { return Held{r.bytes.Load(), r.ended.Load(), r.remembered.Load()} }

// Apply applies one committed entry and returns *fsm.Applied, without results if no caller
// waits for them.
func (r *Replica) Apply(l *raft.Log) any {
	if r.replayed(l.Index) {
		return &fsm.Applied{}
	}
	if err := r.awaitStored(l.Index); err != nil {
		return err
	}
	return r.ApplyEntry(l.Index, l.Term, l.Data)
}

// awaitStored waits until this node's disk has the log up to index, because anything else
// is not committed, whatever Raft assumes. After an error, which ends the node, nothing is
// ever applied or captured again.
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

// ApplyEntry applies the entry at index, of that term. It returns no results if no caller
// waits for them; otherwise they are valid until released.
func (r *Replica) ApplyEntry(index, term uint64, data []byte) *fsm.Applied {
	// An entry of this node is awaited from before Raft gets it.
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

// applyLocked applies an entry. The results of a replay are valid until the next one,
// others until they have been released.
func (r *Replica) applyLocked(index uint64, data []byte, replay bool) (fsm.Applied, error) {
	if replay {
		return r.machine.Replay(index, data)
	}
	answers := r.answers.take()
	applied, err := r.machine.ApplyInto(answers.memory, index, data)
	answers.share(&applied)
	return applied, err
}

// noteLocked publishes what changed, under the lock, so that a reader that reads the index
// and then takes the lock finds at least that state.
func (r *Replica) noteLocked(index uint64) {
	r.bytes.Store(r.machine.Bytes())
	r.ended.Store(r.machine.EndedBytes())
	r.remembered.Store(r.machine.RememberedBytes())
	r.claims.Store(int64(r.machine.ClaimCount()))
	r.level.Store(r.machine.Level())
	r.applied.Store(index)
	r.wake(index)
}

// StoreConfiguration moves the applied index over a configuration entry, which does not
// affect the state. It makes Replica a raft.ConfigurationStore.
func (r *Replica) StoreConfiguration(index uint64, _ raft.Configuration) {
	if r.replayed(index) || r.unstored != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied.Store(index)
	r.wake(index)
}

// errReplaying is returned for a snapshot while a restarted Raft has not reached the
// state's own entry yet.
var errReplaying = errors.New("raft was started again and has not caught up with the state")

// ErrRestoreUnderWay is returned for a snapshot while a restore goes through the log,
// because the snapshot would not contain it and its log would be deleted.
var ErrRestoreUnderWay = errors.New("a backup is being restored")

// Snapshot captures the state. It runs on Raft's apply goroutine.
func (r *Replica) Snapshot() (raft.FSMSnapshot, error) {
	if r.replayTo != 0 {
		// Raft would take the snapshot for one of an earlier entry.
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

// Read calls fn with the state, under the read lock, and returns its index. While the state
// is absent fn sees no tasks, but the nodes, the clocks and the level; so it is for callers
// that need only these, or may do nothing without tasks.
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

// ReadState is Read for callers that must not take an absent state for an empty one. Errors:
// ErrRestoring, for an absent state; then fn is not called.
func (r *Replica) ReadState(fn func(m *fsm.Machine)) (uint64, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.absent.Load() {
		return 0, ErrRestoring
	}
	fn(r.machine)
	return r.machine.Index(), nil
}

// Capture captures the state for reading it concurrently with Apply. Errors: ErrRestoring.
func (r *Replica) Capture() (*fsm.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.absent.Load() {
		return nil, ErrRestoring
	}
	return r.machine.Snapshot(), nil
}

// Estimate returns what the clocks would show now according to the last entry, for a node
// that does not lead. Call it under the lock.
func (r *Replica) Estimate(m *fsm.Machine) fsm.Stamp {
	since := (r.cfg.Clock.Mono() - r.appliedAt).Milliseconds()
	s := m.Stamp()
	return fsm.Stamp{U: s.U + since, T: s.T + since}
}

// answerPool has reusable memory for results that callers wait for.
type answerPool struct{ pool sync.Pool }

// entryAnswers is the memory for the results of one entry. It returns to its pool when
// every result has been released; if one never is, the garbage collector takes it.
type entryAnswers struct {
	memory  fsm.Answers
	kept    atomic.Int64 // results that have not been released
	release func()       // releases one result
}

// take returns unused memory.
func (p *answerPool) take() *entryAnswers {
	if a, ok := p.pool.Get().(*entryAnswers); ok {
		return a
	}
	a := &entryAnswers{memory: fsm.NewAnswers()}
	a.release = func() {
		if a.kept.Add(-1) == 0 {
			p.pool.Put(a)
		}
	}
	return a
}

// share keeps the memory until each result of the entry has been released.
func (a *entryAnswers) share(applied *fsm.Applied) {
	a.kept.Store(int64(len(applied.Results)))
	applied.Release = a.release
}

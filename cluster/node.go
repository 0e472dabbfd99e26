package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/space"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/memory"
	"github.com/claimq/claimq/nodes"
)

// handoverTimeout bounds how long a stopping leader tries to transfer its leadership.
const handoverTimeout = 5 * time.Second

// errNodeClosed is the cause with which a node's context ends.
var errNodeClosed = errors.New("the node is closed")

// Node is one node of a cluster: the state machine, Raft below it, and a leader's duties. Its
// methods are safe for concurrent use.
type Node struct {
	cfg    Config
	logger hclog.Logger
	uuid   string
	record fsm.NodeRecord // this node as recorded by the cluster
	clock  ClockSource
	stats  *nodeStats

	fsm         *replica.Replica
	space       *space.Space
	batcher     *batch.Batcher
	snapshots   snapshots
	parts       Parts
	raft        *raftHandle   // nil without Raft
	logs        raft.LogStore // nil without Raft
	leaderNotes chan bool     // Raft reports leadership here
	leader      atomic.Pointer[leadership]
	notes       hashNotes
	calls       callTable
	changing    chan struct{} // capacity 1; holds an element while members change
	transfers   chan transferred
	nudged      chan struct{} // capacity 1: check whether this node is a member
	removed     atomic.Bool   // it is no longer a member, and Raft is shut down
	// interludes run on the goroutine that begins and ends leaderships.
	interludes chan *interlude
	doubted    chan *leadership // a scope that another should follow
	restoring  chan struct{}    // capacity 1; holds an element while a backup is restored
	askedFor   takings          // requested snapshots
	hints      hints
	operators  atomic.Pointer[func(key string) (name string, ok bool)] // looks up operators by API key; nil: none

	// Only for a node opened by Open; nil in memory.
	dir    *storage.Dir
	stores *storage.Stores
	peers  *peer.Port
	gate   *confirm.VoteGate
	// introducers are the members as reported by the node that admitted this one; see
	// acquaintances. Set before Raft runs.
	introducers []raft.Server
	belonged    atomic.Bool // this node has been in its own configuration since it started
	vouches     vouches
	// call asks the node at a peer address; nil if this node cannot ask others.
	call func(ctx context.Context, addr, name string, body []byte) ([]byte, error)

	ctx     context.Context // ends when the node closes, with errNodeClosed
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup // all goroutines of the node
	closing atomic.Bool
	// diskLeftAt is when the leadership was last handed over because of a low disk, or this
	// was tried, in nanoseconds of the monotonic clock; 0 = never.
	diskLeftAt atomic.Int64
	// transferSince is when Raft began to report a leadership transfer, in nanoseconds of the
	// monotonic clock; 0 = it does not.
	transferSince atomic.Int64

	closeOnce sync.Once
	closeErr  error
}

// Parts are the components of a node that OpenParts runs instead of opening its own. Tests
// use it for clusters in memory.
type Parts struct {
	UUID      string // identity of the node
	Logs      raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Transport raft.Transport // with pre-vote; the node closes it
	// NewTransport creates another transport at the same address after the previous one was
	// closed. If nil, Raft is never restarted.
	NewTransport func() (raft.Transport, error)
	// Servers bootstraps a node without state.
	Servers []raft.Server
	// Clock provides the node's time; nil = the machine's clocks.
	Clock ClockSource
	// Call asks the node at a peer address, leading to that node's Answer. If nil, this node
	// cannot ask others, and a new leader does not compare what it has applied with them.
	Call func(ctx context.Context, addr, name string, body []byte) ([]byte, error)
}

// OpenParts starts a node over parts. The caller keeps ownership of the stores and must close
// the node. cfg needs no DataDir or PeerAddr.
func OpenParts(cfg Config, parts Parts) (*Node, error) {
	cfg = cfg.withDefaults()
	n, err := newNode(cfg, parts)
	if err != nil {
		return nil, err
	}
	if err := n.startRaft(parts); err != nil {
		n.cancel(errNodeClosed)
		return nil, err
	}
	n.run()
	return n, nil
}

// newNode creates the node without starting anything.
func newNode(cfg Config, parts Parts) (*Node, error) {
	n := &Node{
		cfg:    cfg,
		logger: cfg.Logger,
		uuid:   parts.UUID,
		clock:  parts.Clock,
		logs:   parts.Logs,
		parts:  parts,
		call:   parts.Call,

		leaderNotes: make(chan bool, leaderNotesMax),
		changing:    make(chan struct{}, 1),
		transfers:   make(chan transferred),
		nudged:      make(chan struct{}, 1),

		interludes: make(chan *interlude),
		doubted:    make(chan *leadership),
		restoring:  make(chan struct{}, 1),
	}
	if n.clock == nil {
		n.clock = clocks.System()
	}
	n.record = fsm.NodeRecord{
		UUID: n.uuid, NodeID: cfg.NodeID, HTTPAddr: cfg.HTTPAdvertise, Version: cfg.Version, Level: fsm.FeatureLevel,
	}
	if parts.Transport != nil {
		n.record.PeerAddr = string(parts.Transport.LocalAddr())
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	stats, err := newNodeStats(n, cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	n.stats = stats
	n.fsm = replica.New(replica.Config{
		Clock: n.clock, Fatal: cfg.Fatal, Stats: &stats.fsm, Logger: n.logger,
		BeforeCompact: func(index uint64, bytes, entries int64) { n.snapshots.keepTrailing(index, bytes, entries) },
		// The results of a restore under way here are also awaited.
		Awaited: func() bool { return n.batcher.Awaits() || len(n.restoring) > 0 },
	})
	n.fsm.RestoreRoom = replica.RestoreRoom(cfg.MemoryLimit, memory.Total())
	n.space = space.New(space.Config{
		MemoryLimit: cfg.MemoryLimit, DiskFreeMin: cfg.DiskFreeMin, Held: n.fsm.Held, Knows: n.checkLevel, VotersLow: n.votersLow, Logger: n.logger,
	})
	n.snapshots = snapshots{
		fsm: n.fsm, space: n.space, logBytes: cfg.SnapshotLogBytes, logCommands: cfg.SnapshotLogCommands,
		trailing: trailingLogs, failures: stats.snapshotFailures, logger: n.logger,
	}
	n.batcher = n.newBatcher(n.applyEntry)
	n.registerCalls()
	return n, nil
}

// newBatcher returns the node's batcher, which hands entries to apply.
func (n *Node) newBatcher(apply func(entry []byte) batch.Future) *batch.Batcher {
	return batch.New(batch.Config{
		Apply:    apply,
		Refuse:   n.notServing,
		Observe:  n.observeEntry,
		Packed:   n.stats.batch.entry,
		Waiters:  n.waiters,
		Reach:    n.reach,
		QueueMax: n.cfg.InFlightMax,
	})
}

// waiters returns the waiting claims of this node's leadership, or nil.
func (n *Node) waiters() *batch.Waiters {
	if l := n.leader.Load(); l != nil {
		return l.waiters
	}
	return nil
}

// startRaft starts Raft over parts.
func (n *Node) startRaft(parts Parts) error {
	n.parts = parts
	if len(parts.Servers) > 0 {
		has, err := raft.HasExistingState(parts.Logs, parts.Stable, parts.Snapshots)
		if err != nil {
			return fmt.Errorf("look for existing state: %w", err)
		}
		if !has {
			config := raft.Configuration{Servers: parts.Servers}
			if err := raft.BootstrapCluster(n.raftConfig(), parts.Logs, parts.Stable, parts.Snapshots, parts.Transport, config); err != nil {
				return fmt.Errorf("bootstrap the cluster: %w", err)
			}
		}
	}
	run, err := n.raftMaker().start(parts, parts.Transport, nil)
	if err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	n.raft = newRaftHandle(run)
	n.snapshots.raft = n.raft
	return nil
}

// raftMaker returns the starter of Raft.
func (n *Node) raftMaker() *raftMaker {
	return &raftMaker{ctx: n.ctx, fsm: n.fsm, conf: n.raftConfig, leads: n.leadsWith}
}

// raftConfig returns Raft's configuration.
func (n *Node) raftConfig() *raft.Config {
	c := raftConfig(n.uuid, n.logger)
	c.NotifyCh = n.leaderNotes
	return c
}

// run starts the node's goroutines.
func (n *Node) run() {
	n.start(func() { n.batcher.Run(n.ctx.Done()) })
	n.start(func() { n.monitorLeadership(n.ctx) })
	n.start(func() { n.noteHashes(n.ctx, n.fsm.Replacing) })
	if n.raft != nil {
		n.start(func() { n.snapshots.monitor(n.ctx) })
		n.start(func() { n.monitorTransfers(n.ctx) })
		n.start(func() { n.monitorStanding(n.ctx) })
	} else {
		n.leaderNotes <- true
	}
	if n.cfg.DiskSpace == nil && n.dir != nil {
		n.cfg.DiskSpace = func() (free, size uint64, err error) { return storage.FreeSpace(n.dir.Path()) }
	}
	if n.cfg.DiskInodes == nil && n.dir != nil {
		n.cfg.DiskInodes = func() (free, size uint64, err error) {
			storage.FillReserve(n.dir.Path()) // first, because free inodes are those that others may take
			return storage.FreeInodes(n.dir.Path())
		}
	}
	if n.cfg.DiskSpace != nil && n.cfg.DiskInodes != nil {
		n.start(func() { n.space.Watch(n.ctx, n.cfg.DiskSpace, n.cfg.DiskInodes) })
	}
}

func (n *Node) start(fn func()) {
	n.wg.Add(1)
	go func() {
		defer n.wg.Done()
		fn()
	}()
}

// applyEntry hands an entry to Raft or, without Raft, to the state machine.
func (n *Node) applyEntry(data []byte) batch.Future {
	if n.raft == nil {
		return appliedNow{n.fsm.ApplyEntry(n.fsm.AppliedIndex()+1, n.currentTerm(), data)}
	}
	start := n.clock.Mono()
	return timedEntry{n.raft.Apply(data, batch.EnqueueTimeout), n, start}
}

// timedEntry measures how long an entry took.
type timedEntry struct {
	raft.ApplyFuture
	node  *Node
	start time.Duration
}

// Error waits for the entry.
func (e timedEntry) Error() error {
	err := e.ApplyFuture.Error()
	if err == nil {
		e.node.stats.commit.Observe((e.node.clock.Mono() - e.start).Seconds())
	}
	return err
}

// appliedNow is the future of an entry that is applied already.
type appliedNow struct{ applied *fsm.Applied }

func (appliedNow) Error() error    { return nil }
func (a appliedNow) Response() any { return a.applied }

// NodeID returns the operator's name for this node.
func (n *Node) NodeID() string { return n.cfg.NodeID }

// IsLeader reports whether this node leads and serves.
func (n *Node) IsLeader() bool {
	l := n.leader.Load()
	return l != nil && l.serves() && !n.closing.Load()
}

// leaderID returns the UUID of the leader that this node knows, or "".
func (n *Node) leaderID() string {
	switch {
	case n.raft == nil:
		return n.uuid
	case n.removed.Load():
		return ""
	}
	_, id := n.raft.LeaderWithID()
	return string(id)
}

// LeaderHTTPAddr returns the URL that the leader advertises, "" if the leader or its address
// is unknown.
func (n *Node) LeaderHTTPAddr() string {
	id := n.leaderID()
	if id == "" {
		return ""
	}
	var record fsm.NodeRecord
	n.fsm.Read(func(m *fsm.Machine) { record, _ = m.Node(id) })
	return record.HTTPAddr
}

// SetForwardHandler sets the handler for API requests that other nodes forward.
func (n *Node) SetForwardHandler(h fasthttp.RequestHandler) {
	if n.peers != nil {
		n.peers.SetForwardHandler(h)
	}
}

// Forward sends req to the leader over the peer port and fills resp with its answer. room, if
// not nil, is called with the size of the answer's body before it is read; if it returns an
// error, the answer is dropped and the error is wrapped together with
// nodes.ErrOutcomeUnknown. Errors: nodes.ErrNoLeader, nodes.ErrShuttingDown (nothing was
// sent); nodes.ErrOutcomeUnknown (it may have been sent).
func (n *Node) Forward(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response, room func(n int) error) error {
	if n.closing.Load() {
		return nodes.ErrShuttingDown
	}
	if n.raft == nil || n.peers == nil {
		return nodes.ErrNoLeader
	}
	addr, id := n.raft.LeaderWithID()
	if addr == "" || string(id) == n.uuid {
		return nodes.ErrNoLeader
	}
	return n.peers.Forward(ctx, string(addr), req, resp, room)
}

// ForwardWaiting is Forward for a request that the leader may hold for a long time. Many
// share one connection. When ctx ends or this node closes, the leader is told that the caller
// has left and answers at once; that answer is returned like any other. Errors: those of
// Forward.
func (n *Node) ForwardWaiting(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error {
	if n.closing.Load() {
		return nodes.ErrShuttingDown
	}
	if n.raft == nil || n.peers == nil {
		return nodes.ErrNoLeader
	}
	addr, id := n.raft.LeaderWithID()
	if addr == "" || string(id) == n.uuid {
		return nodes.ErrNoLeader
	}
	ctx, cancel := withScope(ctx, n.ctx)
	defer cancel()
	return n.peers.ForwardWaiting(ctx, string(addr), string(id), req, resp)
}

// currentTerm returns Raft's term.
func (n *Node) currentTerm() uint64 {
	if n.raft == nil {
		return 1
	}
	return n.raft.CurrentTerm()
}

// servers returns the members by Raft's latest configuration.
func (n *Node) servers() []raft.Server {
	if n.raft == nil {
		return nil
	}
	f := n.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// isMember reports whether the node with that identity and name is a member, as far as this
// node knows; it may lag behind. A member without a record is identified by its identity
// alone.
func (n *Node) isMember(uuid, nodeID string) bool {
	if !n.isServer(uuid) {
		return false
	}
	var record fsm.NodeRecord
	var ok bool
	n.fsm.Read(func(m *fsm.Machine) { record, ok = m.Node(uuid) })
	return !ok || record.NodeID == nodeID
}

// voters returns the other voters, whether this node is one, and whether it leads in term.
func (n *Node) voters(term uint64) (others []raft.ServerID, self, leads bool) {
	for _, s := range n.servers() {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == n.uuid:
			self = true
		default:
			others = append(others, s.ID)
		}
	}
	return others, self, n.raft.State() == raft.Leader && n.raft.CurrentTerm() == term
}

// leadsWith reports whether this node leads in term and id is a member.
func (n *Node) leadsWith(term uint64, id raft.ServerID) bool {
	l := n.leader.Load()
	return l != nil && l.term == term && slices.ContainsFunc(n.servers(), func(s raft.Server) bool { return s.ID == id })
}

// sendHeartbeats makes Raft, if it leads, send a heartbeat to each peer now. Its result is
// ignored: see confirm.Confirmer.
func (n *Node) sendHeartbeats() { n.raft.VerifyLeader() }

// Close stops the node in order: it is no longer ready, accepts no more work, transfers its
// leadership, finishes what is in flight, and then stops Raft, the stores and the port. ctx
// bounds the transfer. It may be called twice.
func (n *Node) Close(ctx context.Context) error {
	n.closeOnce.Do(func() { n.closeErr = n.close(ctx) })
	return n.closeErr
}

func (n *Node) close(ctx context.Context) error {
	n.closing.Store(true)
	n.fsm.Close()
	if l := n.leader.Load(); l != nil {
		l.waiters.End(nodes.ErrShuttingDown)
	}
	if n.raft != nil && n.leader.Load() != nil {
		n.handOver(ctx)
	}
	n.cancel(errNodeClosed)
	n.wg.Wait()
	var errs []error
	if n.raft != nil {
		errs = append(errs, n.raft.run.Load().shutdown())
	}
	n.stats.unregister()
	return errors.Join(append(errs, n.closeOwn())...)
}

// HandOver transfers the leadership, if this node has it, to another voter, within the time
// that Close would take.
func (n *Node) HandOver(ctx context.Context) {
	if n.raft != nil && n.leader.Load() != nil {
		n.handOver(ctx)
	}
}

// handOver transfers the leadership to another voter, if there is one: of those heard from
// recently, to the one with the most of the log. Raft by itself might pick one that is down.
func (n *Node) handOver(ctx context.Context) {
	others, _, leads := n.voters(n.currentTerm())
	if len(others) == 0 || !leads {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handoverTimeout)
	defer cancel()
	addrs := make(map[raft.ServerID]raft.ServerAddress)
	for _, s := range n.servers() {
		addrs[s.ID] = s.Address
	}
	var err error
	for _, id := range n.raft.confirmer().ByContact(others, contactMax) {
		if ctx.Err() != nil {
			return
		}
		err = n.await(ctx, func() raft.Future { return n.raft.LeadershipTransferToServer(id, addrs[id]) })
		if err == nil {
			n.logger.Info("leadership handed over", "uuid", id)
			return
		}
	}
	n.logger.Warn("leadership not handed over", "error", err)
}

// await waits for one of Raft's futures, which can hang, until ctx ends.
func (n *Node) await(ctx context.Context, begin func() raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- begin().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeOwn closes what Open has opened.
func (n *Node) closeOwn() error {
	var errs []error
	if n.stores != nil {
		errs = append(errs, n.stores.Close())
	}
	if n.peers != nil {
		errs = append(errs, n.peers.Close())
	}
	if n.dir != nil {
		errs = append(errs, n.dir.Close())
	}
	return errors.Join(errs...)
}

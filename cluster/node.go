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

// handoverTimeout bounds how long a leader that stops tries to hand its leadership
// over.
const handoverTimeout = 5 * time.Second

// errNodeClosed is the cause with which a node's context ends.
var errNodeClosed = errors.New("the node is closed")

// Node is one node of a cluster: the state machine, Raft under it, and what a
// leader does. Its methods are safe for concurrent use.
type Node struct {
	cfg    Config
	logger hclog.Logger
	uuid   string
	record fsm.NodeRecord // what the cluster is told of this node
	clock  ClockSource
	stats  *nodeStats

	fsm         *replica.Replica
	space       *space.Space
	batcher     *batch.Batcher
	snapshots   snapshots
	parts       Parts
	raft        *raftHandle   // nil without Raft
	logs        raft.LogStore // nil without Raft
	leaderNotes chan bool     // Raft tells of leadership
	leader      atomic.Pointer[leadership]
	notes       hashNotes
	calls       callTable
	changing    chan struct{} // capacity 1; holds an element while members change
	transfers   chan transferred
	nudged      chan struct{} // capacity 1: ask whether this node is a member
	removed     atomic.Bool   // it is none any more, and Raft is shut down
	// interludes are done by the goroutine that begins and ends leaderships.
	interludes chan *interlude
	doubted    chan *leadership // a scope that is to be followed by another
	restoring  chan struct{}    // capacity 1; holds an element while a backup is restored
	askedFor   takings          // snapshots of operators
	hints      hints
	operators  atomic.Pointer[func(key string) (name string, ok bool)] // by API key; nil: none

	// Of a node that Open opened; nil in memory.
	dir    *storage.Dir
	stores *storage.Stores
	peers  *peer.Port
	gate   *confirm.VoteGate
	// introducers are the members by the word of who made this node one; see acquaintances.
	// Set before Raft runs.
	introducers []raft.Server
	belonged    atomic.Bool // its own configuration has had this node since it started
	vouches     vouches
	// call asks the node at a peer address; nil if nobody can be asked.
	call func(ctx context.Context, addr, name string, body []byte) ([]byte, error)

	ctx     context.Context // ends when the node closes, with errNodeClosed
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup // every goroutine of the node
	closing atomic.Bool
	// diskLeftAt is when the leadership was last handed over for a disk that is low, or tried
	// to be, in nanoseconds of the monotonic clock; 0 = never.
	diskLeftAt atomic.Int64
	// transferSince is when Raft began to answer that the leadership is being
	// transferred, in nanoseconds of the monotonic clock; 0 = it does not.
	transferSince atomic.Int64

	closeOnce sync.Once
	closeErr  error
}

// Parts is what a node is made of when it does not open its own: OpenParts
// runs a node over it. Tests run clusters in memory that way.
type Parts struct {
	UUID      string // identity of the node
	Logs      raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Transport raft.Transport // with pre-vote; the node closes it
	// NewTransport makes another transport at the same address, once the one
	// before has been closed; nil = Raft is never started again.
	NewTransport func() (raft.Transport, error)
	// Servers bootstraps a node without state.
	Servers []raft.Server
	// Clock is where the node takes its time from; nil = the machine's clocks.
	Clock ClockSource
	// Call asks the node at a peer address: it reaches that node's Answer. nil
	// means that nobody can be asked: then a new leader does not compare what it has
	// applied with the others either.
	Call func(ctx context.Context, addr, name string, body []byte) ([]byte, error)
}

// OpenParts starts a node over parts. The caller keeps what the parts hold and
// closes the node. cfg needs no DataDir and no PeerAddr.
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

// newNode makes the node without starting anything.
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
		// Of a restore that is under way here, the results are awaited, too.
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

// newBatcher returns the node's batcher, whose entries go to apply.
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

// waiters returns the claims that wait on this node's leadership, nil for none.
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

// raftMaker returns what starts Raft.
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
			storage.FillReserve(n.dir.Path()) // first: what is free is what others may take
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

// applyEntry hands an entry to Raft; without Raft, to the state machine.
func (n *Node) applyEntry(data []byte) batch.Future {
	if n.raft == nil {
		return appliedNow{n.fsm.ApplyEntry(n.fsm.AppliedIndex()+1, n.currentTerm(), data)}
	}
	start := n.clock.Mono()
	return timedEntry{n.raft.Apply(data, batch.EnqueueTimeout), n, start}
}

// timedEntry notes how long an entry took, when it is there.
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

// leaderID returns the UUID of the leader that this node knows of, "" if none.
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

// LeaderHTTPAddr returns the URL that the leader advertises, "" if no leader is
// known, or nothing is known of it yet.
func (n *Node) LeaderHTTPAddr() string {
	id := n.leaderID()
	if id == "" {
		return ""
	}
	var record fsm.NodeRecord
	n.fsm.Read(func(m *fsm.Machine) { record, _ = m.Node(id) })
	return record.HTTPAddr
}

// SetForwardHandler sets what answers the requests that other nodes pass on.
func (n *Node) SetForwardHandler(h fasthttp.RequestHandler) {
	if n.peers != nil {
		n.peers.SetForwardHandler(h)
	}
}

// Forward sends req to the leader over the peer port and fills resp with its
// answer. room, if not nil, is told how many bytes the answer's body has before it is
// read; an error of it drops the answer, and is in nodes.ErrOutcomeUnknown's chain.
// Errors: nodes.ErrNoLeader, nodes.ErrShuttingDown (nothing was sent);
// nodes.ErrOutcomeUnknown (it may have been).
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

// ForwardWaiting is Forward of a request that the leader may hold for long. Many
// share one connection. When ctx ends, or this node closes, the leader learns
// that the caller has gone, and answers at once; that answer is returned like any
// other. Errors: Forward's.
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

// isMember reports whether the node with that identity and name is a member, as
// far as this node knows: one that lags behind may not know yet. A member whose
// record is not written yet goes by its identity alone.
func (n *Node) isMember(uuid, nodeID string) bool {
	if !n.isServer(uuid) {
		return false
	}
	var record fsm.NodeRecord
	var ok bool
	n.fsm.Read(func(m *fsm.Machine) { record, ok = m.Node(uuid) })
	return !ok || record.NodeID == nodeID
}

// voters returns the other voters, whether this node is one, and whether it
// leads in term.
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

// sendHeartbeats makes Raft, if it leads, send one to each peer now. Nobody
// waits for what Raft makes of the answers: see confirmer.
func (n *Node) sendHeartbeats() { n.raft.VerifyLeader() }

// Close stops the node, in reverse of trust: it is no longer ready, takes no
// more work, hands its leadership over, finishes what is in flight, and only
// then stops Raft, the stores, and the port. ctx bounds the handover. It is
// safe to call twice.
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

// HandOver gives the leadership, if this node has it, to another voter, for the time
// that Close would take at most.
func (n *Node) HandOver(ctx context.Context) {
	if n.raft != nil && n.leader.Load() != nil {
		n.handOver(ctx)
	}
}

// handOver gives the leadership to another voter, if there is one: to the one
// that has the most of the log, of those heard from lately. Raft by itself may
// pick one that is down.
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

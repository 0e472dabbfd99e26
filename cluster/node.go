package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/memory"
	"github.com/claimq/claimq/nodes"
)

// Node is one node of a cluster: the state machine, Raft below it, and a leader's duties. Its
// methods are safe for concurrent use. It embeds reading and proposing; its other methods call
// the part that owns their concern.
type Node struct {
	*proposals
	statuses    *statuses
	membership  *membership
	known       *knownMembers
	standing    *standing
	joins       *joins
	changes     *memberChanges
	transfers   *transfers
	operators   *operators
	levels      *featureLevels
	agreement   *agreement
	checkpoints *checkpoints
	clocks      *leaseClocks
	snapshots   *snapshots
	backups     *backups
	calls       callTable

	// Only for a node opened by Open; nil in memory.
	stores *storage.Stores
	gate   *confirm.VoteGate

	closeOnce sync.Once
	closeErr  error
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
	c := &core{
		cfg: cfg, logger: cfg.Logger, uuid: parts.UUID, clock: parts.Clock, logs: parts.Logs, parts: parts, call: parts.Call, stats: newStats(),
		left: make(chan struct{}),
	}
	if c.clock == nil {
		c.clock = clocks.System()
	}
	c.record = fsm.NodeRecord{
		UUID: c.uuid, NodeID: cfg.NodeID, HTTPAddr: cfg.HTTPAdvertise, Version: cfg.Version, Level: fsm.FeatureLevel(),
	}
	if parts.Transport != nil {
		c.record.PeerAddr = string(parts.Transport.LocalAddr())
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	n := compose(c)
	if err := c.stats.register(cfg.Registerer, newNodeCollector(n.role)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	c.fsm = replica.New(replica.Config{
		Clock: c.clock, Fatal: cfg.Fatal, Stats: &c.stats.fsm, Logger: c.logger, BeforeCompact: n.snapshots.keepTrailing,
		// The results of a restore under way here are also awaited.
		Awaited: func() bool { return c.batcher.Busy() || len(n.backups.restoring) > 0 },
	})
	c.fsm.RestoreRoom = replica.RestoreRoom(cfg.MemoryLimit, memory.Total())
	c.space = replica.NewSpace(replica.SpaceConfig{
		MemoryLimit: cfg.MemoryLimit, DiskFreeMin: cfg.DiskFreeMin, Held: c.fsm.Held, VotersLow: n.votersLow, Logger: c.logger,
	})
	c.batcher = n.newBatcher(n.applyEntry)
	n.registerCalls()
	return n, nil
}

// compose makes a node of its parts, lower layers first.
func compose(c *core) *Node {
	r := newRole(c)
	rd, st, known := &reads{r}, &statuses{role: r}, &knownMembers{role: r}
	pr, mb := &proposals{rd}, newMembership(st)
	tr, lv, ops := newTransfers(mb), &featureLevels{mb}, &operators{proposals: pr}
	ag := &agreement{statuses: st}
	return &Node{
		proposals: pr, statuses: st, membership: mb, known: known, standing: newStanding(known, mb, rd),
		joins: &joins{mb, known}, changes: &memberChanges{tr, ops}, transfers: tr, operators: ops, levels: lv,
		agreement: ag, checkpoints: &checkpoints{ag}, clocks: &leaseClocks{st},
		snapshots: &snapshots{role: r, logBytes: c.cfg.SnapshotLogBytes, logCommands: c.cfg.SnapshotLogCommands, trailing: trailingLogs},
		backups:   newBackups(lv, rd),
	}
}

// leaders makes the part that begins and ends this node's leaderships.
func (n *Node) leaders() *leaders {
	return &leaders{
		role: n.role, agreement: n.agreement, checkpoints: n.checkpoints, clocks: n.clocks, levels: n.levels, transfers: n.transfers,
		checks: &memberChecks{n.agreement, n.membership, n.joins, n.standing, n.clocks},
	}
}

// newBatcher returns the node's batcher, which hands entries to apply.
func (n *Node) newBatcher(apply func(entry []byte) batch.Future) *batch.Batcher {
	return batch.New(batch.Config{
		Apply:   apply,
		Refuse:  n.notServing,
		Observe: n.transfers.observeEntry,
		Packed:  n.stats.batch.entry,
		Waiters: n.waiters,
		Reach: func(cmd command.Command) (tasks int) {
			n.fsm.Read(func(m *fsm.Machine) { tasks = m.ReachOf(cmd) })
			return tasks
		},
		QueueMax: n.cfg.InFlightMax,
	})
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
	return nil
}

// run starts the node's goroutines.
func (n *Node) run() {
	leaders := n.leaders()
	n.start(func() { n.batcher.Run(n.ctx.Done()) })
	n.start(func() { leaders.monitor(n.ctx) })
	n.start(func() { n.checkpoints.noteHashes(n.ctx, n.fsm.Replacing) })
	if n.raft != nil {
		n.start(func() { n.snapshots.monitor(n.ctx) })
		n.start(func() { n.transfers.monitor(n.ctx) })
		n.start(func() { n.standing.monitor(n.ctx) })
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

// applyEntry hands an entry to Raft or, without Raft, to the state machine.
func (n *Node) applyEntry(data []byte) batch.Future {
	if n.raft == nil {
		return appliedNow{n.fsm.ApplyEntry(n.fsm.AppliedIndex()+1, n.currentTerm(), data)}
	}
	start := n.clock.Mono()
	return timedEntry{n.raft.Apply(data, batch.EnqueueTimeout), n.core, start}
}

// timedEntry measures how long an entry took.
type timedEntry struct {
	raft.ApplyFuture
	node  *core
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

func (appliedNow) Error() error { return nil }

func (a appliedNow) Response() any { return a.applied }

// NodeID returns the operator's name for this node.
func (n *Node) NodeID() string { return n.cfg.NodeID }

// ClusterID returns the cluster's identity, "" for a node in memory.
func (n *Node) ClusterID() string { return n.clusterID() }

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

// Forward passes req, a client's request, on to the leader, at most once, and fills resp with its
// answer. Once the leader holds the request, the end of pass.Held's context, or of this node, makes
// the leader answer at once; that answer is returned like any other. Errors: nodes.ErrNoLeader,
// nodes.ErrShuttingDown (nothing was sent); nodes.ErrOutcomeUnknown (it may have been sent).
func (n *Node) Forward(ctx context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
	if n.closing.Load() {
		return nodes.Passed{}, nodes.ErrShuttingDown
	}
	if n.raft == nil || n.peers == nil {
		return nodes.Passed{}, nodes.ErrNoLeader
	}
	addr, id := n.raft.LeaderWithID()
	if addr == "" || string(id) == n.uuid {
		return nodes.Passed{}, nodes.ErrNoLeader
	}
	if held := pass.Held; held != nil {
		cancel := func() {}
		defer func() { cancel() }()
		pass.Held = func(wait time.Duration) (ctx context.Context) {
			ctx, cancel = withScope(held(wait), n.ctx)
			return ctx
		}
	}
	return n.peers.Forward(ctx, string(addr), string(id), pass, req, resp)
}

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

// callTable holds the handlers of calls by name.
type callTable map[string]func(ctx context.Context, body []byte) ([]byte, error)

func (n *Node) registerCalls() {
	n.calls = callTable{
		callStatus: n.statuses.answerStatus,
		callHash:   n.checkpoints.answerHash,
		callDiffer: n.agreement.answerDiffer,

		peer.CallWho:      n.known.answerWho,
		callMember:        n.changes.answerMember,
		peer.CallStanding: n.standing.answerStanding,
		callNudge:         n.standing.answerNudge,
		callTell:          n.operators.answerTell,
		callRelease:       n.answerRelease,
		callHint:          n.clocks.answerHint,
		callVouch:         n.known.answerVouch,
		callSnapshot:      n.snapshots.answerSnapshot,
		callReadIndex:     n.answerReadIndex,
	}
}

// Answer answers another node's call. Parts.Call of the other node leads here; nodes with a
// peer port use that.
func (n *Node) Answer(ctx context.Context, name string, body []byte) ([]byte, error) {
	answer := n.calls[name]
	if answer == nil || n.closing.Load() {
		return nil, fmt.Errorf("call %q: not answered here", name)
	}
	return answer(ctx, body)
}

// Ready returns nil if the node knows a leader and has caught up with it, or else why not.
func (n *Node) Ready() error { return n.statuses.ready() }

// Left returns a channel that is closed once this node knows that it was removed from the cluster. It serves nothing then.
func (n *Node) Left() <-chan struct{} { return n.left }

// Cluster returns this node's view of the cluster. It asks every other node and waits at
// most a second.
func (n *Node) Cluster(ctx context.Context) nodes.ClusterView { return n.statuses.view(ctx) }

// JoinNode makes the running node named nodeID, whose peer port is at peerAddr, a member.
// It becomes a voter once it has caught up, unless voter is false. Repeating the call for a
// member succeeds. Errors: those of RemoveNode.
func (n *Node) JoinNode(ctx context.Context, nodeID, peerAddr string, voter bool) error {
	return n.joins.join(ctx, nodeID, peerAddr, voter)
}

// RemoveNode removes the member named nodeID, alive or dead, from the cluster. Its data
// stays in its folder, but it can never come back under that identity. A leader that
// removes itself first transfers leadership, and the next one removes it if it accepts by's
// key as an operator's. The call is refused if the remaining nodes could not go on. The
// node that makes the change records it in the trail. Errors after which nothing has
// changed: *nodes.MembershipRefused, nodes.ErrNotLeader, nodes.ErrNoLeader,
// nodes.ErrOverloaded, nodes.ErrShuttingDown. nodes.ErrOutcomeUnknown if that is unknown.
func (n *Node) RemoveNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changes.changeMember(ctx, memberQuestion{Act: actRemove, NodeID: nodeID, Key: by.Key}, by)
}

// PromoteNode makes a nonvoter that has caught up a voter. Errors: those of RemoveNode.
func (n *Node) PromoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changes.changeMember(ctx, memberQuestion{Act: actPromote, NodeID: nodeID, Key: by.Key}, by)
}

// DemoteNode makes a voter a nonvoter until it is promoted again. A leader first transfers
// leadership. Errors: those of RemoveNode.
func (n *Node) DemoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changes.changeMember(ctx, memberQuestion{Act: actDemote, NodeID: nodeID, Key: by.Key}, by)
}

// Transfer transfers the leadership to the voter named nodeID, or to the most up-to-date one if
// that is "", and returns the new leader. Afterwards this node's Raft is restarted. Errors: those
// of RemoveNode.
func (n *Node) Transfer(ctx context.Context, nodeID string) (leader string, err error) {
	return n.transfers.transfer(ctx, nodeID)
}

// Upgrade raises the cluster's feature level to the highest that every member knows, and
// returns it; by names the operator for the trail. Older versions can no longer take part.
// Errors after which nothing has changed: *nodes.MembershipRefused if a voter cannot be
// asked, or a member knows no more than the current level, nodes.ErrNotLeader,
// nodes.ErrNoLeader, nodes.ErrOverloaded, nodes.ErrShuttingDown. nodes.ErrOutcomeUnknown if
// that is unknown.
func (n *Node) Upgrade(ctx context.Context, by string) (level uint32, err error) {
	return n.levels.upgrade(ctx, by)
}

// Tell records an operator's action in the trail, through the leader. key is the API key of
// cmd.By, or "". cmd.By and cmd.What are cut at 1,024 bytes. Errors after which it was not
// recorded: nodes.ErrNoLeader, nodes.ErrShuttingDown, nodes.ErrOverloaded; after any other it
// may have been.
func (n *Node) Tell(ctx context.Context, cmd command.Tell, key string) error {
	return n.operators.tell(ctx, cmd, key)
}

// SetOperators sets the function that returns the operator with an API key. For "" it
// returns ok if there are no keys. Until it is set, no operator is known.
func (n *Node) SetOperators(name func(key string) (name string, ok bool)) {
	n.operators.find.Store(&name)
}

// Hashes has every node hash its state at a new index of the log and returns the results.
// Errors: nodes.ErrNotLeader, nodes.ErrNoLeader, nodes.ErrOverloaded,
// nodes.ErrShuttingDown; nodes.ErrOutcomeUnknown.
func (n *Node) Hashes(ctx context.Context) (nodes.HashView, error) { return n.checkpoints.hashes(ctx) }

// StateHash returns the index of this node's state and the state's hash, or zeros while it
// has no state. It is equal on all nodes at the same index.
func (n *Node) StateHash() (index uint64, hash [16]byte) {
	s, err := n.fsm.Capture()
	if err != nil {
		return 0, hash
	}
	defer s.Release()
	return s.Index(), s.Hash()
}

// AppliedIndex returns the log index that this node's state reflects.
func (n *Node) AppliedIndex() uint64 { return n.fsm.AppliedIndex() }

// TakeSnapshot makes every reachable node write a snapshot now and compact its log. It returns the
// index of this node's snapshot. It runs on the leader. Errors: nodes.ErrNotLeader,
// nodes.ErrNoLeader, nodes.ErrShuttingDown; nodes.ErrOverloaded if no snapshot can be taken now;
// nodes.ErrOutcomeUnknown if ctx ends first. The snapshot then continues, and another call waits
// for the same one.
func (n *Node) TakeSnapshot(ctx context.Context) (index uint64, err error) {
	return n.snapshots.everywhere(ctx)
}

// SaveBackup captures this node's state as a backup, once it contains every mutation acknowledged
// before the call, or immediately if stale is true. The caller can write the backup while the node
// goes on, and must release it. Errors: nodes.ErrNoLeader, nodes.ErrOverloaded,
// nodes.ErrShuttingDown, ctx's cause.
func (n *Node) SaveBackup(ctx context.Context, stale bool) (*fsm.Backup, error) {
	return n.backups.save(ctx, stale)
}

// RestoreBackup makes the backup in r the state of an empty cluster and returns its index
// there. It runs on the leader. Errors after which nothing has changed: nodes.ErrNotEmpty,
// fsm.ErrCorrupt, fsm.ErrUnknownCommand, fsm.ErrDevelopment, fsm.ErrCountersUsedUp,
// *nodes.MembershipRefused, nodes.ErrNotLeader, nodes.ErrNoLeader, nodes.ErrOverloaded,
// nodes.ErrShuttingDown, those of r and of the disk. nodes.ErrOutcomeUnknown if that is unknown.
func (n *Node) RestoreBackup(ctx context.Context, r io.Reader) (index uint64, err error) {
	return n.backups.restoreFrom(ctx, r)
}

// WaitEnded waits until the task has ended or no longer exists in this node's state, for at
// most wait. Errors: those of replica.Replica.WaitEnded.
func (n *Node) WaitEnded(caller context.Context, id uint64, wait time.Duration) error {
	return n.fsm.WaitEnded(caller, id, wait)
}

// WaitEvent waits until this node's trail has an event after after, or ctx ends. Errors:
// those of WaitEnded; ctx's cause.
func (n *Node) WaitEvent(ctx context.Context, after event.Pos) error {
	return n.fsm.WaitEvent(ctx, after)
}

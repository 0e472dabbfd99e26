package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// transferEndMax bounds the wait after a transfer for the end of the old leadership; then Raft
	// is restarted. A failed transfer does not end it.
	transferEndMax = 5 * time.Second
	// leaderPollInterval is the interval between checks who leads now.
	leaderPollInterval = 20 * time.Millisecond
)

// transfers hands the leadership to other nodes, and restarts Raft afterwards.
type transfers struct {
	*membership
	ended chan transferred
	// transferSince is when Raft began to report a leadership transfer, in nanoseconds of the
	// monotonic clock; 0 = it does not.
	transferSince atomic.Int64
	// diskLeftAt is when the leadership was last handed over because of a low disk, or this
	// was tried, in nanoseconds of the monotonic clock; 0 = never.
	diskLeftAt atomic.Int64
}

func newTransfers(mb *membership) *transfers {
	return &transfers{membership: mb, ended: make(chan transferred)}
}

// transfer hands the leadership over with the membership locked, and waits until the new leader is
// known. See Node.Transfer.
func (tr *transfers) transfer(ctx context.Context, nodeID string) (leader string, err error) {
	l, unlock, err := tr.lockLeading(ctx)
	if err != nil {
		return "", err
	}
	targets, err := transferTargets(tr.view(ctx), nodeID)
	if err == nil && len(targets) > 0 {
		err = tr.moveLeadership(ctx, l, targets)
	}
	unlock()
	if err != nil {
		return "", err
	}
	return tr.awaitLeader(ctx)
}

// transferTargets returns the possible new leaders: the member of that name, or all healthy voters
// if it is ""; none if that one leads already.
func transferTargets(view nodes.ClusterView, nodeID string) ([]nodes.NodeView, error) {
	if nodeID == "" {
		var targets []nodes.NodeView
		for _, v := range view.Nodes {
			if v.NodeID != view.Leader && v.Suffrage == suffrageVoter && v.TakesPart {
				targets = append(targets, v)
			}
		}
		if len(targets) == 0 {
			return nil, &nodes.MembershipRefused{
				Reason: "No other voter is healthy",
				Advice: "See with `claimq cluster status` what is wrong with the others",
			}
		}
		return targets, nil
	}
	member, err := memberNamed(view, nodeID)
	switch {
	case err != nil:
		return nil, err
	case member.NodeID == view.Leader:
		return nil, nil
	case member.Suffrage != suffrageVoter:
		return nil, &nodes.MembershipRefused{
			Reason: nodeID + " is not a voter, and only a voter can lead",
			Advice: "Promote it first with `claimq cluster promote " + nodeID + "`, or name another node",
		}
	case !member.TakesPart:
		return nil, &nodes.MembershipRefused{
			Reason: fmt.Sprintf("%s could not lead: %s", nodeID, member.Problem),
			Advice: "Name another node, or none, so that the best one is taken",
		}
	}
	return []nodes.NodeView{member}, nil
}

// moveLeadership transfers the leadership l to the first of the targets that accepts it, best
// first, and has Raft restarted. The caller has locked the membership. Errors:
// *nodes.MembershipRefused if none accepted it and this node still leads; ctx's cause as
// nodes.ErrOutcomeUnknown.
func (tr *transfers) moveLeadership(ctx context.Context, l *leadership, targets []nodes.NodeView) error {
	names := make(map[raft.ServerID]string, len(targets))
	ids := make([]raft.ServerID, 0, len(targets))
	to := make([]string, 0, len(targets))
	for _, t := range targets {
		to = append(to, t.NodeID)
		ids = append(ids, raft.ServerID(t.UUID))
		names[raft.ServerID(t.UUID)] = t.NodeID
	}
	addrs := make(map[raft.ServerID]raft.ServerAddress)
	for _, s := range tr.servers() {
		addrs[s.ID] = s.Address
	}
	var err error
	for _, id := range tr.raft.confirmer().ByContact(ids, contactMax) {
		err = tr.await(ctx, func() raft.Future { return tr.raft.LeadershipTransferToServer(id, addrs[id]) })
		if err == nil || ctx.Err() != nil || tr.raft.State() != raft.Leader {
			break
		}
		tr.logger.Warn("leadership not handed over", "node_id", names[id], "error", err)
	}
	// Also after a failed attempt, because the leadership may end a moment later.
	restarted := make(chan struct{})
	select {
	case tr.ended <- transferred{from: l, restarted: restarted}:
	case <-tr.ctx.Done():
		return nodes.ErrShuttingDown
	}
	if err != nil && tr.raft.State() == raft.Leader {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, err)
		}
		return &nodes.MembershipRefused{
			Reason: fmt.Sprintf("The leadership was not taken over: %v", err),
			Advice: "This node leads on; see with `claimq cluster status` how the others are, and try again",
		}
	}
	select {
	case <-restarted:
	case <-ctx.Done():
	case <-tr.ctx.Done():
		return nodes.ErrShuttingDown
	}
	tr.logger.Info("leadership handed over", "to", to)
	return nil
}

// transferred is a leadership that was transferred, or that this node has tried to transfer.
type transferred struct {
	from      *leadership
	restarted chan struct{} // closed when Raft runs again, or need not be restarted
}

// monitor restarts Raft after each transfer, once the old leadership has ended.
func (tr *transfers) monitor(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-tr.ended:
			tr.endTransfer(ctx, t)
			close(t.restarted)
		}
	}
}

func (tr *transfers) endTransfer(ctx context.Context, t transferred) {
	timer := time.NewTimer(transferEndMax)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return // it failed: this node still leads
	case <-t.from.ctx.Done():
	}
	t.from.wg.Wait()
	// Ask Raft, because between two scopes of a leadership, as during a restore, there is no leader
	// here.
	if tr.raft.State() == raft.Leader || tr.leader.Load() != nil || ctx.Err() != nil {
		return // it leads again, or still
	}
	if err := tr.restartRaft(); err != nil {
		tr.cfg.Fatal(fmt.Errorf("after the leadership was handed over: %w: start this node again", err))
	}
}

// leaveLowDisk transfers the leadership to the node, whose disk is not low, at most once in
// diskHandoverInterval. If that fails this node continues to lead and refuses submits.
func (tr *transfers) leaveLowDisk(nodeID string) {
	now := tr.clock.Mono()
	if last := tr.diskLeftAt.Load(); last != 0 && now-time.Duration(last) < diskHandoverInterval {
		return
	}
	tr.diskLeftAt.Store(int64(now) + 1) // never 0
	tr.logger.Warn("handing the leadership over: the disk of this node is low, that of the other is not", "node_id", nodeID)
	// In a goroutine of the node, because those of the leadership must end for it.
	tr.start(func() {
		ctx, cancel := context.WithTimeout(tr.ctx, handoverTimeout)
		defer cancel()
		if _, err := tr.transfer(ctx, nodeID); err != nil && tr.ctx.Err() == nil && !errors.Is(err, nodes.ErrNotLeader) {
			tr.logger.Warn("leadership not handed over", "node_id", nodeID, "error", err)
		}
	})
}

// restartRaft shuts Raft down and starts it again over the same stores, on a node that no longer
// leads. A leader that has transferred its leadership may be left in a state in which it would
// refuse every entry if it ever led again; a restarted one is not. An error is fatal, because the
// node then has no Raft.
func (tr *transfers) restartRaft() error {
	newTransport := tr.parts.NewTransport
	if newTransport == nil {
		return nil
	}
	begin := tr.clock.Mono()
	before := tr.raft.run.Load()
	if err := before.shutdown(); err != nil {
		return err
	}
	transport, err := newTransport()
	if err != nil {
		return fmt.Errorf("make a transport: %w", err)
	}
	run, err := tr.raftMaker().start(tr.parts, transport, before)
	if err != nil {
		return fmt.Errorf("start raft again: %w", err)
	}
	tr.raft.run.Store(run)
	if tr.removed.Load() {
		return run.shutdown() // leaveForGood may have seen only the previous one
	}
	tr.logger.Info("raft started again", "took_ms", (tr.clock.Mono() - begin).Milliseconds())
	return nil
}

// awaitLeader waits until a leader is known and returns its name. Errors: nodes.ErrOutcomeUnknown
// when ctx ends, nodes.ErrShuttingDown.
func (tr *transfers) awaitLeader(ctx context.Context) (nodeID string, err error) {
	for {
		if tr.closing.Load() {
			return "", nodes.ErrShuttingDown
		}
		switch id := tr.leaderID(); {
		case id == "":
		case id != tr.uuid:
			return tr.nameOfMember(id), nil
		case tr.IsLeader():
			return tr.cfg.NodeID, nil
		}
		if !pause.For(ctx, leaderPollInterval) {
			return "", fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, context.Cause(ctx))
		}
	}
}

// transferStuckMax bounds how long a leader may be in a leadership transfer before that is
// taken for the state in which Raft refuses everything permanently. A transfer takes at
// most two election timeouts.
const transferStuckMax = 30 * time.Second

// observeEntry detects a leader that is stuck in a transfer.
func (tr *transfers) observeEntry(err error) {
	if !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		tr.transferSince.Store(0)
		return
	}
	now := int64(tr.clock.Mono()) + 1 // never 0
	if tr.transferSince.CompareAndSwap(0, now) || tr.closing.Load() {
		return
	}
	if stuck := time.Duration(now - tr.transferSince.Load()); stuck > transferStuckMax {
		tr.cfg.Fatal(fmt.Errorf("this node leads, but has been transferring its leadership for %s: it would refuse every write; start it again", stuck))
	}
}

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Propose replicates cmd and returns the outcome once it is on a
// quorum's disks and applied here. ctx ends the caller's wait, not the command.
// Errors: nodes.ErrNotLeader, nodes.ErrNoLeader, nodes.ErrOverloaded,
// nodes.ErrShuttingDown, nodes.ErrTooLarge, nodes.ErrLevel (nothing was written);
// nodes.ErrOutcomeUnknown (it may be applied, now or later).
func (n *Node) Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
	if n.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := n.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if err := n.space.Room(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	switch c := cmd.(type) {
	case command.ClaimNext:
		if p, done, err := n.claimNothing(ctx, c); done {
			n.endWaits(c, p, err)
			return p, err
		}
		p, err := n.batcher.Propose(ctx, cmd)
		n.tellRepeats(c, err)
		return p, err
	}
	if fsm.IsJudged(cmd) {
		if p, done, err := n.judge(ctx, cmd); done {
			return p, err
		}
	}
	return n.batcher.Propose(ctx, n.space.Shorten(cmd))
}

// Claim is Propose for a claim that waits up to wait until there is something to claim, in
// order of arrival. Nothing is written while it waits. The same request (RequestID) without
// a wait ends the waiting ones if there is nothing for it. caller should end when the
// answer is no longer wanted: a waiting claim then takes nothing, but a claim that is
// already in an entry is still answered, so that its tasks can be given back. room, if not
// nil, takes memory for the result before the claim is proposed; give is called if the claim
// waits again. Errors: those of Propose and of room; nodes.ErrNotLeader and
// nodes.ErrNoLeader if the leadership ended meanwhile; caller's cause if the claim was given
// up.
func (n *Node) Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration, room func(context.Context) (give func(), err error)) (nodes.Proposed, error) {
	if n.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := n.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if wait <= 0 {
		p, err := n.claimNow(caller, cmd, room)
		n.endWaits(cmd, p, err)
		return p, err
	}
	l := n.leader.Load()
	if l == nil || !l.serves() {
		return nodes.Proposed{}, n.notServing()
	}
	p, timedOut, err := l.waiters.Wait(caller, cmd, wait, room)
	if timedOut {
		return n.claimNow(caller, cmd, room)
	}
	return p, err
}

// claimNow claims what is there now, or answers, after confirming it, that there is
// nothing.
func (n *Node) claimNow(caller context.Context, cmd command.ClaimNext, room func(context.Context) (give func(), err error)) (nodes.Proposed, error) {
	ctx, cancel := context.WithTimeout(caller, batch.OutcomeTimeout)
	defer cancel()
	p, done, err := n.claimNothing(ctx, cmd)
	switch {
	case caller.Err() != nil && err != nil:
		return nodes.Proposed{}, context.Cause(caller)
	case done:
		return p, err
	}
	if room != nil {
		if _, err := room(caller); err != nil {
			return nodes.Proposed{}, err
		}
	}
	p, err = n.batcher.ProposeToEnd(caller, cmd)
	n.tellRepeats(cmd, err)
	return p, err
}

// endWaits ends the waiting claims of the same request as one that did not wait and found
// nothing.
func (n *Node) endWaits(cmd command.ClaimNext, p nodes.Proposed, err error) {
	if l := n.leader.Load(); l != nil && err == nil && cmd.RequestID != "" && len(p.Result.Claims) == 0 {
		l.waiters.EndWaits(cmd.RequestID)
	}
}

// tellRepeats tells waiting claims with the same request that it was answered without
// waiting, because their answer is known now.
func (n *Node) tellRepeats(cmd command.ClaimNext, err error) {
	if l := n.leader.Load(); l != nil && err == nil && cmd.RequestID != "" {
		l.waiters.Answered(cmd.RequestID)
	}
}

// claimNothing answers a claim that finds nothing, without writing. done is false if there
// seems to be something to claim, as far as this node can tell without a majority; the log
// decides whether the claim gets it.
func (n *Node) claimNothing(ctx context.Context, c command.ClaimNext) (p nodes.Proposed, done bool, err error) {
	claimable := false
	n.fsm.Read(func(m *fsm.Machine) { claimable = m.Claimable(c, n.fsm.Estimate(m)) })
	if claimable {
		return p, false, nil
	}
	p.Index, err = n.ReadLinearizable(ctx, 0, func(m *fsm.Machine, now fsm.Stamp) {
		claimable = m.Claimable(c, now)
		p.Stamp = now
	})
	if err != nil {
		return nodes.Proposed{}, true, unread(ctx, err)
	}
	return p, !claimable, nil
}

// judge answers a command that would change nothing, without writing. done is false if it
// would or might change something, as far as this node can tell without a majority.
//
// It also takes into account what is in this leader's log but not yet answered, for
// instance a claim that would make the command valid.
func (n *Node) judge(ctx context.Context, cmd command.Command) (p nodes.Proposed, done bool, err error) {
	n.fsm.Read(func(m *fsm.Machine) { _, done = m.Judge(cmd, m.Stamp()) })
	if !done {
		return p, false, nil
	}
	p.Index, err = n.ReadLinearizable(ctx, n.lastApplicable(n.lastIndex()), func(m *fsm.Machine, now fsm.Stamp) {
		p.Result, done = m.Judge(cmd, now)
		p.Stamp = now
	})
	if err != nil {
		return nodes.Proposed{}, true, unread(ctx, err)
	}
	return p, done, nil
}

// lastIndex returns the index of the last entry in this node's log.
func (n *Node) lastIndex() uint64 {
	if n.raft == nil {
		return 0
	}
	return n.raft.LastIndex()
}

// unread is the error of a command that should have been answered without writing but could
// not.
func unread(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", nodes.ErrNoLeader, err)
	}
	return err
}

// reach returns how many tasks a command may change.
func (n *Node) reach(cmd command.Command) (tasks int) {
	n.fsm.Read(func(m *fsm.Machine) { tasks = m.ReachOf(cmd) })
	return tasks
}

// serving returns this node's leadership if it serves; the error says why not.
func (n *Node) serving() (*leadership, error) {
	if l := n.leader.Load(); l != nil && l.serves() && !n.closing.Load() {
		return l, nil
	}
	return nil, n.notServing()
}

// notServing says why this node accepts no proposals and linearizable reads.
func (n *Node) notServing() error {
	l := n.leader.Load()
	switch {
	case n.closing.Load():
		return nodes.ErrShuttingDown
	case n.removed.Load():
		return errRemoved()
	case l != nil:
		return l.notYet()
	case n.leaderID() == "" || n.leaderID() == n.uuid:
		return nodes.ErrNoLeader
	}
	return nodes.ErrNotLeader
}

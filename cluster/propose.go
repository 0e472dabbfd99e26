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

// Claim is Propose of a claim that waits up to wait until there is something to
// claim, in order of arrival. While it waits nothing is written. The same request
// (RequestID) without a wait ends those that wait, if there is nothing for it. caller ends
// when nobody wants the answer any more: a claim that waits then takes nothing;
// one that is in an entry already is answered all the same, so that its tasks
// can be given back. Errors: Propose's; nodes.ErrNotLeader and nodes.ErrNoLeader when
// the leadership ended meanwhile; caller's cause when it was given up.
func (n *Node) Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error) {
	if n.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := n.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if wait <= 0 {
		p, err := n.claimNow(caller, cmd)
		n.endWaits(cmd, p, err)
		return p, err
	}
	l := n.leader.Load()
	if l == nil || !l.serves() {
		return nodes.Proposed{}, n.notServing()
	}
	p, timedOut, err := l.waiters.Wait(caller, cmd, wait)
	if timedOut {
		return n.claimNow(caller, cmd)
	}
	return p, err
}

// claimNow claims what is there now, or answers that nothing is, confirmed.
func (n *Node) claimNow(caller context.Context, cmd command.ClaimNext) (nodes.Proposed, error) {
	ctx, cancel := context.WithTimeout(caller, batch.OutcomeTimeout)
	defer cancel()
	p, done, err := n.claimNothing(ctx, cmd)
	switch {
	case caller.Err() != nil && err != nil:
		return nodes.Proposed{}, context.Cause(caller)
	case done:
		return p, err
	}
	p, err = n.batcher.ProposeToEnd(caller, cmd)
	n.tellRepeats(cmd, err)
	return p, err
}

// endWaits has the claims answered that wait and are of the same request as one that did
// not wait and found nothing.
func (n *Node) endWaits(cmd command.ClaimNext, p nodes.Proposed, err error) {
	if l := n.leader.Load(); l != nil && err == nil && cmd.RequestID != "" && len(p.Result.Claims) == 0 {
		l.waiters.EndWaits(cmd.RequestID)
	}
}

// tellRepeats tells those who wait that a claim was answered that did not wait:
// the same request, sent before or after it, has its answer now.
func (n *Node) tellRepeats(cmd command.ClaimNext, err error) {
	if l := n.leader.Load(); l != nil && err == nil && cmd.RequestID != "" {
		l.waiters.Answered(cmd.RequestID)
	}
}

// claimNothing answers a claim that finds nothing: it writes nothing. done is
// false if there is something to claim, as far as can be seen without a
// majority; whether the claim gets it is decided in the log.
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

// judge answers a command that would change nothing: it writes nothing. done is false
// if it would, as far as can be seen without a majority, or may.
//
// Also what this leader has in its log already counts, though nobody was told of it yet:
// a claim on its way, say, that would make the command a good one.
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

// lastIndex returns the index of the last entry of this node's log.
func (n *Node) lastIndex() uint64 {
	if n.raft == nil {
		return 0
	}
	return n.raft.LastIndex()
}

// unread is the error of a command that was to be answered without writing anything,
// and could not be.
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

// serving returns the leadership that serves here, or says why there is none.
func (n *Node) serving() (*leadership, error) {
	if l := n.leader.Load(); l != nil && l.serves() && !n.closing.Load() {
		return l, nil
	}
	return nil, n.notServing()
}

// notServing says why this node takes no proposals and linearizable reads.
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

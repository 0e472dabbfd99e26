package cluster

import (
	"context"
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Propose replicates cmd and returns the outcome once it is on a
// quorum's disks and applied here. ctx ends the caller's wait, not the command.
// Errors: fsm.ErrNotLeader, fsm.ErrNoLeader, fsm.ErrOverloaded,
// fsm.ErrShuttingDown, fsm.ErrTooLarge, fsm.ErrLevel (nothing was written);
// fsm.ErrOutcomeUnknown (it may be applied, now or later).
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
	return n.batcher.Propose(ctx, cmd)
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

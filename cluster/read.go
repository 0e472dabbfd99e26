package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// ReadLinearizable calls fn with a state that contains every mutation acknowledged before
// the call, and at least minIndex, and with the current clocks. It returns the index of
// that state. fn runs under the state's read lock, so it must be fast and keep only copies.
// Errors: nodes.ErrNotLeader, nodes.ErrNoLeader, nodes.ErrShuttingDown,
// nodes.ErrOverloaded, or ctx's cause.
func (n *Node) ReadLinearizable(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (uint64, error) {
	l, err := n.serving()
	if err != nil {
		return 0, err
	}
	if err := n.confirmRead(ctx, l, minIndex); err != nil {
		return 0, err
	}
	return n.fsm.ReadState(func(m *fsm.Machine) { fn(m, l.now(m)) })
}

// confirmRead returns once the local state contains everything that any leader had
// acknowledged before the call:
//
//  1. The commit index is read. The leadership's barrier is done, so it covers what earlier leaders and this one acknowledged.
//  2. After that, a majority of voters confirms that there is no later leader.
//  3. The local state reaches that index.
func (n *Node) confirmRead(ctx context.Context, l *leadership, minIndex uint64) error {
	ctx, cancel := withScope(ctx, l.ctx)
	defer cancel()
	if n.raft != nil {
		commit := n.raft.CommitIndex()
		if err := l.confirmer.Confirm(ctx, l.confirm); err != nil {
			return readError(err)
		}
		minIndex = max(minIndex, n.lastApplicable(commit))
	}
	return readError(n.fsm.Wait(ctx, minIndex))
}

// withScope returns a context that ends with either, with the cause of the one that ended
// first.
func withScope(ctx, scope context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(scope, func() { cancel(context.Cause(scope)) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// readError translates the end of the leadership for readers.
func readError(err error) error {
	if errors.Is(err, errLeadershipEnded) || errors.Is(err, errNodeClosed) {
		return fmt.Errorf("%w: %w", nodes.ErrNoLeader, err)
	}
	return err
}

// ReadStale is ReadLinearizable for the state that this node happens to have, once it has
// reached minIndex. On a node that does not lead the clocks are an estimate.
// nodes.ErrNoLeader while it has no state because it restores a snapshot.
func (n *Node) ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (uint64, error) {
	if n.closing.Load() {
		return 0, nodes.ErrShuttingDown
	}
	if n.fsm.AppliedIndex() < minIndex {
		wait, cancel := withScope(ctx, n.ctx)
		err := n.fsm.Wait(wait, minIndex)
		cancel()
		if errors.Is(err, errNodeClosed) {
			return 0, nodes.ErrShuttingDown
		}
		if err != nil {
			return 0, err
		}
	}
	l := n.leader.Load()
	return n.fsm.ReadState(func(m *fsm.Machine) {
		if l != nil && l.serves() {
			fn(m, l.now(m))
			return
		}
		fn(m, n.fsm.Estimate(m))
	})
}

// lastApplicable returns the highest index up to max whose entry reaches the state machine.
// Raft's no-ops and barriers do not, so nothing must wait for them.
func (n *Node) lastApplicable(max uint64) uint64 {
	applied := n.fsm.AppliedIndex()
	if max <= applied {
		return max
	}
	if s, ok := n.logs.(interface{ LastCommand(uint64) uint64 }); ok {
		return s.LastCommand(max)
	}
	for ; max > applied; max-- {
		var entry raft.Log
		if err := n.logs.GetLog(max, &entry); err != nil {
			// Compacted away, so it is in a snapshot, so it was applied.
			return applied
		}
		if entry.Type == raft.LogCommand {
			break
		}
	}
	return max
}

// CatchUp waits until the local state contains every mutation acknowledged before the call.
// Errors: nodes.ErrNoLeader, nodes.ErrShuttingDown; ctx's cause.
func (n *Node) CatchUp(ctx context.Context) error {
	if n.closing.Load() {
		return nodes.ErrShuttingDown
	}
	return n.catchUp(ctx)
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

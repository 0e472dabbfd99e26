package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

// callReadIndex is the call with which a node asks the leader how far to wait: {} → indexAnswer,
// an index that covers everything acknowledged before.
const callReadIndex = "read_index"

// indexAnswer is an index of the log with the answering node's chain there, "" if unknown.
type indexAnswer struct {
	Index uint64 `json:"index"`
	Chain string `json:"chain,omitempty"`
}

// reads answers from the local state, once it is known to contain what the caller may expect.
type reads struct{ *role }

// ReadLinearizable calls fn with a state that contains every mutation acknowledged before
// the call, and at least minIndex, and with the current clocks. It returns the index of
// that state. fn runs under the state's read lock, so it must be fast and keep only copies.
// Errors: nodes.ErrNotLeader, nodes.ErrNoLeader, nodes.ErrShuttingDown,
// nodes.ErrOverloaded, or ctx's cause.
func (rd *reads) ReadLinearizable(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (uint64, error) {
	l, err := rd.serving()
	if err != nil {
		return 0, err
	}
	if err := rd.confirmRead(ctx, l, minIndex); err != nil {
		return 0, err
	}
	return rd.fsm.ReadState(func(m *fsm.Machine) { fn(m, l.now(m)) })
}

// confirmRead returns once the local state contains everything that any leader had
// acknowledged before the call:
//
//  1. The commit index is read. The leadership's barrier is done, so it covers what earlier leaders and this one acknowledged.
//  2. After that, a majority of voters confirms that there is no later leader.
//  3. The local state reaches that index.
func (rd *reads) confirmRead(ctx context.Context, l *leadership, minIndex uint64) error {
	ctx, cancel := withScope(ctx, l.ctx)
	defer cancel()
	if rd.raft != nil {
		commit := rd.raft.CommitIndex()
		if err := l.confirmer.Confirm(ctx, l.confirm); err != nil {
			return readError(err)
		}
		minIndex = max(minIndex, rd.lastApplicable(commit))
	}
	return readError(rd.fsm.Wait(ctx, minIndex))
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
func (rd *reads) ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (uint64, error) {
	if rd.closing.Load() {
		return 0, nodes.ErrShuttingDown
	}
	if rd.fsm.AppliedIndex() < minIndex {
		wait, cancel := withScope(ctx, rd.ctx)
		err := rd.fsm.Wait(wait, minIndex)
		cancel()
		if errors.Is(err, errNodeClosed) {
			return 0, nodes.ErrShuttingDown
		}
		if err != nil {
			return 0, err
		}
	}
	l := rd.leader.Load()
	return rd.fsm.ReadState(func(m *fsm.Machine) {
		if l != nil && l.serves() {
			fn(m, l.now(m))
			return
		}
		fn(m, rd.fsm.Estimate(m))
	})
}

// lastApplicable returns the highest index up to max whose entry reaches the state machine.
// Raft's no-ops and barriers do not, so nothing must wait for them.
func (rd *reads) lastApplicable(max uint64) uint64 {
	applied := rd.fsm.AppliedIndex()
	if max <= applied {
		return max
	}
	if s, ok := rd.logs.(interface{ LastCommand(uint64) uint64 }); ok {
		return s.LastCommand(max)
	}
	for ; max > applied; max-- {
		var entry raft.Log
		if err := rd.logs.GetLog(max, &entry); err != nil {
			// Compacted away, so it is in a snapshot, so it was applied.
			return applied
		}
		if entry.Type == raft.LogCommand {
			break
		}
	}
	return max
}

// commitPollInterval is the interval between checks whether entries have been committed.
const commitPollInterval = 5 * time.Millisecond

// CatchUp waits until the local state contains every mutation acknowledged before the call. A node
// that does not lead asks the leader up to which index. Errors: nodes.ErrNoLeader,
// nodes.ErrShuttingDown; ctx's cause.
func (rd *reads) CatchUp(ctx context.Context) error {
	if rd.closing.Load() {
		return nodes.ErrShuttingDown
	}
	if l := rd.leader.Load(); l != nil && l.serves() {
		return rd.confirmRead(ctx, l, 0)
	}
	if rd.raft == nil {
		return rd.notServing()
	}
	addr, id := rd.raft.LeaderWithID()
	if addr == "" || string(id) == rd.uuid {
		return nodes.ErrNoLeader
	}
	read, err := ask[indexAnswer](ctx, rd.core, string(addr), callReadIndex, struct{}{})
	if err != nil {
		return fmt.Errorf("%w: ask the leader how far to wait: %w", nodes.ErrNoLeader, err)
	}
	wait, cancel := withScope(ctx, rd.ctx)
	defer cancel()
	if err := rd.fsm.Wait(wait, read.Index); err != nil {
		return readError(err)
	}
	if own := rd.fsm.ChainAt(read.Index); own != "" && read.Chain != "" && own != read.Chain {
		return fmt.Errorf("%w: %w", nodes.ErrNoLeader, chainDiffers(read.Index, own, read.Chain))
	}
	return nil
}

// answerReadIndex runs on the leader.
func (rd *reads) answerReadIndex(ctx context.Context, _ []byte) ([]byte, error) {
	index, err := rd.ReadLinearizable(ctx, 0, func(*fsm.Machine, fsm.Stamp) {})
	if err != nil {
		return nil, err
	}
	return json.Marshal(indexAnswer{Index: index, Chain: rd.fsm.ChainAt(index)})
}

// confirmHistory waits until everything that was in this node's log at the call, as a
// leader in l's term, is committed. Otherwise the latest configuration might not last: a
// change may continue after its caller gave up, and the next leader may not know it.
// Errors: ctx's cause, those of confirmRead.
func (rd *reads) confirmHistory(ctx context.Context, l *leadership) error {
	for end := rd.lastIndex(); rd.raft.CommitIndex() < end; {
		if !pause.For(ctx, commitPollInterval) {
			return context.Cause(ctx)
		}
	}
	// Check that it still leads in the term, or what was in the log at the call may be
	// gone.
	return rd.confirmRead(ctx, l, 0)
}

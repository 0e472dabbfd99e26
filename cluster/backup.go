package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// The calls of backups, between nodes.
const (
	callSnapshot  = "snapshot"   // {} → snapshotAnswer, once the snapshot is on disk
	callReadIndex = "read_index" // {} → snapshotAnswer: an index that covers everything acknowledged before
)

// snapshotAnswer is an index of the log with the answering node's chain there, "" if unknown.
type snapshotAnswer struct {
	Index uint64 `json:"index"`
	Chain string `json:"chain,omitempty"`
}

// TakeSnapshot makes every reachable node write a snapshot now and compact its log. It returns the
// index of this node's snapshot. It runs on the leader. Errors: nodes.ErrNotLeader,
// nodes.ErrNoLeader, nodes.ErrShuttingDown; nodes.ErrOverloaded if no snapshot can be taken now;
// nodes.ErrOutcomeUnknown if ctx ends first. The snapshot then continues, and another call waits
// for the same one.
func (n *Node) TakeSnapshot(ctx context.Context) (index uint64, err error) {
	if n.raft == nil {
		return 0, errNoRaft
	}
	if _, err := n.serving(); err != nil {
		return 0, err
	}
	var others []raft.Server
	for _, s := range n.servers() {
		if string(s.ID) != n.uuid {
			others = append(others, s)
		}
	}
	failed := make(chan string, len(others))
	for _, s := range others {
		go func() {
			_, err := ask[snapshotAnswer](ctx, n, string(s.Address), callSnapshot, struct{}{})
			if err != nil {
				failed <- fmt.Sprintf("%s: %v", s.Address, err)
				return
			}
			failed <- ""
		}()
	}
	index, err = n.snapshotNow(ctx)
	var problems []string
	for range others { // each ends with ctx
		if problem := <-failed; problem != "" {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		n.logger.Warn("not every node took a snapshot", "problems", strings.Join(problems, "; "))
	}
	return index, err
}

// snapshotNow writes a snapshot of this node and returns its index once it is on disk. Errors:
// those of TakeSnapshot.
func (n *Node) snapshotNow(ctx context.Context) (uint64, error) {
	if n.raft == nil {
		return 0, errNoRaft
	}
	t := n.askedFor.join(func(done func(error)) {
		n.start(func() { done(n.snapshots.take(n.ctx)) })
	})
	select {
	case <-t.done:
		if t.err != nil && !errors.Is(t.err, raft.ErrNothingNewToSnapshot) {
			if n.closing.Load() {
				return 0, fmt.Errorf("%w: %w", nodes.ErrShuttingDown, t.err)
			}
			return 0, fmt.Errorf("%w: take a snapshot: %w", nodes.ErrOverloaded, t.err)
		}
		return n.fsm.SnapshotIndex(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: the snapshot is still being written", nodes.ErrOutcomeUnknown)
	}
}

// taking is a requested snapshot that is being taken.
type taking struct {
	done chan struct{} // closed at the end
	err  error         // why it failed; set before done is closed
}

// takings runs requested snapshots one at a time. Requests made meanwhile wait for the current one.
type takings struct {
	mu  sync.Mutex
	now *taking // guarded by mu; nil if none is under way
}

// join returns the current snapshot. If there is no current one, it calls begin to start one; begin
// must not block and must call done exactly once at the end.
func (s *takings) join(begin func(done func(error))) *taking {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		return s.now
	}
	t := &taking{done: make(chan struct{})}
	s.now = t
	begin(func(err error) {
		s.mu.Lock()
		s.now = nil
		s.mu.Unlock()
		t.err = err
		close(t.done)
	})
	return t
}

func (n *Node) answerSnapshot(ctx context.Context, _ []byte) ([]byte, error) {
	index, err := n.snapshotNow(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(snapshotAnswer{Index: index, Chain: n.fsm.ChainAt(index)})
}

// SaveBackup captures this node's state as a backup, once it contains every mutation acknowledged
// before the call, or immediately if stale is true. The caller can write the backup while the node
// goes on, and must release it. Errors: nodes.ErrNoLeader, nodes.ErrOverloaded,
// nodes.ErrShuttingDown, ctx's cause.
func (n *Node) SaveBackup(ctx context.Context, stale bool) (*fsm.Backup, error) {
	if n.closing.Load() {
		return nil, nodes.ErrShuttingDown
	}
	if !stale {
		if err := n.catchUp(ctx); err != nil {
			return nil, err
		}
	}
	s, err := n.fsm.Capture()
	if err != nil {
		return nil, err
	}
	return fsm.NewBackup(s, fsm.BackupInfo{
		ClusterID: n.clusterID(), CreatedAt: n.clock.Wall() / 1e6, Version: n.cfg.Version,
	}), nil
}

// clusterID returns the cluster's identity, "" for a node in memory.
func (n *Node) clusterID() string {
	if n.dir == nil {
		return ""
	}
	return n.dir.Identity().ClusterID
}

// catchUp waits until the local state contains every mutation acknowledged before the call. A node
// that does not lead asks the leader up to which index.
func (n *Node) catchUp(ctx context.Context) error {
	if l := n.leader.Load(); l != nil && l.serves() {
		return n.confirmRead(ctx, l, 0)
	}
	if n.raft == nil {
		return n.notServing()
	}
	addr, id := n.raft.LeaderWithID()
	if addr == "" || string(id) == n.uuid {
		return nodes.ErrNoLeader
	}
	read, err := ask[snapshotAnswer](ctx, n, string(addr), callReadIndex, struct{}{})
	if err != nil {
		return fmt.Errorf("%w: ask the leader how far to wait: %w", nodes.ErrNoLeader, err)
	}
	wait, cancel := withScope(ctx, n.ctx)
	defer cancel()
	if err := n.fsm.Wait(wait, read.Index); err != nil {
		return readError(err)
	}
	if own := n.fsm.ChainAt(read.Index); own != "" && read.Chain != "" && own != read.Chain {
		return fmt.Errorf("%w: %w", nodes.ErrNoLeader, chainDiffers(read.Index, own, read.Chain))
	}
	return nil
}

// answerReadIndex runs on the leader.
func (n *Node) answerReadIndex(ctx context.Context, _ []byte) ([]byte, error) {
	index, err := n.ReadLinearizable(ctx, 0, func(*fsm.Machine, fsm.Stamp) {})
	if err != nil {
		return nil, err
	}
	return json.Marshal(snapshotAnswer{Index: index, Chain: n.fsm.ChainAt(index)})
}

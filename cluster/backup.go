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
	callSnapshot  = "snapshot"   // {} → snapshotAnswer, once it is on disk
	callReadIndex = "read_index" // {} → snapshotAnswer: an index that covers what was acknowledged before
)

// snapshotAnswer is an index of the log, and the chain of who answers there, "" if it is
// not told.
type snapshotAnswer struct {
	Index uint64 `json:"index"`
	Chain string `json:"chain,omitempty"`
}

// TakeSnapshot makes every node that answers write a snapshot now and compact
// its log, and returns the index of this one's. It runs on the leader. Errors:
// fsm.ErrNotLeader, fsm.ErrNoLeader, fsm.ErrShuttingDown; fsm.ErrOverloaded when
// one cannot be taken now; fsm.ErrOutcomeUnknown when ctx ends first: it goes on, and
// who asks again waits for the same.
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

// snapshotNow writes a snapshot of this node, and returns its index once it is on
// disk. Errors: TakeSnapshot's.
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

// taking is a snapshot that is being taken because somebody asked for it.
type taking struct {
	done chan struct{} // closed when it is over
	err  error         // why it was not taken; set before done is closed
}

// takings are the snapshots that are asked for: one at a time, and who asks
// meanwhile waits for that one.
type takings struct {
	mu  sync.Mutex
	now *taking // guarded by mu; nil if none is being taken
}

// join returns the snapshot that is being taken. If there is none it has begin
// begin one, which must not block, and whose done is called once when it is over.
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

// SaveBackup captures this node's state as a backup, once it holds every
// mutation acknowledged before the call; if stale is true, as it is. The caller
// writes it out beside what goes on, and must release it. Errors: fsm.ErrNoLeader, fsm.ErrOverloaded,
// fsm.ErrShuttingDown, ctx's cause.
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

// catchUp waits until the state here holds every mutation that was acknowledged
// before the call. A node that does not lead asks the leader how far that is.
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

// answerReadIndex is asked of the leader.
func (n *Node) answerReadIndex(ctx context.Context, _ []byte) ([]byte, error) {
	index, err := n.ReadLinearizable(ctx, 0, func(*fsm.Machine, fsm.Stamp) {})
	if err != nil {
		return nil, err
	}
	return json.Marshal(snapshotAnswer{Index: index, Chain: n.fsm.ChainAt(index)})
}

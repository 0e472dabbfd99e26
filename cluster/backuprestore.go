package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

const (
	// restoreWaitMax bounds how long a restore waits until most nodes have taken
	// the state over. It goes on after that.
	restoreWaitMax = 10 * time.Minute
	// restoreIndexGap is how far above the log's end the restored state's index
	// is, at least: more than Raft can have written since the end was looked at.
	restoreIndexGap = 64
	// restoreServeMax bounds how long a restore waits until this node serves again.
	restoreServeMax = 10 * time.Second
)

// errRestoreHere says what became of a restore that is here, and perhaps nowhere
// else.
var errRestoreHere = errors.New("this node has taken the backup's state, and did not hear from most nodes that they have: " +
	"once there is a leader, look whether it is there, else restore again; " +
	"if this node does not catch up then, remove it from the cluster and join it again with an empty folder")

// RestoreBackup makes the backup that r reads the state of an empty cluster, and
// returns the index that it has there. It runs on the leader.
//
//  1. The backup is written to disk here, whole, and verified.
//  2. Every member is asked which feature level it knows: each has to take the
//     state over.
//  3. The leadership's scope ends, so that nobody proposes anything any more; a
//     barrier, then the state is looked at: it is empty.
//  4. The backup's state is grafted onto the cluster, and verified again: Raft
//     would end the process for one that it cannot read.
//  5. Raft takes it as a snapshot behind a gap in the log, and sends it to all
//     others; it is there when most of them have it.
//  6. A new scope begins, with the clocks and claims of that state.
//
// Errors: fsm.ErrNotEmpty, fsm.ErrCorrupt, fsm.ErrUnknownCommand,
// fsm.ErrCountersUsedUp, *fsm.MembershipRefused, fsm.ErrNotLeader,
// fsm.ErrNoLeader, fsm.ErrOverloaded, fsm.ErrShuttingDown, those of r and of the
// disk (nothing was changed); fsm.ErrOutcomeUnknown.
func (n *Node) RestoreBackup(ctx context.Context, r io.Reader) (index uint64, err error) {
	l := n.leader.Load()
	switch {
	case n.raft == nil:
		return 0, errNoRaft
	case l == nil || !l.serves() || n.closing.Load():
		return 0, n.notServing()
	}
	select {
	case n.restoring <- struct{}{}:
		defer func() { <-n.restoring }()
	default:
		return 0, fmt.Errorf("%w: another backup is being restored", fsm.ErrOverloaded)
	}
	if _, err := n.ground(); err != nil {
		return 0, err // before anything is received in vain
	}
	received, err := n.newSpool()
	if err != nil {
		return 0, err
	}
	defer received.close()
	if err := received.receive(ctx, r); err != nil {
		return 0, err
	}
	backup, err := fsm.ReadBackup(received.reader(), received.size)
	if err != nil {
		return 0, err
	}
	if err := received.room(2 * uint64(received.size)); err != nil {
		return 0, err
	}
	// A node that joined meanwhile might not know the level.
	unlock, err := n.lockMembers(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := n.admitBackup(ctx, backup.Info.Level); err != nil {
		return 0, err
	}
	return n.between(ctx, func() (uint64, error) { return n.restore(backup) })
}

// admitBackup refuses a state that not every member can take over.
func (n *Node) admitBackup(ctx context.Context, level uint32) error {
	known, _, err := n.levelKnown(ctx)
	if err != nil {
		return &fsm.MembershipRefused{
			Reason: fmt.Sprintf("Not every member can take the backup's state over: %v", err),
			Advice: "Bring it back first, or remove it",
		}
	}
	if level > known {
		return fmt.Errorf("%w: it has feature level %d, and a node of this cluster knows %d: run the newer version on every node",
			fsm.ErrUnknownCommand, level, known)
	}
	return nil
}

// ground returns what of the cluster outlives a restore, fsm.ErrNotEmpty if the
// state holds anything that does not, fsm.ErrNoLeader while there is no state.
func (n *Node) ground() (fsm.Ground, error) {
	var g fsm.Ground
	var holds string
	if _, err := n.fsm.readState(func(m *fsm.Machine) { g, holds = m.Ground(), m.Contents() }); err != nil {
		return g, err
	}
	if holds != "" {
		return g, fmt.Errorf("%w: it holds %s", fsm.ErrNotEmpty, holds)
	}
	return g, nil
}

// interlude is something that is done while this node leads and no scope of its
// leadership runs.
type interlude struct {
	do   func() (uint64, error)
	done chan interludeResult // capacity 1
}

type interludeResult struct {
	index uint64
	err   error
}

// between ends the scope of this node's leadership, calls do, and begins another
// scope: in between nobody proposes. It returns what do returns, once this node
// serves again. ctx ends the wait only for do to begin.
func (n *Node) between(ctx context.Context, do func() (uint64, error)) (uint64, error) {
	i := &interlude{do: do, done: make(chan interludeResult, 1)}
	select {
	case n.interludes <- i:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-n.ctx.Done():
		return 0, fsm.ErrShuttingDown
	}
	result := <-i.done // do ends with the node
	if l := n.leader.Load(); l != nil {
		timer := time.NewTimer(restoreServeMax)
		defer timer.Stop()
		select {
		case <-l.established:
		case <-l.ctx.Done():
		case <-timer.C:
		}
	}
	return result.index, result.err
}

// run does what the interlude is for. end ends the leadership's scope, begin
// begins another.
func (i *interlude) run(end, begin func()) {
	end()
	index, err := i.do()
	begin()
	i.done <- interludeResult{index, err}
}

// restore makes the backup the state of this cluster. Nobody else proposes
// anything meanwhile, or changes the members.
func (n *Node) restore(backup *fsm.SavedBackup) (uint64, error) {
	ctx, cancel := context.WithTimeout(n.ctx, restoreWaitMax)
	defer cancel()
	p, err := n.prepareRestore(ctx, backup)
	if err != nil {
		return 0, err
	}
	defer p.grafted.close()
	return n.restorePrepared(ctx, p)
}

// preparedRestore is a state that is ready to replace an empty one.
type preparedRestore struct {
	term    uint64 // in which this node led, and the state was empty
	index   uint64 // that it has in this cluster
	grafted *spool
	info    fsm.BackupInfo
}

// prepareRestore looks whether the state is empty, and grafts the backup onto it.
// The caller closes what was grafted.
func (n *Node) prepareRestore(ctx context.Context, backup *fsm.SavedBackup) (*preparedRestore, error) {
	p := &preparedRestore{term: n.raft.CurrentTerm(), info: backup.Info}
	// What an earlier entry's caller was told is unknown may be committed yet.
	if err := n.await(ctx, func() raft.Future { return n.raft.Barrier(enqueueTimeout) }); err != nil {
		return nil, fmt.Errorf("%w: %w", fsm.ErrNotLeader, err)
	}
	g, err := n.ground()
	if err != nil {
		return nil, err
	}
	// Raft gives it the index that follows this gap, or the log's last.
	p.index = max(backup.Info.Index, n.raft.LastIndex()) + restoreIndexGap + 1
	p.grafted, err = n.graft(backup, g, p.index)
	return p, err
}

// restorePrepared has Raft take the state, if this node has led all the time since
// it looked: grafting a large one takes long, and whatever another leader
// acknowledged meanwhile would be lost.
func (n *Node) restorePrepared(ctx context.Context, p *preparedRestore) (uint64, error) {
	if n.raft.State() != raft.Leader || n.raft.CurrentTerm() != p.term {
		return 0, fmt.Errorf("%w: the leadership changed while the backup was prepared", fsm.ErrNotLeader)
	}
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: p.index - 1, Size: p.grafted.size}
	err := n.await(ctx, func() raft.Future { return userRestore{n.raft.current(), meta, p.grafted.reader()} })
	if err == nil {
		n.logger.Info("backup restored", "index", p.index, "backup_cluster_id", p.info.ClusterID, "backup_index", p.info.Index)
		return p.index, nil
	}
	switch here := n.fsm.applied.Load() >= p.index; {
	case here || ctx.Err() != nil:
		n.logger.Error("backup restored here, and perhaps not by most nodes", "index", p.index, "error", err)
		return 0, fmt.Errorf("%w: %w: %w", fsm.ErrOutcomeUnknown, errRestoreHere, err)
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrLeadershipLost):
		return 0, fmt.Errorf("%w: %w", fsm.ErrNotLeader, err)
	}
	return 0, fmt.Errorf("restore the backup: %w", err)
}

// graft writes the backup's state, as that of this cluster at index, to a spool,
// and verifies it there. The caller closes the spool.
func (n *Node) graft(backup *fsm.SavedBackup, g fsm.Ground, index uint64) (*spool, error) {
	s, err := backup.Graft(g)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	to, err := n.newSpool()
	if err != nil {
		return nil, err
	}
	if _, err = s.WriteTo(to); err == nil {
		_, err = fsm.ReadSnapshot(to.reader())
	}
	if err != nil {
		to.close()
		return nil, fmt.Errorf("prepare the backup's state: %w", err)
	}
	return to, nil
}

// userRestore is raft.Restore as a future.
type userRestore struct {
	raft *raft.Raft
	meta *raft.SnapshotMeta
	from io.Reader
}

// Error restores, and waits until a quorum has the state.
func (u userRestore) Error() error { return u.raft.Restore(u.meta, u.from, 0) }

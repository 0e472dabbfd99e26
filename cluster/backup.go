package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

const (
	// restoreWaitMax bounds the time to prepare a verified restore, write it to the log and
	// apply it here.
	restoreWaitMax = 10 * time.Minute
	// restoreChunkBytes is the size of the state's part in one log entry.
	restoreChunkBytes = storage.LargeEntryBytes
	// restoreInFlightMax bounds the entries of a restore that are in flight.
	restoreInFlightMax = storage.LargeEntriesMax
)

// backups saves this node's state as a backup, and restores one into an empty cluster.
type backups struct {
	*featureLevels
	reads     *reads
	restoring chan struct{} // capacity 1; holds an element while a backup is restored
}

func newBackups(lv *featureLevels, rd *reads) *backups {
	return &backups{featureLevels: lv, reads: rd, restoring: make(chan struct{}, 1)}
}

// save is Node.SaveBackup.
func (b *backups) save(ctx context.Context, stale bool) (*fsm.Backup, error) {
	if b.closing.Load() {
		return nil, nodes.ErrShuttingDown
	}
	if !stale {
		if err := b.reads.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	s, err := b.fsm.Capture()
	if err != nil {
		return nil, err
	}
	return fsm.NewBackup(s, fsm.BackupInfo{
		ClusterID: b.clusterID(), CreatedAt: b.clock.Wall() / 1e6, Version: b.cfg.Version,
	}), nil
}

// errRestoreUnknown is returned for a restore whose last entry got no answer.
var errRestoreUnknown = errors.New("all of the backup was written to the log, and no majority has said that it has the end of it: " +
	"once there is a leader the whole state is there, or nothing of it: look, and restore again if the cluster is empty")

// restoreFrom makes the backup in r the state of an empty cluster and returns its index
// there. It runs on the leader. It returns the errors of Node.RestoreBackup.
//
//  1. The whole backup is written to the local disk and verified.
//  2. Every member is asked for its feature level, because each has to take over the state.
//  3. The leadership's scope ends, so that no commands are proposed. After a barrier, the
//     state is checked to be empty.
//  4. The backup's state is grafted onto the cluster.
//  5. It goes through the log in chunks, like any mutation. Each node builds it separately
//     and takes it over at the last entry. Anything in between, such as the first tick of
//     another leader, abandons it on every node.
//  6. A new scope begins, with the clocks and claims of that state.
func (b *backups) restoreFrom(ctx context.Context, r io.Reader) (index uint64, err error) {
	if b.raft == nil {
		return 0, errNoRaft
	}
	if _, err := b.serving(); err != nil {
		return 0, err
	}
	select {
	case b.restoring <- struct{}{}:
		defer func() { <-b.restoring }()
	default:
		return 0, fmt.Errorf("%w: another backup is being restored", nodes.ErrOverloaded)
	}
	// Check this before receiving a backup that would be refused.
	if _, err := b.ground(); err != nil {
		return 0, err
	}
	if err := b.space.Full(); err != nil {
		return 0, err
	}
	received, err := b.newSpool()
	if err != nil {
		return 0, err
	}
	defer received.Close()
	if err := received.Receive(ctx, r); err != nil {
		return 0, err
	}
	backup, err := fsm.ReadBackup(received.Reader(), received.Size())
	if err != nil {
		return 0, err
	}
	if err := b.space.AdmitState(backup.Bytes()); err != nil {
		return 0, err
	}
	if err := received.Room(2 * uint64(received.Size())); err != nil {
		return 0, err
	}
	// From here on no node may join, because it might not know the level.
	unlock, err := b.lockMembers(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := b.admitBackup(ctx, backup.Info.Level); err != nil {
		return 0, err
	}
	return b.exclusively(ctx, func() (uint64, error) { return b.restore(backup) })
}

// admitBackup refuses a state that some member cannot take over.
func (b *backups) admitBackup(ctx context.Context, level uint32) error {
	known, _, err := b.levelKnown(ctx)
	if err != nil {
		return &nodes.MembershipRefused{
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

// ground returns the part of the cluster's state that outlives a restore. Errors:
// nodes.ErrNotEmpty if the state holds anything else, nodes.ErrNoLeader while there is no
// state.
func (b *backups) ground() (fsm.Ground, error) {
	var g fsm.Ground
	var holds string
	if _, err := b.fsm.ReadState(func(m *fsm.Machine) { g, holds = m.Ground(), m.Contents() }); err != nil {
		return g, err
	}
	if holds != "" {
		return g, fmt.Errorf("%w: it holds %s", nodes.ErrNotEmpty, holds)
	}
	return g, nil
}

// restore makes the backup the state of this cluster. No commands are proposed meanwhile,
// and the membership does not change.
func (b *backups) restore(backup *fsm.SavedBackup) (uint64, error) {
	ctx, cancel := context.WithTimeout(b.ctx, restoreWaitMax)
	defer cancel()
	p, err := b.prepareRestore(ctx, backup)
	if err != nil {
		return 0, err
	}
	defer p.grafted.Close()
	index, err := b.restorePrepared(ctx, p)
	if err != nil {
		b.logger.Error("backup not restored", "error", err)
		return 0, err
	}
	b.logger.Info("backup restored", "index", index, "backup_cluster_id", p.info.ClusterID, "backup_index", p.info.Index)
	return index, nil
}

// preparedRestore is a state that is ready to replace an empty one.
type preparedRestore struct {
	stamp   fsm.Stamp // of the empty state; time stands still during the restore
	grafted *storage.Spool
	info    fsm.BackupInfo
}

// prepareRestore checks that the state is empty, and grafts the backup onto it, which
// empties the backup. The caller must close grafted.
func (b *backups) prepareRestore(ctx context.Context, backup *fsm.SavedBackup) (*preparedRestore, error) {
	// An earlier entry whose outcome is unknown may still be committed.
	if err := b.await(ctx, func() raft.Future { return b.raft.Barrier(batch.EnqueueTimeout) }); err != nil {
		return nil, fmt.Errorf("%w: %w", nodes.ErrNotLeader, err)
	}
	g, err := b.ground()
	if err != nil {
		return nil, err
	}
	grafted, err := b.graft(backup, g)
	return &preparedRestore{stamp: g.Stamp, grafted: grafted, info: backup.Info}, err
}

// graft writes the backup's state, adapted to this cluster, to a spool. The caller must
// close it.
func (b *backups) graft(backup *fsm.SavedBackup, g fsm.Ground) (*storage.Spool, error) {
	s, err := backup.Graft(g)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	to, err := b.newSpool()
	if err != nil {
		return nil, err
	}
	if _, err = s.WriteTo(to); err != nil {
		to.Close()
		return nil, fmt.Errorf("prepare the backup's state: %w", err)
	}
	return to, nil
}

// newSpool creates an empty spool in the data folder. The caller must close it.
func (c *core) newSpool() (*storage.Spool, error) {
	dir := os.TempDir()
	if c.dir != nil {
		dir = c.dir.Path()
	}
	return storage.NewSpool(dir, c.cfg.DiskFreeMin)
}

// restorePrepared sends the state through the log and returns the index of the entry with
// which all nodes take it over. An error before that entry is proposed means that nothing
// changes.
func (b *backups) restorePrepared(ctx context.Context, p *preparedRestore) (uint64, error) {
	// Free the memory of the backup's verified state to make room for the new one.
	runtime.GC()
	begin, err := b.awaitEntry(ctx, b.applyAlone(p.stamp, command.RestoreBegin{Bytes: uint64(p.grafted.Size())}))
	if err != nil {
		return 0, restoreFailed(err)
	}
	if err := b.sendChunks(ctx, p, begin); err != nil {
		return 0, restoreFailed(err)
	}
	index, err := b.awaitEntry(ctx, b.applyAlone(p.stamp, command.RestoreEnd{Begin: begin}))
	var refused *restoreRefused
	switch {
	case err == nil:
		return index, nil
	case errors.As(err, &refused):
		return 0, restoreFailed(err)
	case ctx.Err() != nil:
		return 0, fmt.Errorf("%w: %w: %w", nodes.ErrOutcomeUnknown, errRestoreUnknown, err)
	}
	if err = batch.ProposeError(err); errors.Is(err, nodes.ErrOutcomeUnknown) {
		return 0, fmt.Errorf("%w: %w", err, errRestoreUnknown)
	}
	return 0, err
}

// sendChunks proposes the whole state, after the entry at index begin.
func (b *backups) sendChunks(ctx context.Context, p *preparedRestore, begin uint64) error {
	from := p.grafted.Reader()
	flight := make(chan raft.ApplyFuture, restoreInFlightMax)
	for offset := int64(0); offset < p.grafted.Size(); {
		if len(flight) == cap(flight) {
			if _, err := b.awaitEntry(ctx, <-flight); err != nil {
				return err
			}
		}
		data := make([]byte, min(restoreChunkBytes, p.grafted.Size()-offset))
		if _, err := io.ReadFull(from, data); err != nil {
			return fmt.Errorf("read the backup's state: %w", err)
		}
		flight <- b.applyAlone(p.stamp, command.RestoreChunk{Begin: begin, Offset: uint64(offset), Data: data})
		offset += int64(len(data))
	}
	for len(flight) > 0 {
		if _, err := b.awaitEntry(ctx, <-flight); err != nil {
			return err
		}
	}
	return nil
}

// applyAlone hands Raft an entry with one command.
func (b *backups) applyAlone(stamp fsm.Stamp, cmd command.Command) raft.ApplyFuture {
	return b.raft.Apply(command.AppendEntry(nil, stamp, cmd), batch.EnqueueTimeout)
}

// restoreRefused is returned for an entry of a restore that was applied and refused.
type restoreRefused struct{ code fsm.Code }

func (r *restoreRefused) Error() string {
	return "the state machine refuses an entry of the restore: " + string(r.code)
}

// awaitEntry waits until the entry of one command is applied here, and returns its index.
// Errors: Raft's, ctx's cause, *restoreRefused.
func (b *backups) awaitEntry(ctx context.Context, f raft.ApplyFuture) (index uint64, err error) {
	if err := b.await(ctx, func() raft.Future { return f }); err != nil {
		return 0, err
	}
	applied, ok := f.Response().(*fsm.Applied)
	if !ok || len(applied.Results) != 1 {
		return 0, errors.New("the entry has no result")
	}
	if code := applied.Results[0].Code; code != "" {
		return 0, &restoreRefused{code}
	}
	return f.Index(), nil
}

// restoreFailed describes why a restore failed before its last entry, or why that was
// refused. Nothing was changed.
func restoreFailed(err error) error {
	var refused *restoreRefused
	switch {
	case errors.As(err, &refused) && refused.code == fsm.CodeNotEmpty:
		return fmt.Errorf("%w: something came before the restore", nodes.ErrNotEmpty)
	case errors.As(err, &refused), errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: the leadership changed while the backup was restored: %w", nodes.ErrNotLeader, err)
	case errors.Is(err, raft.ErrRaftShutdown), errors.Is(err, errNodeClosed):
		return fmt.Errorf("%w: %w", nodes.ErrShuttingDown, err)
	}
	return fmt.Errorf("restore the backup: %w", err)
}

package cluster

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/memory"
)

// ErrNothingToRecover is returned for a data folder from which no cluster can be recovered:
// it has no data, or its node is not a member, or the only one.
var ErrNothingToRecover = errors.New("nothing to recover")

// RecoverConfig selects the data folder from which to recover a cluster.
type RecoverConfig struct {
	DataDir string // of a stopped node
	Logger  hclog.Logger
	// DryRun checks without changing anything.
	DryRun bool
}

// Recovery is the result of recovering a data folder.
type Recovery struct {
	NodeID    string
	PeerAddr  string
	ClusterID string // the new one; "" for a DryRun
	// LastIndex is the end of the log in the folder. Later entries on other nodes are lost;
	// entries in it that were never acknowledged take effect.
	LastIndex uint64
	Others    []fsm.NodeRecord // members that are left out
}

// Recover makes the node of a data folder the only member of a new cluster that has the
// folder's tasks. It is for a cluster that has permanently lost most of its voters; what
// only those had is lost. All nodes must be stopped, and the others must never be started
// again: they are refused because of the new cluster's id. Ids and claim tokens jump. It
// may be interrupted and called again. Errors: ErrNothingToRecover, and those of opening
// the folder.
func Recover(cfg RecoverConfig) (r Recovery, err error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	path, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return r, storage.DirError(path, err)
	}
	id, ok, err := storage.ReadIdentity(path)
	switch {
	case err != nil:
		return r, err
	case !ok:
		return r, fmt.Errorf("%w: %s is no node's data folder: there is no %s in it", ErrNothingToRecover, path, storage.IdentityFile)
	case !id.StoresCreated || id.ClusterID == "":
		return r, fmt.Errorf("%w: the node of %s has never been in a cluster", ErrNothingToRecover, path)
	}
	dir, err := storage.OpenDir(path, id.NodeID)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	filled := Config{NodeID: id.NodeID, Logger: cfg.Logger}.withDefaults()
	s, err := storage.Open(dir, storage.Config{Logger: cfg.Logger, Fatal: filled.Fatal})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err = recoveryOf(id, s)
	if err != nil || cfg.DryRun {
		return r, err
	}
	return r, recoverTo(filled, dir, s, &r)
}

// recoveryOf checks what there is to recover.
func recoveryOf(id storage.Identity, s *storage.Stores) (Recovery, error) {
	r := Recovery{NodeID: id.NodeID}
	has, err := s.HasState()
	if err != nil {
		return r, err
	}
	if !has {
		return r, fmt.Errorf("%w: node %s has no data", ErrNothingToRecover, r.NodeID)
	}
	config, last, err := latestConfiguration(s)
	if err != nil {
		return r, err
	}
	r.LastIndex = last
	voter := false
	for _, server := range config.Servers {
		if string(server.ID) == id.UUID {
			r.PeerAddr, voter = string(server.Address), server.Suffrage == raft.Voter
			continue
		}
		r.Others = append(r.Others, fsm.NodeRecord{UUID: string(server.ID), PeerAddr: string(server.Address)})
	}
	switch {
	case r.PeerAddr == "":
		return r, fmt.Errorf("%w: node %s is no member of its cluster: it was removed, or has not been told that it joined; recover another node", ErrNothingToRecover, r.NodeID)
	case voter && len(r.Others) == 0:
		return r, fmt.Errorf("%w: node %s is the only member of its cluster: just start it", ErrNothingToRecover, r.NodeID)
	}
	return r, nil
}

// latestConfiguration returns the newest configuration on disk, committed or not, and the
// end of the log.
func latestConfiguration(s *storage.Stores) (config raft.Configuration, last uint64, err error) {
	snapshots, err := s.Snapshots.List()
	if err != nil {
		return config, 0, fmt.Errorf("list snapshots: %w", err)
	}
	if len(snapshots) > 0 {
		config, last = snapshots[0].Configuration, snapshots[0].Index
	}
	first, err := s.Log.FirstIndex()
	if err != nil {
		return config, 0, fmt.Errorf("read the log: %w", err)
	}
	end, err := s.Log.LastIndex()
	if err != nil {
		return config, 0, fmt.Errorf("read the log: %w", err)
	}
	for index := max(first, last+1); index <= end && index > 0; index++ {
		var entry raft.Log
		if err := s.Log.GetLog(index, &entry); err != nil {
			return config, 0, fmt.Errorf("read log entry %d: %w", index, err)
		}
		if entry.Type == raft.LogConfiguration {
			config = raft.DecodeConfiguration(entry.Data)
		}
	}
	return config, max(last, end), nil
}

// recoverTo performs the recovery. It writes the new cluster's id first, so that after any
// interruption the other nodes and this one no longer take each other for members.
func recoverTo(cfg Config, dir *storage.Dir, s *storage.Stores, r *Recovery) error {
	own := dir.Identity().UUID
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make a cluster id: %w", err)
	}
	if err := dir.LeaveCluster(id.String()); err != nil {
		return err
	}
	r.ClusterID = id.String()
	_, transport := raft.NewInmemTransport(raft.ServerAddress(r.PeerAddr))
	defer transport.Close()
	config := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(own), Address: raft.ServerAddress(r.PeerAddr)}}}
	state := replica.New(replica.Config{
		Clock: clocks.System(), Fatal: cfg.Fatal, Stats: &newStats().fsm, Logger: cfg.Logger, BeforeCompact: func(uint64, int64, int64) {},
	})
	state.RestoreRoom = replica.RestoreRoom(cfg.MemoryLimit, memory.Total())
	err = raft.RecoverCluster(raftConfig(own, cfg.Logger), &recoveredFSM{Replica: state}, &recoveredLog{s.Log}, s.Stable, s.Snapshots, transport, config)
	if err != nil {
		return fmt.Errorf("recover node %s: %w", r.NodeID, err)
	}
	return nil
}

// recoveredFSM is the state machine of a node that becomes a new cluster.
type recoveredFSM struct {
	*replica.Replica
	refused error // why the newest snapshot could not be restored
}

// Restore remembers its error, because Raft would continue with an older snapshot.
func (f *recoveredFSM) Restore(r io.ReadCloser) error {
	err := f.Replica.Restore(r)
	f.refused = errors.Join(f.refused, err)
	return err
}

// Snapshot captures the state after its counters have jumped, because other nodes may have
// assigned more.
func (f *recoveredFSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.refused != nil {
		return nil, f.refused
	}
	if err := f.JumpCounters(); err != nil {
		return nil, err
	}
	return f.Replica.Snapshot()
}

// recoveredLog is a log that may be empty after its snapshot.
type recoveredLog struct{ *storage.Log }

// DeleteRange does nothing for an empty log.
func (l *recoveredLog) DeleteRange(lo, hi uint64) error {
	if hi == 0 || lo > hi {
		return nil
	}
	return l.Log.DeleteRange(lo, hi)
}

package cluster

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
)

// soakDisk is the data folder of a node with a disk that can be slow.
type soakDisk struct {
	path   string
	nodeID string
	wal    int          // the size of raft-wal's segments
	slow   atomic.Int64 // extra nanoseconds of each write
	// waiting counts the currently slow writes.
	waiting atomic.Int64
	// snapshots, if not nil, prevents snapshots from finishing until it is closed.
	snapshots atomic.Pointer[chan struct{}]
	entries   *soakEntries
	// differs is true once the node may be sent other entries than the others.
	differs atomic.Bool

	crash  func() // ends the rest of the node in a crash
	silent bool   // the next crash is one of the machine, not of the process

	mu        sync.Mutex // one durable write at a time
	armed     *soakCrash // guarded by mu
	crashed   bool       // guarded by mu
	crashedAt soakWrite  // guarded by mu
}

// soakFolder is an open soakDisk.
type soakFolder struct {
	dir    *storage.Dir
	stores *storage.Stores
}

// uuid creates the folder if necessary and returns its identity.
func (d *soakDisk) uuid() (string, error) {
	dir, err := storage.OpenDir(d.path, d.nodeID)
	if err != nil {
		return "", err
	}
	return dir.Identity().UUID, errors.Join(dir.SetCluster("soak", nil), dir.Close())
}

// open opens the folder and its stores.
func (d *soakDisk) open(fatal func(error), logger hclog.Logger) (*soakFolder, error) {
	dir, err := storage.OpenDir(d.path, d.nodeID)
	if err != nil {
		return nil, err
	}
	// The cache is small, so that entries are also read back from the store.
	s, err := storage.Open(dir, storage.Config{
		Fatal: fatal, Logger: logger, CacheBytesMax: 32 << 10, SegmentBytes: d.wal,
		WrapLog:    func(log raft.LogStore) raft.LogStore { return &soakLogStore{log, d} },
		WrapStable: func(stable raft.StableStore) raft.StableStore { return &soakStableStore{stable, d} },
	})
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &soakFolder{dir: dir, stores: s}, nil
}

// wait waits for the time of a slow write.
func (d *soakDisk) wait() {
	if slow := d.slow.Load(); slow > 0 {
		d.waiting.Add(1)
		defer d.waiting.Add(-1)
		<-time.After(time.Duration(slow))
	}
}

func (d *soakDisk) storeLogs(logs []*raft.Log, store func([]*raft.Log) error) error {
	d.wait()
	counts, err := d.durable(writeLog, func() error { return store(logs) })
	if err == nil && counts && !d.differs.Load() {
		d.entries.note(d.nodeID, logs)
	}
	return err
}

// soakLogStore is raft-wal on a soakDisk.
type soakLogStore struct {
	raft.LogStore
	disk *soakDisk
}

func (s *soakLogStore) StoreLogs(logs []*raft.Log) error {
	return s.disk.storeLogs(logs, s.LogStore.StoreLogs)
}

func (s *soakLogStore) DeleteRange(first, last uint64) error {
	_, err := s.disk.durable(writeTruncate, func() error { return s.LogStore.DeleteRange(first, last) })
	return err
}

// soakStableStore is raft-boltdb with Raft's term and vote on a soakDisk.
type soakStableStore struct {
	raft.StableStore
	disk *soakDisk
}

func (s *soakStableStore) Set(key, val []byte) error {
	s.disk.entries.noteStable(s.disk.nodeID, string(key))
	s.disk.wait()
	_, err := s.disk.durable(writeStable, func() error { return s.StableStore.Set(key, val) })
	return err
}

// soakSnapshots is a snapshot store on a soakDisk.
type soakSnapshots struct {
	raft.SnapshotStore
	disk *soakDisk
}

func (s *soakSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return &soakSink{sink, s.disk}, nil
}

type soakSink struct {
	raft.SnapshotSink
	disk *soakDisk
}

func (s *soakSink) Close() error {
	if c := s.disk.snapshots.Load(); c != nil {
		<-*c
	}
	_, err := s.disk.durable(writeSnapshot, s.SnapshotSink.Close)
	return err
}

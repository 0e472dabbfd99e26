package cluster

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// soakDisk is the data folder of a node, and how slow its disk is.
type soakDisk struct {
	path   string
	nodeID string
	wal    int          // raft-wal holds the log, in segments of so many bytes; 0: raft-boltdb
	slow   atomic.Int64 // nanoseconds that each write takes
	// waiting counts the writes that are slow now.
	waiting atomic.Int64
	// snapshots, if not nil, keeps snapshots from being finished until it is
	// closed.
	snapshots atomic.Pointer[chan struct{}]
}

// soakFolder is an open soakDisk.
type soakFolder struct {
	dir    *dataDir
	stores *stores
}

func (f *soakFolder) close() error {
	return errors.Join(f.stores.Close(), f.dir.Close())
}

func (d *soakDisk) logStore() string {
	if d.wal > 0 {
		return logStoreWAL
	}
	return logStoreBoltDB
}

// uuid makes the folder if it is not there and returns its identity.
func (d *soakDisk) uuid() (string, error) {
	dir, err := openDataDir(d.path, d.nodeID, d.logStore())
	if err != nil {
		return "", err
	}
	return dir.Identity().UUID, dir.Close()
}

// open opens the folder and its stores, the product's own around either log.
func (d *soakDisk) open(fatal func(error), logger hclog.Logger) (*soakFolder, error) {
	dir, err := openDataDir(d.path, d.nodeID, d.logStore())
	if err != nil {
		return nil, err
	}
	// The cache is small, so that entries are read back from the store too.
	s, err := openStores(dir, storesConfig{Fatal: fatal, Logger: logger, CacheBytesMax: 32 << 10, SegmentBytes: d.wal})
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	slow := &slowStore{boltStore: s.bolt, disk: d}
	s.Log.disk = slow
	if d.wal > 0 {
		s.Log.disk = &slowLog{logBackend: s.log, slow: slow}
	}
	s.Stable.(*stableStore).bolt = slow
	return &soakFolder{dir: dir, stores: s}, nil
}

// slowStore takes its time for each write.
type slowStore struct {
	boltStore
	disk *soakDisk
}

func (s *slowStore) wait() {
	if d := s.disk.slow.Load(); d > 0 {
		s.disk.waiting.Add(1)
		defer s.disk.waiting.Add(-1)
		<-time.After(time.Duration(d))
	}
}

func (s *slowStore) StoreLog(log *raft.Log) error {
	s.wait()
	return s.boltStore.StoreLog(log)
}

func (s *slowStore) StoreLogs(logs []*raft.Log) error {
	s.wait()
	return s.boltStore.StoreLogs(logs)
}

// slowLog is raft-wal on a soakDisk.
type slowLog struct {
	logBackend
	slow *slowStore
}

func (s *slowLog) StoreLogs(logs []*raft.Log) error {
	s.slow.wait()
	return s.logBackend.StoreLogs(logs)
}

func (s *slowStore) Set(key, val []byte) error {
	s.wait()
	return s.boltStore.Set(key, val)
}

// slowSnapshots is a snapshot store on a soakDisk.
type slowSnapshots struct {
	raft.SnapshotStore
	disk *soakDisk
}

func (s *slowSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return &slowSink{sink, s.disk}, nil
}

type slowSink struct {
	raft.SnapshotSink
	disk *soakDisk
}

func (s *slowSink) Close() error {
	if c := s.disk.snapshots.Load(); c != nil {
		<-*c
	}
	return s.SnapshotSink.Close()
}

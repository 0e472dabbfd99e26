package cluster

import (
	"errors"
	"sync"
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
	entries   *soakEntries

	crash  func() // what a crash does to the rest of the node
	silent bool   // the next crash is one of the machine, not of the process

	mu        sync.Mutex // one durable write at a time
	armed     *soakCrash // guarded by mu
	crashed   bool       // guarded by mu
	crashedAt soakWrite  // guarded by mu
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
	return dir.Identity().UUID, errors.Join(dir.SetCluster("soak", nil), dir.Close())
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
	bolt := &soakStore{boltStore: s.bolt, disk: d}
	s.Log.disk = bolt
	if d.wal > 0 {
		s.Log.disk = &soakWAL{logBackend: s.log, disk: d}
	}
	s.Stable.(*stableStore).bolt = bolt
	return &soakFolder{dir: dir, stores: s}, nil
}

// wait takes the time of a slow write.
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
	if err == nil && counts {
		d.entries.note(d.nodeID, logs)
	}
	return err
}

// soakStore is raft-boltdb on a soakDisk.
type soakStore struct {
	boltStore
	disk *soakDisk
}

func (s *soakStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

func (s *soakStore) StoreLogs(logs []*raft.Log) error {
	return s.disk.storeLogs(logs, s.boltStore.StoreLogs)
}

func (s *soakStore) DeleteRange(first, last uint64) error {
	_, err := s.disk.durable(writeTruncate, func() error { return s.boltStore.DeleteRange(first, last) })
	return err
}

func (s *soakStore) Set(key, val []byte) error {
	s.disk.entries.noteStable(s.disk.nodeID, string(key))
	s.disk.wait()
	_, err := s.disk.durable(writeStable, func() error { return s.boltStore.Set(key, val) })
	return err
}

// soakWAL is raft-wal on a soakDisk.
type soakWAL struct {
	logBackend
	disk *soakDisk
}

func (s *soakWAL) StoreLogs(logs []*raft.Log) error {
	return s.disk.storeLogs(logs, s.logBackend.StoreLogs)
}

func (s *soakWAL) DeleteRange(first, last uint64) error {
	_, err := s.disk.durable(writeTruncate, func() error { return s.logBackend.DeleteRange(first, last) })
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

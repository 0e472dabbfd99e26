package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
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

// uuid makes the folder if it is not there and returns its identity.
func (d *soakDisk) uuid() (string, error) {
	dir, err := openDataDir(d.path, d.nodeID)
	if err != nil {
		return "", err
	}
	return dir.Identity().UUID, dir.Close()
}

// open opens the folder and its stores, the product's own around either log.
func (d *soakDisk) open(fatal func(error), logger hclog.Logger) (*soakFolder, error) {
	dir, err := openDataDir(d.path, d.nodeID)
	if err != nil {
		return nil, err
	}
	open := openStores
	if d.wal > 0 {
		open = func(dir *dataDir, cfg storesConfig) (*stores, error) { return openWALStores(dir, d.wal, cfg) }
	}
	// The cache is small, so that entries are read back from the store too.
	s, err := open(dir, storesConfig{Fatal: fatal, Logger: logger, CacheBytesMax: 32 << 10})
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	slow := &slowStore{boltStore: s.bolt, disk: d}
	s.Log.bolt = slow
	s.Stable.(*stableStore).bolt = slow
	return &soakFolder{dir: dir, stores: s}, nil
}

// openWALStores is openStores over raft-wal.
func openWALStores(d *dataDir, segment int, cfg storesConfig) (*stores, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if ok, err := fileExists(filepath.Join(d.path, tailFileName)); err != nil || !ok {
		if err := errors.Join(err, createTail(d.path)); err != nil {
			return nil, err
		}
	}
	guard := newFailStop(cfg.Fatal, cfg.SlowCallMax)
	s, err := openExistingWALStores(d, segment, cfg, guard)
	if err != nil {
		guard.close()
	}
	return s, err
}

func openExistingWALStores(d *dataDir, segment int, cfg storesConfig, guard *failStop) (*stores, error) {
	snapshots, err := openSnapshotStore(d.path, cfg.Logger, guard)
	if err != nil {
		return nil, err
	}
	snapshotIndex, err := snapshots.verifyNewest()
	if err != nil {
		return nil, err
	}
	tail, err := openTail(d.path)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, "wal")
	w, err := openWAL(path, segment)
	if err != nil {
		return nil, errors.Join(err, tail.close())
	}
	summary, err := checkWAL(w, path, snapshotIndex, tail.value)
	if err != nil {
		return nil, errors.Join(err, w.Close(), tail.close())
	}
	s := &stores{
		Stable:    &stableStore{bolt: w, guard: guard, path: path},
		Snapshots: snapshots,
		guard:     guard,
		bolt:      w,
		tail:      tail,
	}
	s.Log = newLogStore(path, w, tail, guard, summary, cfg)
	return s, nil
}

// walStore is raft-wal with raft-boltdb's answer for a key that is not there.
type walStore struct {
	*wal.WAL
	meta *metadb.BoltMetaDB
}

func openWAL(path string, segment int) (*walStore, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	meta := &metadb.BoltMetaDB{}
	w, err := wal.Open(path, wal.WithMetaStore(meta), wal.WithSegmentSize(segment), wal.WithLogger(hclog.NewNullLogger()))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	return &walStore{WAL: w, meta: meta}, nil
}

func (w *walStore) Get(key []byte) ([]byte, error) {
	val, err := w.WAL.Get(key)
	if err == nil && val == nil {
		return nil, raftboltdb.ErrKeyNotFound
	}
	return val, err
}

func (w *walStore) Close() error { return errors.Join(w.WAL.Close(), w.meta.Close()) }

// checkWAL is checkLog of a raft-wal: every entry reads back, without a gap
// behind the snapshot, up to the tail.
func checkWAL(w *walStore, path string, snapshotIndex uint64, tail logTail) (summary logSummary, err error) {
	first, err := w.FirstIndex()
	if err != nil {
		return summary, err
	}
	last, err := w.LastIndex()
	if err != nil {
		return summary, err
	}
	if tail.index > last || last > 0 && first > snapshotIndex+1 {
		return summary, corruptLog(path, fmt.Sprintf("it has [%d, %d]; the newest snapshot is at %d, the newest entry was %d", first, last, snapshotIndex, tail.index))
	}
	for index := first; index > 0 && index <= last; index++ {
		var log raft.Log
		if err := w.GetLog(index, &log); err != nil {
			return summary, err
		}
		if err := unsealEntry(index, &log); err != nil {
			return summary, corruptLog(path, fmt.Sprintf("entry %d: %v", index, err))
		}
		if index == tail.index && entryChecksum(&log) != tail.crc {
			return summary, corruptLog(path, fmt.Sprintf("entry %d is an older one than was last written", index))
		}
		summary.sizes.add(index, int64(len(log.Data)+len(log.Extensions)))
	}
	summary.first, summary.last = first, last
	return summary, nil
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

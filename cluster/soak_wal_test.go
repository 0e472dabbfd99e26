package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// openWALStores is openStores over raft-wal.
func openWALStores(d *dataDir, segmentSize int, cfg storesConfig) (*stores, error) {
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
	s, err := openExistingWALStores(d, segmentSize, cfg, guard)
	if err != nil {
		guard.close()
	}
	return s, err
}

func openExistingWALStores(d *dataDir, segmentSize int, cfg storesConfig, guard *failStop) (*stores, error) {
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
	w, err := openWAL(path, segmentSize)
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
	meta *walMeta
}

func openWAL(path string, size int) (*walStore, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	meta := &walMeta{BoltMetaDB: &metadb.BoltMetaDB{}, filer: segment.NewFiler(path, fs.New()), size: size}
	w, err := wal.Open(path, wal.WithMetaStore(meta), wal.WithSegmentSize(size), wal.WithLogger(hclog.NewNullLogger()))
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

// walMeta finishes what raft-wal leaves undone when it ends between the append
// that seals a segment and the change to the next one, which another goroutine
// makes: opened again, raft-wal v0.4.2 goes on with the sealed segment, and every
// append fails.
type walMeta struct {
	*metadb.BoltMetaDB
	filer types.SegmentFiler
	size  int
}

// Load implements types.MetaStore.
func (m *walMeta) Load(dir string) (types.PersistentState, error) {
	state, err := m.BoltMetaDB.Load(dir)
	if err != nil || len(state.Segments) == 0 {
		return state, err
	}
	last := &state.Segments[len(state.Segments)-1]
	if !last.SealTime.IsZero() {
		return state, nil
	}
	w, err := m.filer.RecoverTail(*last)
	if errors.Is(err, os.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, err
	}
	sealed, indexStart, err := w.Sealed()
	index := w.LastIndex()
	if err := errors.Join(err, w.Close()); err != nil || !sealed {
		return state, err
	}
	last.SealTime, last.MaxIndex, last.IndexStart = time.Now(), index, indexStart
	state.Segments = append(state.Segments, types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: index + 1, MinIndex: index + 1,
		SizeLimit: uint32(m.size), Codec: wal.CodecBinaryV1, CreateTime: time.Now(),
	})
	state.NextSegmentID++
	return state, m.CommitState(state)
}

// raft-wal that is closed right after any append goes on where it was.
func TestWAL_ClosedWhileItChangesSegments(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	for i := uint64(1); i <= 100; i++ {
		w, err := openWAL(path, 1<<10)
		if err != nil {
			t.Fatalf("open before entry %d: %v", i, err)
		}
		if err := w.StoreLogs(testEntries(i, i)); err != nil {
			t.Fatalf("append entry %d: %v", i, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w, err := openWAL(path, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := uint64(1); i <= 100; i++ {
		var log raft.Log
		if err := w.GetLog(i, &log); err != nil || !equalLogs(&log, testEntry(i)) {
			t.Errorf("entry %d: %+v, %v", i, log, err)
		}
	}
}

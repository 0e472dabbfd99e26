package storage

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
)

const (
	walDirName = "wal"
	// walSegmentBytes is the size of a segment. Smaller ones rotate more often, which costs some
	// fsyncs; a node has at least one in use and a spare.
	walSegmentBytes = 16 << 20
	// walAppendBytes bounds the entries of one append, except for a single larger entry.
	// raft-wal keeps a buffer of twice the largest append for each segment: 16 entries of 1 MiB,
	// which a follower gets in one call, left 32 MiB.
	walAppendBytes = 2<<20 - 64<<10
	// walReadTriesMax bounds how often an entry is read again after its segment was dropped.
	// Each retry needs another DeleteRange, or the file is damaged.
	walReadTriesMax = 100
)

// walStore is the log in raft-wal: segments that are written once from start to end, so that an
// append is one write and one sync of data.
type walStore struct {
	*wal.WAL
	files   *walFS
	failure *walFailure
}

// createWAL creates an empty log in the folder at path, in steps that a crash may interrupt
// anywhere.
func createWAL(path string) error {
	if err := os.MkdirAll(path, dataDirMode); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return (&walMeta{dir: path, failure: &walFailure{}}).create()
}

// openWAL opens the log in the folder at path. tail is the index of an entry that was written.
// segmentBytes applies to new segments. Errors: ErrDiskFull, ErrStorageFailed and ErrDataDir for
// a failed write.
func openWAL(path string, segmentBytes int, tail uint64, logger hclog.Logger) (*walStore, error) {
	failure := &walFailure{}
	files, err := newWALFS(path, int64(segmentBytes), failure, logger)
	if err != nil {
		return nil, storageError(filepath.Dir(path), "open "+path, err)
	}
	filer := segment.NewFiler(path, files)
	meta := &walMeta{dir: path, filer: filer, size: segmentBytes, tail: tail, failure: failure}
	w, err := wal.Open(path, wal.WithMetaStore(meta), wal.WithSegmentFiler(filer), wal.WithSegmentSize(segmentBytes), wal.WithLogger(logger))
	if err != nil {
		err = errors.Join(err, files.close())
		if failure.first() != nil {
			err = storageError(filepath.Dir(path), "open "+path, err)
		}
		return nil, err
	}
	return &walStore{WAL: w, files: files, failure: failure}, nil
}

// GetLog implements raft.LogStore. raft-wal itself would still find entries that were deleted
// from the front of a segment. It also closes, and walFS truncates, segments dropped by a
// DeleteRange while a reader may still read them; then the bounds of the log must be checked
// again.
func (s *walStore) GetLog(index uint64, log *raft.Log) error {
	for try := 1; ; try++ {
		first, err := s.FirstIndex()
		if err != nil {
			return err
		}
		if index < first {
			return raft.ErrLogNotFound
		}
		err = s.WAL.GetLog(index, log)
		dropped := errors.Is(err, os.ErrClosed) || errors.Is(err, io.EOF)
		if !dropped || try == walReadTriesMax {
			return err
		}
	}
}

// StoreLogs implements raft.LogStore. Large entries are written in several appends, so after an
// error the first of them may be in the log.
func (s *walStore) StoreLogs(logs []*raft.Log) error {
	for len(logs) > 0 {
		count, bytes := 1, logEntryBytes(logs[0])
		for ; count < len(logs) && bytes+logEntryBytes(logs[count]) <= walAppendBytes; count++ {
			bytes += logEntryBytes(logs[count])
		}
		if err := s.WAL.StoreLogs(logs[:count]); err != nil {
			return errors.Join(s.failure.first(), err)
		}
		logs = logs[count:]
	}
	return nil
}

// StoreLog implements raft.LogStore.
func (s *walStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// Close waits for operations under way. A second Close does nothing.
func (s *walStore) Close() error { return errors.Join(s.WAL.Close(), s.files.close()) }

// openCheckedWAL opens the log in the folder at path and reads all of it. ErrCorruptLog unless
// every entry is intact, there is no gap above snapshotIndex, and the log reaches
// tail. raft-wal itself would take a damaged newest batch for torn, and checks no other. Errors
// of writes: those of openWAL; they do not mean damage.
func openCheckedWAL(path string, segmentBytes int, snapshotIndex uint64, tail logTail, logger hclog.Logger) (*walStore, logSummary, error) {
	if ok, err := fileExists(filepath.Join(path, walMetaFileName)); err != nil || !ok {
		return nil, logSummary{}, errors.Join(err, corruptLog(path, walMetaFileName+" is missing"))
	}
	var w *walStore
	c := logChecker{snapshotIndex: snapshotIndex, tail: tail}
	err := callGuarded("check the log", func() (err error) {
		if w, err = openWAL(path, segmentBytes, tail.index, logger); err != nil {
			return err
		}
		return c.runWAL(w)
	})
	if err != nil {
		if w != nil {
			err = errors.Join(err, w.Close())
		}
		if errors.Is(err, ErrDiskFull) || errors.Is(err, ErrStorageFailed) || errors.Is(err, ErrDataDir) {
			return nil, logSummary{}, err
		}
		return nil, logSummary{}, corruptLog(path, err.Error())
	}
	return w, c.summary, nil
}

package storage

import (
	"errors"
	"fmt"
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
	// walSegmentBytes is how large a segment is. Smaller ones are changed more
	// often, at the price of some fsyncs; a node has one in use and a spare at
	// least.
	walSegmentBytes = 16 << 20
	// walAppendBytes bounds the entries of one append, unless it is one alone. raft-wal keeps a
	// buffer of twice the largest append of each segment for as long as the segment is there: 16
	// entries of 1 MiB, which a follower gets in one call, left 32 MiB.
	walAppendBytes = 2<<20 - 64<<10
	// walReadTriesMax bounds how often an entry is read again whose segment was
	// dropped meanwhile. Each time takes another DeleteRange, or the file is damaged.
	walReadTriesMax = 100
)

// logBackend keeps the log's entries on disk.
type logBackend interface {
	raft.LogStore
	Close() error
}

// walStore is the log in raft-wal: segments that are written from their start
// to their end and never again, so an append is one write and one sync of data.
type walStore struct {
	*wal.WAL
	files   *walFS
	failure *walFailure
}

// createWAL makes an empty log in the folder at path, in steps that a crash may
// cut anywhere.
func createWAL(path string) error {
	if err := os.MkdirAll(path, dataDirMode); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return (&walMeta{dir: path, failure: &walFailure{}}).create()
}

// openWAL opens the log in the folder at path, in which the entry tail was
// written. segmentBytes concerns segments that are made from now on. Errors:
// ErrDiskFull, ErrStorageFailed and ErrDataDir for a write that failed.
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

// GetLog implements raft.LogStore. raft-wal by itself still finds what was
// deleted from the front of a segment. And it closes, and walFS cuts, the segments
// that a DeleteRange drops while a reader may still read them: then what the reader
// has to know is what the log holds now.
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

// StoreLogs implements raft.LogStore. Large entries go in several appends: after an error the
// first of them may be there.
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

// Close waits for what is under way. A second Close does nothing.
func (s *walStore) Close() error { return errors.Join(s.WAL.Close(), s.files.close()) }

// openCheckedWAL opens the log in the folder at path and reads all of it:
// ErrCorruptLog unless every entry is as it was written, there is no gap above
// snapshotIndex, and the log reaches tail. raft-wal by itself would take the
// newest batch for torn if it is damaged, and checks no other. Errors of writes:
// openWAL's; then nothing is known to be damaged.
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

// runWAL is run for a log in raft-wal.
func (c *logChecker) runWAL(w *walStore) error {
	first, err := w.FirstIndex()
	if err != nil {
		return err
	}
	last, err := w.LastIndex()
	if err != nil {
		return err
	}
	for index := first; index > 0 && index <= last; index++ {
		var log raft.Log
		if err := w.GetLog(index, &log); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
		if err := c.check(index, &log); err != nil {
			return err
		}
	}
	return c.finish()
}

package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// logSummary is the result of checking a log.
type logSummary struct {
	first, last uint64 // 0, 0 = empty
	sizes       logSizes
}

// checkLog reads the whole log at path before bbolt opens it. It returns an ErrCorruptLog
// unless every reachable page, entry and value is as it was written, the entries above
// snapshotIndex (the newest snapshot; 0 = none) have no gap, and the log reaches tail.
//
// It cannot detect a newest transaction that the disk never wrote although it claimed so,
// combined with a loss of power that also reverted the tail; nor deliberate changes.
func checkLog(path string, snapshotIndex uint64, tail logTail) (logSummary, error) {
	f, err := os.Open(path)
	if err != nil {
		return logSummary{}, DirError(filepath.Dir(path), err)
	}
	info, err := f.Stat()
	if err != nil {
		return logSummary{}, errors.Join(DirError(filepath.Dir(path), err), f.Close())
	}
	summary, err := checkLogIn(f, info.Size(), snapshotIndex, tail)
	if err != nil {
		return logSummary{}, errors.Join(corruptLog(path, err.Error()), f.Close())
	}
	return summary, f.Close()
}

// checkLogIn is checkLog for the size bytes in f. Its errors only say what is wrong.
func checkLogIn(f io.ReaderAt, size int64, snapshotIndex uint64, tail logTail) (logSummary, error) {
	c := logChecker{snapshotIndex: snapshotIndex, tail: tail}
	err := callGuarded("check the log", func() error {
		file, err := readBoltFile(f, size)
		if err != nil {
			return err
		}
		return c.run(file)
	})
	return c.summary, err
}

// logChecker goes through the log from its oldest entry to its newest.
type logChecker struct {
	snapshotIndex uint64
	tail          logTail
	summary       logSummary
	tailSeen      bool
}

func (c *logChecker) run(file *boltFile) error {
	root, err := file.buckets()
	if err != nil {
		return err
	}
	for _, name := range []string{"conf", "logs"} {
		if _, ok := root[name]; !ok || len(root) != 2 {
			return errors.New("not a log: it needs the buckets conf and logs")
		}
	}
	if err := file.walkBucket(root["conf"], c.checkValue); err != nil {
		return err
	}
	if err := file.walkBucket(root["logs"], c.checkEntry); err != nil {
		return err
	}
	return c.finish()
}

// checkValue checks a value of the stable store.
func (c *logChecker) checkValue(key, val []byte) error {
	val, err := openStableValue(key, val)
	if err == nil && string(key) == voteTermKey {
		_, err = decodeVote(val)
	}
	return err
}

// checkEntry checks the next entry of the log.
func (c *logChecker) checkEntry(key, val []byte) error {
	if len(key) != 8 {
		return fmt.Errorf("entry with a key of %d bytes", len(key))
	}
	index := binary.BigEndian.Uint64(key)
	var log raft.Log
	if err := decodeEntry(val, &log); err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	return c.check(index, &log)
}

// check checks the next entry, as it is on disk.
func (c *logChecker) check(index uint64, log *raft.Log) error {
	if err := unsealEntry(index, log); err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	// Below a snapshot gaps are normal: a node that was sent one continues after it and
	// keeps its older entries.
	if index > c.snapshotIndex+1 && index != c.summary.last+1 {
		return fmt.Errorf("entries %d to %d are missing (the newest snapshot is at %d)",
			max(c.summary.last, c.snapshotIndex)+1, index-1, c.snapshotIndex)
	}
	if index == c.tail.index {
		if entryChecksum(log) != c.tail.crc {
			return fmt.Errorf("entry %d is an older one than was last written", index)
		}
		c.tailSeen = true
	}
	if c.summary.first == 0 {
		c.summary.first = index
	}
	c.summary.last = index
	c.summary.sizes.add(index, int64(len(log.Data)+len(log.Extensions)))
	return nil
}

func (c *logChecker) finish() error {
	if c.tail.index > c.summary.last {
		return fmt.Errorf("it ends at entry %d, but %d had been written", c.summary.last, c.tail.index)
	}
	if c.tail.index >= c.summary.first && c.tail.index > 0 && !c.tailSeen {
		return fmt.Errorf("entry %d, once the newest, is missing", c.tail.index)
	}
	return nil
}

// decodeEntry decodes an entry written by raft-boltdb, which must be all of val.
func decodeEntry(val []byte, log *raft.Log) error {
	dec := codec.NewDecoderBytes(val, &codec.MsgpackHandle{})
	if err := dec.Decode(log); err != nil {
		return err
	}
	if read := dec.NumBytesRead(); read != len(val) {
		return fmt.Errorf("%d bytes, of which %d are used", len(val), read)
	}
	return nil
}

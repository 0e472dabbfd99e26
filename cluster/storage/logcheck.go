package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// logSummary is the result of checking a log.
type logSummary struct {
	first, last uint64 // 0, 0 = empty
	sizes       logSizes
}

// logChecker checks the log, from its oldest entry to its newest: runWAL when the stores are opened,
// examineWAL in the folder of a stopped node.
type logChecker struct {
	snapshotIndex uint64
	tail          logTail
	summary       logSummary
	tailSeen      bool
}

// check checks the next entry, as stored on disk.
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

// finish checks, after the newest entry, that the log reaches its tail.
func (c *logChecker) finish() error {
	if c.tail.index > c.summary.last {
		return fmt.Errorf("it ends at entry %d, but %d had been written", c.summary.last, c.tail.index)
	}
	if c.tail.index >= c.summary.first && c.tail.index > 0 && !c.tailSeen {
		return fmt.Errorf("entry %d, once the newest, is missing", c.tail.index)
	}
	return nil
}

// runWAL checks the log that is open in raft-wal.
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

// examineWAL checks the log in the folder at path for claimq doctor. It reads the segments itself
// and writes nothing, because raft-wal, when it opens a log, completes what a crash has left
// unfinished. The incomplete end of a write is ignored, as raft-wal does; the log's tail shows
// whether too much is missing.
func (c *logChecker) examineWAL(path string) error {
	meta := walMeta{dir: path}
	state, err := meta.read()
	if err != nil {
		return err
	}
	for i, s := range state.Segments {
		err := c.examineSegment(filepath.Join(path, segment.FileName(s)), s)
		if errors.Is(err, os.ErrNotExist) && i == len(state.Segments)-1 && s.SealTime.IsZero() {
			break // a crash came before it was created
		}
		if err != nil {
			return fmt.Errorf("segment %s: %w", segment.FileName(s), err)
		}
	}
	return c.finish()
}

// examineSegment checks the entries of one segment.
func (c *logChecker) examineSegment(path string, s types.SegmentInfo) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	end, _ := committedEnd(b)
	var codec wal.BinaryCodec
	index := s.BaseIndex
	for at := walHeaderSize; at < end; {
		size := int(binary.LittleEndian.Uint32(b[at+4:]))
		switch b[at] {
		case walFrameEntry:
			if size > end-at-walFrameHeader {
				return fmt.Errorf("entry %d reaches past the end", index)
			}
			if index >= s.MinIndex && (s.MaxIndex == 0 || index <= s.MaxIndex) {
				var log raft.Log
				if err := codec.Decode(b[at+walFrameHeader:at+walFrameHeader+size], &log); err != nil {
					return fmt.Errorf("entry %d: %w", index, err)
				}
				if err := c.check(index, &log); err != nil {
					return err
				}
			}
			index++
			at += walFrameHeader + (size+7)&^7
		case walFrameIndex:
			at += walFrameHeader + (size+7)&^7
		default: // a commit, which has a checksum instead of a size
			at += walFrameHeader
		}
	}
	if s.MaxIndex != 0 && index <= s.MaxIndex {
		return fmt.Errorf("it ends at entry %d, and had been written up to %d", index-1, s.MaxIndex)
	}
	return nil
}

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

// examineWAL is runWAL without raft-wal, which on opening a log completes what a crash has
// left unfinished in its files: nothing is written here. Bytes that such a crash
// cut off do not count, as in raft-wal; the log's tail shows whether that was too
// much.
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

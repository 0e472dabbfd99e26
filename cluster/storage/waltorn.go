package storage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
)

// What is known of the form of raft-wal's segments: a header, then frames
//
//	[type, 1 byte][reserved, 3][length or checksum, uint32][payload]   little endian
//
// padded to 8 bytes. A commit frame ends a batch: its checksum is over all bytes
// since the one before, or since the start of the file.
const (
	walHeaderSize  = 32
	walFrameHeader = 8

	walFrameEntry  = 1
	walFrameIndex  = 2
	walFrameCommit = 3
)

// walCommit is a commit frame.
type walCommit struct {
	start, end int // of the bytes under the checksum; the frame is behind them
	entries    uint64
	crc        uint32
}

// committedEnd returns where the last batch ends that was written whole to the
// segment, and how many entries the segment has up to there. It goes by the
// rules of raft-wal: a batch that anything follows was acknowledged, and is not
// looked at; the newest one counts if its checksum is right.
func committedEnd(segment []byte) (end int, entries uint64) {
	var before, last walCommit
	count, commitAt := uint64(0), 0
	at := walHeaderSize
frames:
	for at+walFrameHeader <= len(segment) {
		value := binary.LittleEndian.Uint32(segment[at+4:])
		switch segment[at] {
		case walFrameEntry:
			count++
			at += walFrameHeader + (int(value)+7)&^7
		case walFrameIndex:
			at += walFrameHeader + (int(value)+7)&^7
		case walFrameCommit:
			before, last = last, walCommit{start: commitAt, end: at, entries: count, crc: value}
			at += walFrameHeader
			commitAt = at
		default:
			break frames
		}
	}
	if last.end == 0 {
		return 0, 0
	}
	if at == commitAt && crc32.Checksum(segment[last.start:last.end], castagnoli()) != last.crc {
		last = before
	}
	if last.end == 0 {
		return 0, 0
	}
	return last.end + walFrameHeader, last.entries
}

// clearTorn puts zeroes in the place of what a crash left of the last write to
// the segment at path, which begins with entry base, unless all of it was
// written. raft-wal v0.4.2 does not find by itself that the end of a segment was
// not written whole: it takes the segment for sealed, with an index that may be
// anything. Nor would it notice if a later, shorter write left some of it.
//
// A segment that does not reach the entry tail is left alone: it is damaged, not
// torn. Errors: os.ErrNotExist; those of reading and writing.
func clearTorn(path string, base, tail uint64) error {
	segment, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	end, entries := committedEnd(segment)
	if base+entries <= tail {
		return nil
	}
	torn := segment[end:]
	clean := true
	for _, b := range torn {
		clean = clean && b == 0
	}
	if clean {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, dataFileMode)
	if err != nil {
		return err
	}
	clear(torn)
	_, err = f.WriteAt(torn, int64(end))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

package storage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
)

// The known format of raft-wal's segments: a header, then frames
//
//	[type, 1 byte][reserved, 3][length or checksum, uint32][payload]   little endian
//
// padded to 8 bytes. A commit frame ends a batch: its checksum covers all bytes since the
// previous one, or since the start of the file.
const (
	walHeaderSize  = 32
	walFrameHeader = 8

	walFrameEntry  = 1
	walFrameIndex  = 2
	walFrameCommit = 3
)

// walCommit is a commit frame.
type walCommit struct {
	start, end int // of the bytes under the checksum; the frame follows them
	entries    uint64
	crc        uint32
}

// committedEnd returns where the last completely written batch of the segment ends, and the
// number of entries up to there. It follows raft-wal's rules: a batch followed by anything
// was acknowledged and is not checked; the newest one counts if its checksum is correct.
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

// clearTorn overwrites with zeroes what a crash has left of the last write to the segment
// at path, which begins with entry base, unless it was written completely. raft-wal v0.4.2
// does not detect an incomplete end of a segment: it takes the segment for sealed, with an
// arbitrary index. Nor would it notice if a later, shorter write left some of it.
//
// A segment that does not reach the entry tail is left alone: it is damaged, not torn.
// Errors: os.ErrNotExist; those of reading and writing.
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

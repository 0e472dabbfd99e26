package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/claimq/claimq/fsm/record"
)

// Feed reads a snapshot that arrives in pieces, cut anywhere. It holds less than one chunk
// of it.
type Feed struct {
	in      chunkReader
	rest    bytes.Buffer // received but not read yet
	started bool         // magic and version have been read
	records snapshotReader
}

// NewFeed returns a feed that hands the records to build.
func NewFeed(build Builder) *Feed {
	f := &Feed{records: snapshotReader{build: build}}
	f.in.r = &f.rest
	return f
}

// Take adds the next bytes of the snapshot and reads all complete chunks. Errors: those of Read,
// except from Finish.
func (f *Feed) Take(data []byte) error {
	_, _ = f.rest.Write(data) // a buffer takes everything
	if !f.started && f.rest.Len() > len(Magic) {
		if err := f.in.magic(); err != nil {
			return err
		}
		f.started = true
	}
	for f.started && !f.records.ended && hasChunk(f.rest.Bytes()) {
		kind, payload, err := f.in.next()
		if err != nil {
			return err
		}
		if err := f.records.chunk(kind, payload); err != nil {
			return err
		}
	}
	return nil
}

// Finish calls the builder's Finish. Errors: record.ErrCorrupt, wrapped, if the snapshot is
// incomplete; those of the builder.
func (f *Feed) Finish() error {
	if !f.records.ended || f.rest.Len() > 0 {
		return fmt.Errorf("%w: it is not whole", record.ErrCorrupt)
	}
	return f.records.build.Finish(f.records.few)
}

// hasChunk reports whether b begins with a complete chunk, or with enough of an invalid one
// to reject it.
func hasChunk(b []byte) bool {
	if len(b) < ChunkHead {
		return false
	}
	length := binary.LittleEndian.Uint32(b)
	return length > ChunkMax || len(b) >= ChunkHead+int(length)+ChunkTail
}

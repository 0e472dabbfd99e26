package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/claimq/claimq/fsm/wire"
)

// Feed reads a snapshot that comes in pieces, which may be cut anywhere. It holds less
// than one chunk of it.
type Feed struct {
	in      chunkReader
	rest    bytes.Buffer // what has come and was not read
	started bool         // magic and version were read
	records snapshotReader
}

// NewFeed returns one that hands the records to build.
func NewFeed(build Builder) *Feed {
	f := &Feed{records: snapshotReader{build: build}}
	f.in.r = &f.rest
	return f
}

// Take reads the next bytes of the snapshot, as far as its chunks are whole.
func (f *Feed) Take(data []byte) error {
	_, _ = f.rest.Write(data) // it takes everything
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

// Finish lets the builder finish. Errors: ErrCorrupt, wrapped, if the snapshot is not
// whole; the builder's.
func (f *Feed) Finish() error {
	if !f.records.ended || f.rest.Len() > 0 {
		return fmt.Errorf("%w: it is not whole", wire.ErrCorrupt)
	}
	return f.records.build.Finish(f.records.few)
}

// hasChunk reports whether a whole chunk is at the start of b, or so much of what is
// none that it can be told.
func hasChunk(b []byte) bool {
	if len(b) < ChunkHead {
		return false
	}
	length := binary.LittleEndian.Uint32(b)
	return length > ChunkMax || len(b) >= ChunkHead+int(length)+ChunkTail
}

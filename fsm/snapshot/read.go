package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/claimq/claimq/fsm/record"
)

// Read hands the records of a snapshot to build. It reads r to its end and verifies all
// checksums, counts, orders and the state hash before it calls build.Finish. It holds one
// chunk in memory.
//
// Errors, wrapped with the place: record.ErrCorrupt if the bytes are not as WriteTo wrote them,
// even if only cut off; record.ErrUnknown if a newer version wrote them; record.ErrDevelopment;
// errors of r and of build.
func Read(r io.Reader, build Builder) error {
	in := &chunkReader{r: r}
	records := snapshotReader{build: build}
	err := records.read(in)
	if err == nil {
		err = build.Finish(records.few)
	}
	if err != nil {
		return fmt.Errorf("chunk %d at byte %d: %w", in.number, in.start, err)
	}
	return nil
}

// Weigh verifies a snapshot as Read does, without building a state, and estimates the
// state's memory. Errors: those of Read.
func Weigh(r io.Reader) (bytes int64, err error) {
	var scale stateScale
	err = Read(r, &scale)
	return scale.bytes(), err
}

// chunkReader reads chunks and verifies their checksums.
type chunkReader struct {
	r      io.Reader
	number int   // of the current chunk, from 1; 0 = magic and version
	start  int64 // offset of the current chunk
	offset int64 // offset of the next byte
	buf    bytes.Buffer
}

// magic reads magic and version.
func (c *chunkReader) magic() error {
	var b [len(Magic) + 1]byte
	if err := c.fill(b[:]); err != nil {
		return err
	}
	if string(b[:len(Magic)]) != Magic {
		return fmt.Errorf("%w: it is no snapshot", record.ErrCorrupt)
	}
	return record.CheckFormat("a snapshot", b[len(Magic)])
}

// next reads a chunk. The payload is valid until the next call. The buffer grows with the
// data that arrives, not with the claimed length.
func (c *chunkReader) next() (record.Kind, []byte, error) {
	c.number, c.start = c.number+1, c.offset
	var head [ChunkHead]byte
	var tail [ChunkTail]byte
	if err := c.fill(head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > ChunkMax {
		return 0, nil, fmt.Errorf("%w: length %d is above %d", record.ErrCorrupt, length, ChunkMax)
	}
	c.buf.Reset()
	n, err := io.CopyN(&c.buf, c.r, int64(length))
	c.offset += n
	if err != nil {
		return 0, nil, c.cutOff(err)
	}
	if err := c.fill(tail[:]); err != nil {
		return 0, nil, err
	}
	if ChunkSum(head[:], c.buf.Bytes()) != binary.LittleEndian.Uint32(tail[:]) {
		return 0, nil, fmt.Errorf("%w: the checksum differs", record.ErrCorrupt)
	}
	return record.Kind(head[ChunkHead-1]), c.buf.Bytes(), nil
}

// end checks that nothing follows.
func (c *chunkReader) end() error {
	switch _, err := io.ReadFull(c.r, make([]byte, 1)); {
	case err == nil:
		return fmt.Errorf("%w: bytes behind the end", record.ErrCorrupt)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// fill reads len(b) bytes.
func (c *chunkReader) fill(b []byte) error {
	n, err := io.ReadFull(c.r, b)
	c.offset += int64(n)
	return c.cutOff(err)
}

// cutOff turns the end of the input into record.ErrCorrupt.
func (c *chunkReader) cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: cut off at byte %d", record.ErrCorrupt, c.offset)
	}
	return err
}

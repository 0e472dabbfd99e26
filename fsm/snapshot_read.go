package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/claimq/claimq/fsm/record"
)

// ReadSnapshot builds the state that a snapshot holds. It reads r to its end
// and verifies every checksum, count and order and the state hash before there
// is a machine; beside the machine it holds one chunk in memory.
//
// Errors, wrapped with where: ErrCorrupt when the bytes are not what WriteTo
// wrote, a snapshot that is cut off included; ErrUnknownCommand when a newer
// version wrote it; r's own.
func ReadSnapshot(r io.Reader) (*Machine, error) {
	in := &chunkReader{r: r}
	m, err := readSnapshot(in)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: chunk %d at byte %d: %w", in.number, in.start, err)
	}
	return m, nil
}

// VerifySnapshot verifies a snapshot as ReadSnapshot does, but for what records
// say of each other: whether a key or a token is given twice, a step has its
// parent, an event leads to the one before. It returns about how many bytes of
// memory the state takes, as Machine.Bytes estimates them. It holds one chunk in
// memory, not the state. Errors: ReadSnapshot's.
func VerifySnapshot(r io.Reader) (bytes int64, err error) {
	in := &chunkReader{r: r}
	scale, few := &stateScale{}, New()
	records := snapshotReader{keep: scale, m: few}
	if err := records.read(in); err != nil {
		return 0, fmt.Errorf("verify snapshot: chunk %d at byte %d: %w", in.number, in.start, err)
	}
	return scale.bytes(few), nil
}

func readSnapshot(in *chunkReader) (*Machine, error) {
	b := &stateBuilder{m: New()}
	records := snapshotReader{keep: b, m: b.m}
	if err := records.read(in); err != nil {
		return nil, err
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	return b.m, nil
}

// chunkReader reads chunks and verifies their checksums.
type chunkReader struct {
	r      io.Reader
	number int   // of the current chunk, from 1; 0 = magic and version
	start  int64 // offset of the current chunk
	offset int64 // of what comes next
	buf    bytes.Buffer
}

// magic reads magic and version.
func (c *chunkReader) magic() error {
	var b [len(snapshotMagic) + 1]byte
	if err := c.fill(b[:]); err != nil {
		return err
	}
	if string(b[:len(snapshotMagic)]) != snapshotMagic {
		return fmt.Errorf("%w: it is no snapshot", ErrCorrupt)
	}
	if v := b[len(snapshotMagic)]; v != snapshotVersion {
		return fmt.Errorf("%w: snapshot version %d", ErrUnknownCommand, v)
	}
	return nil
}

// next reads a chunk. The payload is valid until the next call. Memory grows
// with what is there, not with what the length claims.
func (c *chunkReader) next() (record.Kind, []byte, error) {
	c.number, c.start = c.number+1, c.offset
	var head [chunkHead]byte
	var tail [chunkTail]byte
	if err := c.fill(head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > chunkMax {
		return 0, nil, fmt.Errorf("%w: length %d is above %d", ErrCorrupt, length, chunkMax)
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
	if chunkSum(head[:], c.buf.Bytes()) != binary.LittleEndian.Uint32(tail[:]) {
		return 0, nil, fmt.Errorf("%w: the checksum differs", ErrCorrupt)
	}
	return record.Kind(head[chunkHead-1]), c.buf.Bytes(), nil
}

// end makes sure that nothing follows.
func (c *chunkReader) end() error {
	switch _, err := io.ReadFull(c.r, make([]byte, 1)); {
	case err == nil:
		return fmt.Errorf("%w: bytes behind the end", ErrCorrupt)
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

// cutOff turns the end of the input into ErrCorrupt.
func (c *chunkReader) cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: cut off at byte %d", ErrCorrupt, c.offset)
	}
	return err
}

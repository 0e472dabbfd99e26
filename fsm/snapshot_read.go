package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

func readSnapshot(in *chunkReader) (*Machine, error) {
	if err := in.magic(); err != nil {
		return nil, err
	}
	b := snapshotBuilder{m: New()}
	for !b.ended {
		kind, payload, err := in.next()
		if err != nil {
			return nil, err
		}
		if err := b.chunk(kind, payload); err != nil {
			return nil, err
		}
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	if err := b.m.rebuild(); err != nil {
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
func (c *chunkReader) next() (recordKind, []byte, error) {
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
	return recordKind(head[chunkHead-1]), c.buf.Bytes(), nil
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

// snapshotBuilder fills a machine with the records of a snapshot, in the one
// order that they have.
type snapshotBuilder struct {
	m     *Machine
	want  recordCounts // as the header says
	hash  stateHash
	names interner
	last  recordKind // 0 before the header
	// lastTask, lastRequest and lastGone are the highest ids and sequence number
	// yet.
	lastTask, lastRequest, lastGone uint64
	ended                           bool
}

// chunk takes the records of a chunk.
func (b *snapshotBuilder) chunk(kind recordKind, payload []byte) error {
	if len(payload) == 0 {
		return fmt.Errorf("%w: it is empty", ErrCorrupt)
	}
	for n := 1; len(payload) > 0; n++ {
		size, skip := consumeVarint(payload)
		if skip == 0 || size > uint64(len(payload)-skip) {
			return fmt.Errorf("%w: record %d: bad size", ErrCorrupt, n)
		}
		record := payload[skip : skip+int(size)]
		payload = payload[skip+int(size):]
		if err := b.record(kind, record); err != nil {
			return fmt.Errorf("record %d (%v): %w", n, kind, err)
		}
	}
	return nil
}

// record takes one record. Nothing of it is kept without being copied.
func (b *snapshotBuilder) record(kind recordKind, record []byte) error {
	if b.ended || kind < b.last || (b.last == 0) != (kind == recordHeader) {
		return fmt.Errorf("%w: it is out of order, behind a %v", ErrCorrupt, b.last)
	}
	b.last = kind
	r := fieldReader{rest: record}
	var err error
	switch kind {
	case recordHeader:
		err = b.header(&r)
	case recordTask:
		err = b.task(&r)
	case recordRequest:
		err = b.request(&r)
	case recordNode:
		err = b.node(&r)
	case recordType:
		err = b.taskType(&r)
	case recordGone:
		err = b.gone(&r)
	case recordTrail:
		err = b.trail(&r)
	case recordSchedule:
		err = b.schedule(&r)
	case recordEnd:
		return b.end(&r)
	default:
		return fmt.Errorf("%w: it is unknown", ErrUnknownCommand)
	}
	b.hash.add(kind, record)
	return err
}

func (b *snapshotBuilder) header(r *fieldReader) error {
	b.m.header, b.want = decodeHeaderRecord(r)
	h := &b.m.header
	switch {
	case r.err != nil:
		return r.err
	case h.Level > FeatureLevel:
		return fmt.Errorf("%w: feature level %d, this one knows %d", ErrUnknownCommand, h.Level, FeatureLevel)
	case h.NextID == 0 || h.NextToken == 0 || h.NextRequest == 0:
		return fmt.Errorf("%w: a counter is missing", ErrCorrupt)
	}
	return nil
}

func (b *snapshotBuilder) task(r *fieldReader) error {
	t := decodeTaskRecord(r, &b.names)
	h := &b.m.header
	switch {
	case r.err != nil:
		return r.err
	case t.ID <= b.lastTask || t.ID >= h.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", ErrCorrupt, t.ID, b.lastTask, h.NextID)
	case t.Token >= h.NextToken:
		return fmt.Errorf("%w: task %d: token %d is not below %d", ErrCorrupt, t.ID, t.Token, h.NextToken)
	case t.Status == 0:
		return fmt.Errorf("%w: task %d has no status", ErrCorrupt, t.ID)
	}
	if problem := t.stepsProblem(h); problem != "" {
		return fmt.Errorf("%w: task %d: %s", ErrCorrupt, t.ID, problem)
	}
	b.lastTask = t.ID
	b.m.tasks.put(t.ID, t)
	b.m.tasks.rest(t.ID)
	return nil
}

func (b *snapshotBuilder) request(r *fieldReader) error {
	seq, q := decodeRequestRecord(r, &b.names)
	switch {
	case r.err != nil:
		return r.err
	case seq <= b.lastRequest || seq >= b.m.header.NextRequest:
		return fmt.Errorf("%w: number %d between %d and %d", ErrCorrupt, seq, b.lastRequest, b.m.header.NextRequest)
	}
	b.lastRequest = seq
	b.m.requests.put(seq, q)
	return nil
}

func (b *snapshotBuilder) node(r *fieldReader) error {
	n := decodeNodeRecord(r)
	if r.err != nil {
		return r.err
	}
	if all := b.m.nodes; len(all) > 0 && n.UUID <= all[len(all)-1].UUID {
		return fmt.Errorf("%w: node %q behind %q", ErrCorrupt, n.UUID, all[len(all)-1].UUID)
	}
	b.m.nodes = append(b.m.nodes, n)
	return nil
}

func (b *snapshotBuilder) taskType(r *fieldReader) error {
	t := decodeTypeRecord(r, &b.names)
	if r.err != nil {
		return r.err
	}
	all := b.m.settings
	switch {
	case t.Name == "":
		return fmt.Errorf("%w: a task type without a name", ErrCorrupt)
	case len(all) == typeRecordsMax:
		return fmt.Errorf("%w: settings of more than %d task types", ErrCorrupt, typeRecordsMax)
	case len(all) > 0 && t.Name <= all[len(all)-1].Name:
		return fmt.Errorf("%w: task type %q behind %q", ErrCorrupt, t.Name, all[len(all)-1].Name)
	}
	b.m.settings = append(b.m.settings, t)
	return nil
}

func (b *snapshotBuilder) gone(r *fieldReader) error {
	id, g := decodeGoneRecord(r, &b.names)
	switch {
	case r.err != nil:
		return r.err
	case id <= b.lastGone || id >= b.m.header.NextID:
		return fmt.Errorf("%w: id %d between %d and %d", ErrCorrupt, id, b.lastGone, b.m.header.NextID)
	case !g.Status.Ended():
		return fmt.Errorf("%w: removed task %d had not ended", ErrCorrupt, id)
	case g.Token >= b.m.header.NextToken:
		return fmt.Errorf("%w: removed task %d: token %d is not below %d", ErrCorrupt, id, g.Token, b.m.header.NextToken)
	case b.m.tasks.get(id) != nil:
		return fmt.Errorf("%w: removed task %d is there", ErrCorrupt, id)
	}
	b.lastGone = id
	b.m.gone.put(id, g)
	return nil
}

func (b *snapshotBuilder) end(r *fieldReader) error {
	counts, hash := decodeEndRecord(r)
	got := recordCounts{
		tasks:     uint64(b.m.tasks.len()),
		requests:  uint64(b.m.requests.len()),
		nodes:     uint64(len(b.m.nodes)),
		types:     uint64(len(b.m.settings)),
		gone:      uint64(b.m.gone.len()),
		trail:     uint64(len(b.m.trail.chunks)),
		schedules: uint64(len(b.m.schedules)),
	}
	switch {
	case r.err != nil:
		return r.err
	case got != b.want || got != counts:
		return fmt.Errorf("%w: %d tasks, %d claim requests, %d nodes, %d task types, %d removed tasks, %d parts of the trail and %d schedules differ from their counts",
			ErrCorrupt, got.tasks, got.requests, got.nodes, got.types, got.gone, got.trail, got.schedules)
	case hash != b.hash.sum():
		return fmt.Errorf("%w: the state hash differs", ErrCorrupt)
	}
	b.ended = true
	return nil
}

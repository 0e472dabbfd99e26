package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Snapshot is a captured state. One goroutine at a time may use it, also during the
// machine's Apply.
type Snapshot struct {
	of       Parts
	released atomic.Bool
}

// Parts are the contents of a snapshot. Slices, and what they point to, must never be
// changed.
type Parts struct {
	Header    record.Header
	Tasks     record.View[record.Task]
	Requests  record.View[record.Request]
	Nodes     []record.NodeRecord // sorted by UUID
	Types     []*record.TaskType  // sorted by name
	Gone      record.View[record.Gone]
	Trail     event.View
	Schedules []*record.ScheduleView // sorted by name
	Turns     record.View[record.Turn]
	Shares    record.View[record.Share]
	Histories []record.History // in the order in which they began
}

// Of returns the snapshot of the parts. Releasing it releases their views.
func Of(parts Parts) *Snapshot { return &Snapshot{of: parts} }

// Index returns the index of the captured state.
func (s *Snapshot) Index() uint64 { return s.of.Header.Index }

// Release ends the capture. It may be called from any goroutine and more than once.
// Afterwards only Index may be called.
func (s *Snapshot) Release() {
	if s.released.CompareAndSwap(false, true) {
		s.of.Tasks.Release()
		s.of.Requests.Release()
		s.of.Gone.Release()
		s.of.Turns.Release()
		s.of.Shares.Release()
	}
}

// A snapshot, as docs/formats.md draws it: a magic and a version, then chunks.
//
//	0                   8         9
//	+-------------------+---------+---------+---------+---------+
//	| "CLAIMQSN"        | version | chunk   | chunk   | ...     |
//	+-------------------+---------+---------+---------+---------+
//
//	0         4         5                             5+length  9+length
//	+---------+---------+-----------------------------+---------+
//	| length  | kind    | payload, length bytes       | CRC32C  |
//	+---------+---------+-----------------------------+---------+
//
// Length and CRC are little-endian; the CRC is of everything before it in its
// chunk. The payload is one or more records of the kind, each a varint of its
// size and a message of record.go. The header comes first, then tasks by id,
// claim requests by sequence number, nodes by UUID, task types with settings by
// name, removed tasks by id, the trail in its order, schedules by name, turns by
// number, shares by number, histories in the order in which they began, and the end.
const (
	Magic = "CLAIMQSN"

	ChunkHead = 5 // length and kind
	ChunkTail = 4 // CRC

	// ChunkTarget bounds the payload of a chunk with more than one record.
	ChunkTarget = 1 << 20
	// ChunkMax bounds the payload of any chunk: several times the size of a task whose
	// parameters and result each fill a log entry.
	ChunkMax = 64 << 20
)

// WriteTo writes the snapshot in the format of docs/formats.md. The same state gives the
// same bytes on every node. In addition to the capture it holds one chunk in memory. It
// wraps errors of w.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	cw := chunkWriter{w: w}
	cw.write(append([]byte(Magic), record.Format))
	var hash StateHash
	for kind, packed := range s.Records() {
		hash.Add(kind, packed)
		if cw.add(kind, packed); cw.err != nil {
			break
		}
	}
	cw.add(record.KindEnd, record.AppendEnd(nil, s.counts(), hash.Sum()))
	cw.flush()
	if cw.err != nil {
		return cw.written, fmt.Errorf("write snapshot: %w", cw.err)
	}
	return cw.written, nil
}

// Hash returns the state hash, which is equal for equal states on all nodes. It reads the
// whole capture, about 0.5 µs a record; a Hasher reads less.
func (s *Snapshot) Hash() [16]byte {
	hash, _ := NewHasher(nil).hash(s, noTurn)
	return hash
}

func (s *Snapshot) counts() record.Counts {
	return record.Counts{
		Tasks:     uint64(s.of.Tasks.Len()),
		Requests:  uint64(s.of.Requests.Len()),
		Nodes:     uint64(len(s.of.Nodes)),
		Types:     uint64(len(s.of.Types)),
		Gone:      uint64(s.of.Gone.Len()),
		Trail:     uint64(s.of.Trail.Len()),
		Schedules: uint64(len(s.of.Schedules)),
		Turns:     uint64(s.of.Turns.Len()),
		Shares:    uint64(s.of.Shares.Len()),
		Histories: uint64(len(s.of.Histories)),
	}
}

// Records yields the state's records in the order of the file. A record is valid until the
// next one.
func (s *Snapshot) Records() iter.Seq2[record.Kind, []byte] {
	return func(yield func(record.Kind, []byte) bool) {
		b := record.AppendHeader(nil, &s.of.Header, &s.of.Trail.Header, s.counts())
		if !yield(record.KindHeader, b) {
			return
		}
		for t := range s.of.Tasks.All() {
			packed := t.Packed
			if t.Record != nil {
				b = record.AppendTask(b[:0], t.Record)
				packed = b
			}
			if !yield(record.KindTask, packed) {
				return
			}
		}
		for q := range s.of.Requests.All() {
			packed := q.Packed
			if q.Record != nil {
				b = record.AppendRequest(b[:0], q.ID, q.Record)
				packed = b
			}
			if !yield(record.KindRequest, packed) {
				return
			}
		}
		for _, n := range s.of.Nodes {
			if b = record.AppendNode(b[:0], n); !yield(record.KindNode, b) {
				return
			}
		}
		for _, t := range s.of.Types {
			if b = record.AppendType(b[:0], t); !yield(record.KindType, b) {
				return
			}
		}
		for g := range s.of.Gone.All() {
			packed := g.Packed
			if g.Record != nil {
				b = record.AppendGone(b[:0], g.ID, g.Record)
				packed = b
			}
			if !yield(record.KindGone, packed) {
				return
			}
		}
		if !s.of.Trail.Records(b, func(packed []byte) bool { return yield(record.KindTrail, packed) }) {
			return
		}
		for _, v := range s.of.Schedules {
			if b = record.AppendSchedule(b[:0], v); !yield(record.KindSchedule, b) {
				return
			}
		}
		for t := range s.of.Turns.All() { // never packed
			if b = record.AppendTurn(b[:0], t.ID, t.Record); !yield(record.KindTurn, b) {
				return
			}
		}
		for of := range s.of.Shares.All() { // never packed
			if b = record.AppendShare(b[:0], of.ID, of.Record); !yield(record.KindShare, b) {
				return
			}
		}
		for i := range s.of.Histories {
			if b = record.AppendHistory(b[:0], &s.of.Histories[i]); !yield(record.KindHistory, b) {
				return
			}
		}
	}
}

// chunkWriter packs records into chunks. It does nothing after an error.
type chunkWriter struct {
	w       io.Writer
	written int64
	err     error
	kind    record.Kind
	chunk   []byte // head and payload of the open chunk, or empty
}

// add adds the record to the open chunk, or starts a new one if the kind differs or the
// chunk is full.
func (c *chunkWriter) add(kind record.Kind, packed []byte) {
	if c.err != nil {
		return
	}
	size := protowire.SizeBytes(len(packed))
	if size > ChunkMax {
		c.err = fmt.Errorf("a %v of %d bytes, at most %d can be read back", kind, size, ChunkMax)
		return
	}
	if kind != c.kind || len(c.chunk)+size > ChunkHead+ChunkTarget {
		c.flush()
	}
	if len(c.chunk) == 0 {
		c.kind = kind
		c.chunk = append(c.chunk, 0, 0, 0, 0, byte(kind))
	}
	c.chunk = protowire.AppendBytes(c.chunk, packed)
}

// flush writes the open chunk, if there is one.
func (c *chunkWriter) flush() {
	if len(c.chunk) == 0 {
		return
	}
	binary.LittleEndian.PutUint32(c.chunk, uint32(len(c.chunk)-ChunkHead))
	c.chunk = binary.LittleEndian.AppendUint32(c.chunk, ChunkSum(c.chunk))
	c.write(c.chunk)
	c.chunk = c.chunk[:0]
}

func (c *chunkWriter) write(b []byte) {
	if c.err != nil {
		return
	}
	var n int
	n, c.err = c.w.Write(b)
	c.written += int64(n)
}

// ChunkSum returns the CRC32C of the parts of a chunk before the CRC.
func ChunkSum(parts ...[]byte) uint32 {
	table, sum := crc32.MakeTable(crc32.Castagnoli), uint32(0)
	for _, b := range parts {
		sum = crc32.Update(sum, table, b)
	}
	return sum
}

package trail

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

const (
	// PageMax is the number of events read under the read lock at once.
	PageMax = 250
	// packetBytes is the size after which a packet ends; it exceeds that by one page at most.
	packetBytes = 256 << 10
	// eventRoom is the room for an event; most are smaller.
	eventRoom = 200
	// ChunkHead is the room for a chunk's length before the bytes of a packet, chunkTail the length of the end of a
	// chunk.
	ChunkHead = 10
	chunkTail = 2
)

// Packet is a part of the trail, (after, next], encoded once for all streams. It does not change once it is finished.
type Packet struct {
	After, Next event.Pos
	Events      []event.Event
	// ends has the offset in chunk where each event ends. The first one begins at ChunkHead.
	ends []int
	// chunk holds the events as one chunk of an HTTP body; it begins at start.
	chunk []byte
	start int
}

func (p *Packet) add(e *event.Event) {
	p.Events = append(p.Events, *e)
	p.chunk = appendSent(p.chunk, e)
	p.ends = append(p.ends, len(p.chunk))
}

// appendSent appends an event as streams send it.
func appendSent(b []byte, e *event.Event) []byte {
	b = AppendEvent(append(b, "data: "...), e)
	b = AppendPlace(append(b, "\nid: "...), e.Pos)
	return append(b, "\n\n"...)
}

// Whole returns all events as one chunk, which may be empty.
func (p *Packet) Whole() []byte {
	if len(p.Events) == 0 {
		return nil
	}
	return p.chunk[p.start:]
}

// Part appends to b the events after a place that q selects; hidden ones are reduced.
func (p *Packet) Part(b []byte, after event.Pos, q *event.Query, hidden func(e *event.Event) bool) []byte {
	from := ChunkHead
	for i := range p.Events {
		switch e := &p.Events[i]; {
		case !After(e.Pos, after) || !selects(q, e):
		case hidden(e):
			if q.WorkerID != "" {
				break // it matched by a hidden part
			}
			bare := e.Bare()
			b = appendSent(b, &bare)
		default:
			b = append(b, p.chunk[from:p.ends[i]]...)
		}
		from = p.ends[i]
	}
	return b
}

// bytes estimates the memory of the packet.
func (p *Packet) bytes() int {
	const eventBytes = 128
	return cap(p.chunk) + len(p.Events)*eventBytes
}

// BeginChunk begins a chunk in b, overwriting its bytes.
func BeginChunk(b []byte) []byte { return append(b[:0], make([]byte, ChunkHead)...) }

// EndChunk ends a chunk, which begins at start. Without content the result is empty, because an empty chunk would end
// the body.
func EndChunk(b []byte) (chunk []byte, start int) {
	n := len(b) - ChunkHead
	if n == 0 {
		return b, len(b)
	}
	var size [ChunkHead]byte
	head := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
	start = ChunkHead - len(head)
	copy(b[start:], head)
	return append(b, "\r\n"...), start
}

// Content returns the content of a chunk that EndChunk has ended.
func Content(chunk []byte) []byte {
	at := bytes.IndexByte(chunk, '\n') + 1
	return chunk[at : len(chunk)-chunkTail]
}

// Found is the result of reading the trail.
type Found struct {
	Packet *Packet
	more   bool      // there are events after Packet.Next
	Gone   bool      // the next events are no longer kept
	Oldest event.Pos // if Gone: the oldest kept place
}

// Source is the part of package api's Node that is needed to read the trail.
type Source interface {
	ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)
	WaitEvent(ctx context.Context, after event.Pos) error
	CatchUp(ctx context.Context) error
}

// IsAhead reports whether the cluster's trail has not reached the place, and returns where the trail is. A node that
// is behind first waits until it has caught up, because the place may come from another node.
func IsAhead(ctx context.Context, node Source, place event.Pos) (ahead bool, at event.Pos, err error) {
	look := func() error {
		_, err := node.ReadStale(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) { at = m.Place() })
		return err
	}
	if err := look(); err != nil || !After(place, at) {
		return false, at, err
	}
	if err := node.CatchUp(ctx); err != nil {
		return false, at, err
	}
	err = look()
	return err == nil && After(place, at), at, err
}

// Read reads the events after q.After, about packetBytes at most, in pages that hold the read lock only briefly.
func Read(ctx context.Context, node Source, q event.Query) (Found, error) {
	p := &Packet{After: q.After, Next: q.After, chunk: BeginChunk(nil)}
	read := Found{Packet: p}
	q.Limit = PageMax
	for {
		var page event.Page
		_, err := node.ReadStale(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) { page = m.Events(q) })
		if err != nil {
			return read, err
		}
		if page.Gone {
			read.Gone, read.Oldest = len(p.Events) == 0, page.Oldest
			break
		}
		n := len(page.Events)
		p.Events, p.ends, p.chunk = slices.Grow(p.Events, n), slices.Grow(p.ends, n), slices.Grow(p.chunk, n*eventRoom+chunkTail)
		for i := range page.Events {
			p.add(&page.Events[i])
		}
		q.After, p.Next, read.more = page.Next, page.Next, page.More
		if !page.More || len(p.chunk) >= packetBytes {
			break
		}
	}
	p.chunk, p.start = EndChunk(p.chunk)
	return read, nil
}

// LookInterval is the least time between two reads of the trail's end by the same reader; events in between form one
// packet.
const LookInterval = 50 * time.Millisecond

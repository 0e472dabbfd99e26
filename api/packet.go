package api

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
)

const (
	// eventPage is how many events are read under the read lock at once.
	eventPage = 250
	// packetBytes ends a packet: it has at most one page more.
	packetBytes = 256 << 10
	// eventRoom is the bytes that most events take at most.
	eventRoom = 200
	// chunkHead is the room for a chunk's length before the bytes of a packet,
	// chunkTail what follows them.
	chunkHead = 10
	chunkTail = 2
)

// packet is a part of the trail, (after, next], encoded for streams once,
// however many send it. It is not changed once it is whole.
type packet struct {
	after, next fsm.EventPos
	events      []fsm.Event
	// ends has where each event ends in chunk. The first one begins at
	// chunkHead.
	ends []int
	// chunk is the events as one chunk of an HTTP body; it begins at start.
	chunk []byte
	start int

	zipOnce sync.Once
	zipped  zipped // once somebody has asked for it
}

// add appends an event.
func (p *packet) add(e *fsm.Event) {
	p.events = append(p.events, *e)
	p.chunk = append(p.chunk, "data: "...)
	p.chunk = appendEvent(p.chunk, e)
	p.chunk = append(p.chunk, "\nid: "...)
	p.chunk = appendPlace(p.chunk, e.EventPos)
	p.chunk = append(p.chunk, "\n\n"...)
	p.ends = append(p.ends, len(p.chunk))
}

// whole returns all events as a chunk, empty if there are none.
func (p *packet) whole() []byte {
	if len(p.events) == 0 {
		return nil
	}
	return p.chunk[p.start:]
}

// zip returns the events, of which there are some, compressed.
func (p *packet) zip() *zipped {
	p.zipOnce.Do(func() { p.zipped = zip(p.chunk[chunkHead : len(p.chunk)-chunkTail]) })
	return &p.zipped
}

// part appends the events behind a place that q selects to b.
func (p *packet) part(b []byte, after fsm.EventPos, q *fsm.EventQuery) []byte {
	from := chunkHead
	for i := range p.events {
		if e := &p.events[i]; behind(e.EventPos, after) && selects(q, e) {
			b = append(b, p.chunk[from:p.ends[i]]...)
		}
		from = p.ends[i]
	}
	return b
}

// bytes is an estimate of the memory that the packet holds, compressed too.
func (p *packet) bytes() int {
	const eventBytes = 128
	return cap(p.chunk)*5/4 + len(p.events)*eventBytes
}

// beginChunk begins a chunk in b, whose bytes are overwritten.
func beginChunk(b []byte) []byte { return append(b[:0], make([]byte, chunkHead)...) }

// endChunk ends a chunk. It begins at start; one of nothing is empty, for an
// empty chunk would end the body.
func endChunk(b []byte) (chunk []byte, start int) {
	n := len(b) - chunkHead
	if n == 0 {
		return b, len(b)
	}
	var size [chunkHead]byte
	head := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
	start = chunkHead - len(head)
	copy(b[start:], head)
	return append(b, "\r\n"...), start
}

// trailRead is what a look at the trail found.
type trailRead struct {
	packet *packet
	more   bool         // there is more behind packet.next
	gone   bool         // what comes next is kept no more
	oldest fsm.EventPos // of gone: what is kept
}

// readTrail reads on behind q.After, about packetBytes at most, in pages that
// are short enough for the read lock.
func (s *Server) readTrail(ctx context.Context, q fsm.EventQuery) (trailRead, error) {
	p := &packet{after: q.After, next: q.After, chunk: beginChunk(nil)}
	read := trailRead{packet: p}
	q.Limit = eventPage
	for {
		var page fsm.EventPage
		_, err := s.node.ReadStale(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) { page = m.Events(q) })
		if err != nil {
			return read, err
		}
		if page.Gone {
			read.gone, read.oldest = len(p.events) == 0, page.Oldest
			break
		}
		n := len(page.Events)
		p.events, p.ends, p.chunk = slices.Grow(p.events, n), slices.Grow(p.ends, n), slices.Grow(p.chunk, n*eventRoom+chunkTail)
		for i := range page.Events {
			p.add(&page.Events[i])
		}
		q.After, p.next, read.more = page.Next, page.Next, page.More
		if !page.More || len(p.chunk) >= packetBytes {
			break
		}
	}
	p.chunk, p.start = endChunk(p.chunk)
	return read, nil
}

// lookInterval is the least time between two looks of one reader of the trail
// that has caught up: what happens meanwhile is one packet.
const lookInterval = 50 * time.Millisecond

package trail

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

const (
	// PageMax is how many events are read under the read lock at once.
	PageMax = 250
	// packetBytes ends a packet: it has at most one page more.
	packetBytes = 256 << 10
	// eventRoom is the bytes that most events take at most.
	eventRoom = 200
	// ChunkHead is the room for a chunk's length before the bytes of a packet,
	// chunkTail what follows them.
	ChunkHead = 10
	chunkTail = 2
)

// Packet is a part of the trail, (after, next], encoded for streams once,
// however many send it. It is not changed once it is whole.
type Packet struct {
	After, Next event.Pos
	Events      []event.Event
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
func (p *Packet) add(e *event.Event) {
	p.Events = append(p.Events, *e)
	p.chunk = appendSent(p.chunk, e)
	p.ends = append(p.ends, len(p.chunk))
}

// appendSent appends an event as a stream sends it.
func appendSent(b []byte, e *event.Event) []byte {
	b = AppendEvent(append(b, "data: "...), e)
	b = AppendPlace(append(b, "\nid: "...), e.Pos)
	return append(b, "\n\n"...)
}

// Whole returns all events as a chunk, empty if there are none.
func (p *Packet) Whole() []byte {
	if len(p.Events) == 0 {
		return nil
	}
	return p.chunk[p.start:]
}

// Zip returns the events, of which there are some, compressed.
func (p *Packet) Zip() *zipped {
	p.zipOnce.Do(func() { p.zipped = Zip(p.chunk[ChunkHead : len(p.chunk)-chunkTail]) })
	return &p.zipped
}

// Part appends the events behind a place that q selects to b, those that are hidden bare.
func (p *Packet) Part(b []byte, after event.Pos, q *event.Query, hidden func(e *event.Event) bool) []byte {
	from := ChunkHead
	for i := range p.Events {
		switch e := &p.Events[i]; {
		case !Behind(e.Pos, after) || !selects(q, e):
		case hidden(e):
			if q.WorkerID != "" {
				break // a part of what is hidden
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

// bytes is an estimate of the memory that the packet holds, compressed too.
func (p *Packet) bytes() int {
	const eventBytes = 128
	return cap(p.chunk)*5/4 + len(p.Events)*eventBytes
}

// BeginChunk begins a chunk in b, whose bytes are overwritten.
func BeginChunk(b []byte) []byte { return append(b[:0], make([]byte, ChunkHead)...) }

// EndChunk ends a chunk. It begins at start; one of nothing is empty, for an
// empty chunk would end the body.
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

// Content returns what is in a chunk that EndChunk has ended.
func Content(chunk []byte) []byte {
	at := bytes.IndexByte(chunk, '\n') + 1
	return chunk[at : len(chunk)-chunkTail]
}

// Found is what a look at the trail found.
type Found struct {
	Packet *Packet
	more   bool      // there is more behind packet.next
	Gone   bool      // what comes next is kept no more
	Oldest event.Pos // of gone: what is kept
}

// Source is the node whose trail is read: of package api's Node what is needed here.
type Source interface {
	ReadStale(ctx context.Context, minIndex uint64, fn func(m *fsm.Machine, now fsm.Stamp)) (index uint64, err error)
	WaitEvent(ctx context.Context, after event.Pos) error
	CatchUp(ctx context.Context) error
}

// IsAhead reports whether the place is one that the cluster's trail has not come to, and where
// the trail is then. A node that is behind the others first waits until it is not: a reader may
// come from one of those.
func IsAhead(ctx context.Context, node Source, place event.Pos) (ahead bool, at event.Pos, err error) {
	look := func() error {
		_, err := node.ReadStale(ctx, 0, func(m *fsm.Machine, _ fsm.Stamp) { at = m.Place() })
		return err
	}
	if err := look(); err != nil || !Behind(place, at) {
		return false, at, err
	}
	if err := node.CatchUp(ctx); err != nil {
		return false, at, err
	}
	err = look()
	return err == nil && Behind(place, at), at, err
}

// Read reads on behind q.After, about packetBytes at most, in pages that
// are short enough for the read lock.
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

// LookInterval is the least time between two looks of one reader of the trail
// that has caught up: what happens meanwhile is one packet.
const LookInterval = 50 * time.Millisecond

package fsm

import (
	"slices"
	"sync/atomic"

	"github.com/claimq/claimq/fsm/event"
)

// Bounds of the trail. All but trailTrimMax decide what is in the saved state:
// they are part of the feature level.
const (
	// trailChunkBytes bounds a chunk of the trail.
	trailChunkBytes = 32 << 10
	// trailAgeParts is how many chunks at least share the age that the trail may
	// have: a chunk is not begun anew only when it is full, as events leave by
	// whole chunks.
	trailAgeParts = 8
	// trailTrimMax bounds how many chunks one entry lets go: some milliseconds.
	trailTrimMax = 512

	defaultTrailBytes = 64 << 20
	defaultTrailAgeMS = 24 * 60 * 60 * 1000
)

// trail is the events that are kept, encoded, in chunks without pointers that
// are only added to. Its methods read, but for append, trim, cut, load and index.
type trail struct {
	header trailHeader
	chunks []*trailChunk // the oldest first; only the last is added to
	last   lastEvents    // derived
	// chunkBytes is trailChunkBytes; only tests change it.
	chunkBytes int
}

// trailBounds bounds what is kept.
type trailBounds struct {
	Bytes int64
	AgeMS int64
}

// trailHeader is what is saved of the trail beside its chunks.
type trailHeader struct {
	Bounds trailBounds // zero: the defaults
	Newest event.Pos   // of all events ever
	Gone   event.Pos   // the newest that is kept no more
	// End is where the next event will be, in bytes of all events ever.
	End uint64
}

// trailChunk is a part of the trail.
type trailChunk struct {
	trailBytes
	// Of its newest event; derived.
	newest  event.Pos
	newestT int64
	// sum caches the hash of its record once it is full.
	sum atomic.Pointer[[16]byte]
}

// trailBytes is what is saved of a chunk. Only bytes are added to events, so
// that whoever has a copy of the slice keeps what he saw.
type trailBytes struct {
	start  uint64 // where its first event is, in bytes of all events ever
	base   eventBase
	events []byte
}

// newTrail returns an empty trail.
func newTrail() trail { return trail{last: newLastEvents(), chunkBytes: trailChunkBytes} }

// bytes estimates the memory that the trail takes.
func (t *trail) bytes() int64 {
	return int64(len(t.chunks))*trailChunkBytes + int64(len(t.last.pages))*lastPageBytes
}

// append adds an event, whose place is behind all others and whose time is not before
// theirs; until is when the wait of a Scheduled ends. The next id and token are
// those that the state will give out.
func (t *trail) append(e *event.Event, until int64, nextID, nextToken uint64) {
	c := t.roomyChunk(e, nextID, nextToken)
	at := t.header.End
	before := uint64(0)
	if e.TaskID != 0 {
		if before = t.last.swap(e.TaskID, at+1); before != 0 {
			before = at + 1 - before
		}
	}
	c.events = appendEvent(c.events, &c.base, e, before, until)
	c.newest, c.newestT = e.Pos, e.T
	t.header.End = c.end()
	t.header.Newest = e.Pos
}

// roomyChunk returns a chunk that has room for the event: the last, or a new
// one.
func (t *trail) roomyChunk(e *event.Event, nextID, nextToken uint64) *trailChunk {
	room := roomFor(e)
	if n := len(t.chunks); n > 0 {
		c := t.chunks[n-1]
		if len(c.events)+room <= t.chunkBytes && e.T-c.base.t < t.bounds().AgeMS/trailAgeParts {
			if cap(c.events) < t.chunkBytes { // it was restored
				c.events = append(make([]byte, 0, t.chunkBytes), c.events...)
			}
			return c
		}
	}
	c := &trailChunk{trailBytes: trailBytes{
		start:  t.header.End,
		base:   eventBase{Pos: e.Pos, t: e.T, task: nextID, token: nextToken},
		events: make([]byte, 0, max(t.chunkBytes, room)),
	}}
	t.chunks = append(t.chunks, c)
	return c
}

// end returns where the events end, in bytes of all events ever.
func (c *trailBytes) end() uint64 { return c.start + uint64(len(c.events)) }

// trim lets chunks go that are over the bounds now, a bounded number.
func (t *trail) trim(now int64) {
	bounds := t.bounds()
	for range trailTrimMax {
		if len(t.chunks) == 0 {
			return
		}
		c := t.chunks[0]
		over := len(t.chunks) > 1 && t.header.End-c.start > uint64(bounds.Bytes)
		if !over && now-c.newestT < bounds.AgeMS {
			return
		}
		var e rawEvent
		for offset := 0; c.read(offset, &e); offset += e.size {
			if e.task != 0 {
				t.last.clear(e.task, c.start+uint64(offset)+1)
			}
		}
		t.header.Gone = c.newest
		t.chunks[0] = nil
		t.chunks = t.chunks[1:]
	}
}

// read reads the event at the offset. ok is false at the end.
func (c *trailBytes) read(offset int, e *rawEvent) (ok bool) {
	return offset < len(c.events) && readEvent(c.events[offset:], &c.base, e)
}

// offsetBehind returns where the first event behind the place is.
func (c *trailBytes) offsetBehind(after event.Pos) (offset int) {
	for offset < len(c.events) {
		if peekPlace(c.events[offset:], &c.base).Compare(after) > 0 {
			break
		}
		offset += eventSize(c.events[offset:])
	}
	return offset
}

// chunkOf returns the chunk that has the byte at that place, nil if none has.
func (t *trail) chunkOf(at uint64) *trailChunk {
	i, exact := slices.BinarySearchFunc(t.chunks, at, func(c *trailChunk, at uint64) int {
		switch {
		case c.start < at:
			return -1
		case c.start > at:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || at >= t.chunks[i].end() {
		return nil
	}
	return t.chunks[i]
}

// trailMark is how long the trail was, for an undo.
type trailMark struct {
	header  trailHeader
	chunks  int
	bytes   int // of the last chunk
	newest  event.Pos
	newestT int64
}

// mark returns how long the trail is.
func (t *trail) mark() trailMark {
	mark := trailMark{header: t.header, chunks: len(t.chunks)}
	if mark.chunks > 0 {
		c := t.chunks[mark.chunks-1]
		mark.bytes, mark.newest, mark.newestT = len(c.events), c.newest, c.newestT
	}
	return mark
}

// cut takes off what was told since the mark, and sets the bounds to what they were.
// Meanwhile nothing was trimmed.
func (t *trail) cut(mark trailMark) {
	t.header = mark.header
	var c *trailChunk
	end := uint64(0) // of what stays
	if mark.chunks > 0 {
		c = t.chunks[mark.chunks-1]
		end = c.start + uint64(mark.bytes)
		t.forgetBehind(&c.trailBytes, mark.bytes, end)
		c.events = c.events[:mark.bytes]
		c.newest, c.newestT = mark.newest, mark.newestT
	}
	for _, c := range t.chunks[mark.chunks:] {
		if mark.chunks == 0 {
			end = t.chunks[0].start
		}
		t.forgetBehind(&c.trailBytes, 0, end)
	}
	clear(t.chunks[mark.chunks:])
	t.chunks = t.chunks[:mark.chunks]
}

// forgetBehind lets the tasks of the events from the offset on have those of
// their events as their newest that end stays in front of.
func (t *trail) forgetBehind(c *trailBytes, offset int, end uint64) {
	var e rawEvent
	for ; c.read(offset, &e); offset += e.size {
		at := c.start + uint64(offset)
		switch {
		case e.task == 0:
		case e.before == 0:
			t.last.clear(e.task, t.last.get(e.task))
		case at-e.before < end:
			t.last.swap(e.task, at-e.before+1)
		}
	}
}

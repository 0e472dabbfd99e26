package trail

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/claimq/claimq/fsm/event"
)

// Bounds of the trail. All but TrimMax decide what is in the saved state:
// they are part of the feature level.
const (
	// ChunkBytes bounds a chunk of the trail.
	ChunkBytes = 32 << 10
	// ageParts is how many chunks at least share the age that the trail may
	// have: a chunk is not begun again only when it is full, as events leave by
	// whole chunks.
	ageParts = 8
	// TrimMax bounds how many chunks one entry lets go: some milliseconds.
	TrimMax = 512

	defaultBytes = 64 << 20
	defaultAgeMS = 24 * 60 * 60 * 1000
)

// Log is the events that are kept, encoded, in chunks without pointers that
// are only added to. Its methods read, but for Append, Trim, Cut, Load and Index.
type Log struct {
	// Header is the log's own but for its Bounds, and until the chunks of a snapshot
	// are loaded.
	Header Header
	chunks []*Chunk   // the oldest first; only the last is added to
	last   lastEvents // derived
	// ChunkBytes is the constant of that name; only tests change it.
	ChunkBytes int
}

// Bounds bounds what is kept.
type Bounds struct {
	Bytes int64
	AgeMS int64
}

// Header is what is saved of the trail beside its chunks.
type Header struct {
	Bounds Bounds    // zero: the defaults
	Newest event.Pos // of all events ever
	Gone   event.Pos // the newest that is kept no more
	// End is where the next event will be, in bytes of all events ever.
	End uint64
}

// Chunk is a part of the trail.
type Chunk struct {
	Saved
	// Of its newest event; derived.
	newest  event.Pos
	newestT int64
	// sum caches the hash of its record once it is full.
	sum atomic.Pointer[[16]byte]
}

// Saved is what is saved of a chunk. Only bytes are added to events, so
// that whoever has a copy of the slice keeps what he saw.
type Saved struct {
	Start  uint64 // where its first event is, in bytes of all events ever
	Base   Base   // what its events are told against
	Events []byte
}

// Bounds returns what bounds the trail: 64 MiB and 24 hours until others are set.
func (t *Log) Bounds() Bounds {
	if t.Header.Bounds == (Bounds{}) {
		return Bounds{Bytes: defaultBytes, AgeMS: defaultAgeMS}
	}
	return t.Header.Bounds
}

// New returns an empty trail.
func New() Log { return Log{last: newLastEvents(), ChunkBytes: ChunkBytes} }

// Bytes estimates the memory that the trail takes.
func (t *Log) Bytes() int64 {
	return int64(len(t.chunks))*ChunkBytes + int64(len(t.last.pages))*LastPageBytes
}

// Append adds an event, whose place is behind all others and whose time is not before
// theirs; until is when the wait of a Scheduled ends. The next id and token are
// those that the state will give out.
func (t *Log) Append(e *event.Event, until int64, nextID, nextToken uint64) {
	c := t.roomyChunk(e, nextID, nextToken)
	at := t.Header.End
	before := uint64(0)
	if e.TaskID != 0 {
		if before = t.last.swap(e.TaskID, at+1); before != 0 {
			before = at + 1 - before
		}
	}
	c.Events = appendEvent(c.Events, &c.Base, e, before, until)
	c.newest, c.newestT = e.Pos, e.T
	t.Header.End = c.End()
	t.Header.Newest = e.Pos
}

// TakeActs appends the operators' acts of another trail that are behind all events of this
// one. Its tasks are other ones: what it tells of those is left.
func (t *Log) TakeActs(from *Log, nextID, nextToken uint64) {
	newestT := int64(math.MinInt64)
	if n := len(t.chunks); n > 0 {
		newestT = t.chunks[n-1].newestT
	}
	for _, c := range from.chunks[from.chunkBehind(t.Header.Newest):] {
		var e rawEvent
		for offset := c.offsetBehind(t.Header.Newest); c.read(offset, &e); offset += e.size {
			if e.kind.IsAct() {
				act := e.event()
				act.T = max(act.T, newestT)
				t.Append(&act, 0, nextID, nextToken)
			}
		}
	}
}

// roomyChunk returns a chunk that has room for the event: the last, or a new
// one.
func (t *Log) roomyChunk(e *event.Event, nextID, nextToken uint64) *Chunk {
	room := roomFor(e)
	if n := len(t.chunks); n > 0 {
		c := t.chunks[n-1]
		if len(c.Events)+room <= t.ChunkBytes && e.T-c.Base.T < t.Bounds().AgeMS/ageParts {
			if cap(c.Events) < t.ChunkBytes { // it was restored
				c.Events = append(make([]byte, 0, t.ChunkBytes), c.Events...)
			}
			return c
		}
	}
	c := &Chunk{Saved: Saved{
		Start:  t.Header.End,
		Base:   Base{Pos: e.Pos, T: e.T, Task: nextID, Token: nextToken},
		Events: make([]byte, 0, max(t.ChunkBytes, room)),
	}}
	t.chunks = append(t.chunks, c)
	return c
}

// End returns where the events end, in bytes of all events ever.
func (c *Saved) End() uint64 { return c.Start + uint64(len(c.Events)) }

// Trim lets chunks go that are over the bounds now, a bounded number.
func (t *Log) Trim(now int64) {
	bounds := t.Bounds()
	for range TrimMax {
		if len(t.chunks) == 0 {
			return
		}
		c := t.chunks[0]
		over := len(t.chunks) > 1 && t.Header.End-c.Start > uint64(bounds.Bytes)
		if !over && now-c.newestT < bounds.AgeMS {
			return
		}
		var e rawEvent
		for offset := 0; c.read(offset, &e); offset += e.size {
			if e.task != 0 {
				t.last.clear(e.task, c.Start+uint64(offset)+1)
			}
		}
		t.Header.Gone = c.newest
		t.chunks[0] = nil
		t.chunks = t.chunks[1:]
	}
}

// read reads the event at the offset. ok is false at the end.
func (c *Saved) read(offset int, e *rawEvent) (ok bool) {
	return offset < len(c.Events) && readEvent(c.Events[offset:], &c.Base, e)
}

// offsetBehind returns where the first event behind the place is.
func (c *Saved) offsetBehind(after event.Pos) (offset int) {
	for offset < len(c.Events) {
		if peekPlace(c.Events[offset:], &c.Base).Compare(after) > 0 {
			break
		}
		offset += eventSize(c.Events[offset:])
	}
	return offset
}

// chunkOf returns the chunk that has the byte at that place, nil if none has.
func (t *Log) chunkOf(at uint64) *Chunk {
	i, exact := slices.BinarySearchFunc(t.chunks, at, func(c *Chunk, at uint64) int {
		switch {
		case c.Start < at:
			return -1
		case c.Start > at:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || at >= t.chunks[i].End() {
		return nil
	}
	return t.chunks[i]
}

// Mark is how long the trail was, for an undo.
type Mark struct {
	header  Header
	chunks  int
	bytes   int // of the last chunk
	newest  event.Pos
	newestT int64
}

// Mark returns how long the trail is.
func (t *Log) Mark() Mark {
	mark := Mark{header: t.Header, chunks: len(t.chunks)}
	if mark.chunks > 0 {
		c := t.chunks[mark.chunks-1]
		mark.bytes, mark.newest, mark.newestT = len(c.Events), c.newest, c.newestT
	}
	return mark
}

// Cut takes off what was told since the mark, and sets the bounds to what they were.
// Meanwhile nothing was trimmed.
func (t *Log) Cut(mark Mark) {
	t.Header = mark.header
	var c *Chunk
	end := uint64(0) // of what stays
	if mark.chunks > 0 {
		c = t.chunks[mark.chunks-1]
		end = c.Start + uint64(mark.bytes)
		t.forgetBehind(&c.Saved, mark.bytes, end)
		c.Events = c.Events[:mark.bytes]
		c.newest, c.newestT = mark.newest, mark.newestT
	}
	for _, c := range t.chunks[mark.chunks:] {
		if mark.chunks == 0 {
			end = t.chunks[0].Start
		}
		t.forgetBehind(&c.Saved, 0, end)
	}
	clear(t.chunks[mark.chunks:])
	t.chunks = t.chunks[:mark.chunks]
}

// forgetBehind lets the tasks of the events from the offset on have those of
// their events as their newest that end stays in front of.
func (t *Log) forgetBehind(c *Saved, offset int, end uint64) {
	var e rawEvent
	for ; c.read(offset, &e); offset += e.size {
		at := c.Start + uint64(offset)
		switch {
		case e.task == 0:
		case e.before == 0:
			t.last.clear(e.task, t.last.get(e.task))
		case at-e.before < end:
			t.last.swap(e.task, at-e.before+1)
		}
	}
}

package event

import (
	"math"
	"slices"
	"sync/atomic"
)

// Bounds of the trail. All except TrimMax affect the saved state, so they are part of the
// feature level.
const (
	// ChunkBytes bounds a chunk of the trail.
	ChunkBytes = 32 << 10
	// ageParts is the minimum number of chunks over the maximum age. A chunk is closed
	// after that share of the age even if it is not full, because events are dropped by
	// whole chunks.
	ageParts = 8
	// TrimMax bounds how many chunks one entry drops, which takes some milliseconds.
	TrimMax = 512

	defaultBytes = 64 << 20
	defaultAgeMS = 24 * 60 * 60 * 1000
)

// Log holds the events that are kept, encoded in append-only chunks without pointers. All
// methods only read, except Append, Trim, Cut, Load and Index.
type Log struct {
	// Header is maintained by the log. Others may set its Bounds, and all of it before the
	// chunks of a snapshot are loaded.
	Header Header
	chunks []*Chunk   // oldest first; only the last one grows
	last   lastEvents // derived
	// ChunkBytes is the constant of the same name; only tests change it.
	ChunkBytes int
}

// Bounds bounds the events that are kept.
type Bounds struct {
	Bytes int64
	AgeMS int64
}

// Header is saved with the chunks of the trail.
type Header struct {
	Bounds Bounds // zero = the defaults
	Newest Pos    // of all events ever
	Gone   Pos    // the newest event that was dropped
	// End is where the next event goes, in bytes of all events ever.
	End uint64
}

// Chunk is a part of the trail.
type Chunk struct {
	Saved
	// The place and time of its newest event; derived.
	newest  Pos
	newestT int64
	// sum caches the hash of its record once the chunk is full.
	sum atomic.Pointer[[16]byte]
}

// Saved is the saved part of a chunk. Events is only appended to, so that copies of the
// slice stay valid.
type Saved struct {
	Start  uint64 // where its first event is, in bytes of all events ever
	Base   Base   // the values to which its events are relative
	Events []byte
}

// Bounds returns the bounds of the trail: by default 64 MiB and 24 hours.
func (t *Log) Bounds() Bounds {
	if t.Header.Bounds == (Bounds{}) {
		return Bounds{Bytes: defaultBytes, AgeMS: defaultAgeMS}
	}
	return t.Header.Bounds
}

// NewLog returns an empty trail.
func NewLog() Log { return Log{last: newLastEvents(), ChunkBytes: ChunkBytes} }

// Bytes estimates the memory of the trail.
func (t *Log) Bytes() int64 {
	return int64(len(t.chunks))*ChunkBytes + int64(len(t.last.pages))*LastPageBytes
}

// Append adds an event whose place is after all others and whose time is not earlier. until
// is the end of the wait for a Scheduled. nextID and nextToken are the next ones that the
// state will assign.
func (t *Log) Append(e *Event, until int64, nextID, nextToken uint64) {
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

// TakeActs appends the operators' actions of another trail that are after all events of this one.
// It leaves out events about tasks, because in this trail the same ids are of other tasks.
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

// roomyChunk returns the last chunk if it has room for the event, else a new one.
func (t *Log) roomyChunk(e *Event, nextID, nextToken uint64) *Chunk {
	room := roomFor(e)
	if n := len(t.chunks); n > 0 {
		c := t.chunks[n-1]
		if len(c.Events)+room <= t.ChunkBytes && e.T-c.Base.T < t.Bounds().AgeMS/ageParts {
			if cap(c.Events) < t.ChunkBytes { // after a restore
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

// Trim drops a bounded number of chunks that exceed the bounds at now.
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
		for offset := 0; offset < len(c.Events); offset += eventSize(c.Events[offset:]) {
			if id := peekTask(c.Events[offset:], &c.Base); id != 0 {
				t.last.clear(id, c.Start+uint64(offset)+1)
			}
		}
		t.Header.Gone = c.newest
		t.chunks[0] = nil
		t.chunks = t.chunks[1:]
	}
}

// read decodes the event at the offset. ok is false at the end.
func (c *Saved) read(offset int, e *rawEvent) (ok bool) {
	return offset < len(c.Events) && readEvent(c.Events[offset:], &c.Base, e)
}

// offsetBehind returns the offset of the first event after the place.
func (c *Saved) offsetBehind(after Pos) (offset int) {
	for offset < len(c.Events) {
		if peekPlace(c.Events[offset:], &c.Base).Compare(after) > 0 {
			break
		}
		offset += eventSize(c.Events[offset:])
	}
	return offset
}

// chunkOf returns the chunk with the byte at that place, or nil.
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

// Mark records the length of the trail for an undo.
type Mark struct {
	header  Header
	chunks  int
	bytes   int // of the last chunk
	newest  Pos
	newestT int64
}

// Mark returns the current length of the trail.
func (t *Log) Mark() Mark {
	mark := Mark{header: t.Header, chunks: len(t.chunks)}
	if mark.chunks > 0 {
		c := t.chunks[mark.chunks-1]
		mark.bytes, mark.newest, mark.newestT = len(c.Events), c.newest, c.newestT
	}
	return mark
}

// Cut removes everything added since the mark and restores the bounds. There must have been
// no Trim since.
func (t *Log) Cut(mark Mark) {
	t.Header = mark.header
	var c *Chunk
	end := uint64(0) // of what remains
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

// forgetBehind restores the newest events of tasks: for each event from the offset on, the
// task's previous one that is before end.
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

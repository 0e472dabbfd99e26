package event

import (
	"fmt"
	"math"
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// View is a captured trail. Later appends to the last chunk are not visible in it.
type View struct {
	Header Header
	full   []*Chunk
	open   Saved // the last chunk; empty if there are no chunks
}

// View captures the trail in O(chunks), without copying events.
func (t *Log) View() View {
	if len(t.chunks) == 0 {
		return View{Header: t.Header}
	}
	last := len(t.chunks) - 1
	return View{Header: t.Header, full: slices.Clone(t.chunks[:last]), open: t.chunks[last].Saved}
}

// Len returns the number of chunks.
func (v *View) Len() int {
	if len(v.open.Events) == 0 {
		return 0
	}
	return len(v.full) + 1
}

// all yields every chunk, oldest first.
func (v *View) all() func(yield func(*Saved) bool) {
	return func(yield func(*Saved) bool) {
		for _, c := range v.full {
			if !yield(&c.Saved) {
				return
			}
		}
		if len(v.open.Events) > 0 {
			yield(&v.open)
		}
	}
}

// Records yields the record of every chunk. It returns false if yield did. b is reusable
// memory for the records.
func (v *View) Records(b []byte, yield func(record []byte) bool) bool {
	for c := range v.all() {
		if b = AppendRecord(b[:0], c); !yield(b) {
			return false
		}
	}
	return true
}

// Hashing hashes the records of a view.
type Hashing interface {
	// SumOf returns the sum of the record.
	SumOf(record []byte) [16]byte
	// AddSum adds it to the hash.
	AddSum(sum [16]byte)
	// IsDue reports whether the unchanged chunk with that number should be hashed again.
	IsDue(number uint64) bool
	// Noted is called for each full chunk that was hashed.
	Noted()
}

// AddTo adds the trail's records to the hash. Full chunks are hashed once, and again when
// it is their turn, by where they start. rotten counts those whose hash has changed.
func (v *View) AddTo(hash Hashing) (rotten int) {
	var b []byte
	for _, c := range v.full {
		sum := c.sum.Load()
		if sum == nil || hash.IsDue(c.Start/ChunkBytes) {
			b = AppendRecord(b[:0], &c.Saved)
			got := hash.SumOf(b)
			if sum != nil && got != *sum {
				rotten++
			}
			sum = &got
			c.sum.Store(sum)
			hash.Noted()
		}
		hash.AddSum(*sum)
	}
	if len(v.open.Events) > 0 {
		hash.AddSum(hash.SumOf(AppendRecord(b[:0], &v.open)))
	}
	return rotten
}

// AppendRecord appends the record of a chunk.
func AppendRecord(b []byte, c *Saved) []byte {
	f := record.To(b)
	c.code(&f)
	return f.Out
}

func (c *Saved) code(f *record.Fields) {
	f.Uint(1, &c.Start)
	f.Uint(2, &c.Base.Index)
	f.Uint32(3, &c.Base.Sub)
	f.Int(4, &c.Base.T)
	f.ID(5, &c.Base.Task)
	f.ID(6, &c.Base.Token)
	f.Bytes(7, &c.Events)
}

// Code reads or writes the trail's fields in the header's record.
func (h *Header) Code(f *record.Fields) {
	f.Int(15, &h.Bounds.Bytes)
	f.Int(16, &h.Bounds.AgeMS)
	f.Uint(17, &h.End)
	f.Uint(18, &h.Newest.Index)
	f.Uint32(19, &h.Newest.Sub)
	f.Uint(20, &h.Gone.Index)
	f.Uint32(21, &h.Gone.Sub)
}

// ReadChunk reads a chunk's record. Index checks its events.
func ReadChunk(f *record.Fields) (*Chunk, error) {
	c := &Chunk{}
	c.code(f)
	switch err := f.End(); {
	case err != nil:
		return nil, err
	case len(c.Events) == 0 || len(c.Events) > ChunkBytes || c.Start > math.MaxUint64-ChunkBytes:
		return nil, fmt.Errorf("%w: %d bytes of events at %d", record.ErrCorrupt, len(c.Events), c.Start)
	}
	return c, nil
}

// Load adds a chunk that was read, after the others.
func (t *Log) Load(c *Chunk) { t.chunks = append(t.chunks, c) }

// Limits are upper bounds for the events of a state.
type Limits struct {
	Moment    uint64 // of the newest entry
	T         int64
	NextID    uint64
	NextToken uint64
}

// Index computes the derived data from the header and the chunks. It returns what is wrong
// with them, or "": each event must be one that Apply could have recorded.
func (t *Log) Index(most Limits) (problem string) {
	h := &t.Header
	t.last = newLastEvents()
	newest, newestT, end := h.Gone, int64(math.MinInt64), h.End
	for i, c := range t.chunks {
		first, behind := true, c.Start
		var e rawEvent
		for offset := 0; c.read(offset, &e); offset += e.size {
			at := c.Start + uint64(offset)
			switch {
			case first && e.Pos != c.Base.Pos:
				return "a chunk has another first event than it says"
			case e.Compare(newest) <= 0 || e.Index > most.Moment || e.t < newestT || e.t > most.T:
				return "its events are out of order"
			case e.kind.String() == "" || e.task >= most.NextID || e.token >= most.NextToken:
				return "it tells of what never was"
			case !t.followsLast(&e, at):
				return "an event does not lead to the one before"
			}
			newest, newestT, first = e.Pos, e.t, false
			behind = at + uint64(e.size)
		}
		if behind != c.End() {
			return "a chunk holds what is no event"
		}
		c.newest, c.newestT = newest, newestT
		if i == len(t.chunks)-1 && c.End() != end {
			return "its end is not where it should be"
		}
	}
	if newest != h.Newest || h.Bounds.Bytes < 0 || h.Bounds.AgeMS < 0 {
		return "its newest event is not the last"
	}
	return ""
}

// followsLast makes the event its task's newest and reports whether it links to the
// previous one.
func (t *Log) followsLast(e *rawEvent, at uint64) bool {
	if e.task == 0 {
		return e.before == 0
	}
	last := t.last.swap(e.task, at+1)
	if last != 0 {
		return e.before == at+1-last
	}
	return e.before <= at && (e.before == 0 || at-e.before < t.chunks[0].Start)
}

// Check returns what is wrong with the trail, or "": it verifies that entries could have
// produced the saved events, and that the derived data is as Index would compute it. It is for
// tests, because it reads all events.
func (t *Log) Check(most Limits) (problem string) {
	read := Log{Header: t.Header, ChunkBytes: t.ChunkBytes}
	for i, c := range t.chunks {
		if i > 0 && c.Start != t.chunks[i-1].End() {
			return "a chunk does not begin where the one before ends"
		}
		read.Load(&Chunk{Saved: c.Saved})
	}
	if problem := read.Index(most); problem != "" {
		return problem
	}
	for i, c := range read.chunks {
		if was := t.chunks[i]; was.newest != c.newest || was.newestT != c.newestT {
			return "a chunk's newest event is another"
		}
	}
	if len(read.last.pages) != len(t.last.pages) {
		return "tasks are known of which there is no event"
	}
	for number, p := range read.last.pages {
		if was := t.last.pages[number]; was == nil || *was != *p {
			return "a task's newest event is another"
		}
	}
	return ""
}

// Chunks returns the log's own chunks, oldest first. Only tests change them.
func (t *Log) Chunks() []*Chunk { return t.chunks }

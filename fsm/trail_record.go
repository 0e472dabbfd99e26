package fsm

import (
	"fmt"
	"math"
	"slices"

	"github.com/claimq/claimq/fsm/wire"
)

// trailView is the trail as it was captured: what its chunks hold by then. The
// last one may be added to since.
type trailView struct {
	header trailHeader
	full   []*trailChunk
	open   trailBytes // the last one; without events if there is none
}

// view captures the trail in O(chunks): no events are copied.
func (t *trail) view() trailView {
	if len(t.chunks) == 0 {
		return trailView{header: t.header}
	}
	last := len(t.chunks) - 1
	return trailView{header: t.header, full: slices.Clone(t.chunks[:last]), open: t.chunks[last].trailBytes}
}

// len returns how many chunks there are.
func (v *trailView) len() int {
	if len(v.open.events) == 0 {
		return 0
	}
	return len(v.full) + 1
}

// all yields every chunk, the oldest first.
func (v *trailView) all() func(yield func(*trailBytes) bool) {
	return func(yield func(*trailBytes) bool) {
		for _, c := range v.full {
			if !yield(&c.trailBytes) {
				return
			}
		}
		if len(v.open.events) > 0 {
			yield(&v.open)
		}
	}
}

// records yields the record of every chunk until yield returns false; then it
// does, too. It writes them to b.
func (v *trailView) records(b []byte, yield func(record []byte) bool) bool {
	for c := range v.all() {
		if b = appendTrailRecord(b[:0], c); !yield(b) {
			return false
		}
	}
	return true
}

// hashing is how a view's records are hashed.
type hashing interface {
	// sumOf returns the sum of the record.
	sumOf(record []byte) [16]byte
	// addSum adds it to the hash.
	addSum(sum [16]byte)
	// isDue reports whether the chunk of that number is hashed again, which has not
	// changed.
	isDue(number uint64) bool
	// noted is told of a full chunk that was hashed.
	noted()
}

// addTo adds the trail's records to the hash. Chunks that are full are hashed
// once, and when it is their turn, by where they start; it returns how many of
// the latter have another hash than they had.
func (v *trailView) addTo(hash hashing) (rotten int) {
	var b []byte
	for _, c := range v.full {
		sum := c.sum.Load()
		if sum == nil || hash.isDue(c.start/trailChunkBytes) {
			b = appendTrailRecord(b[:0], &c.trailBytes)
			got := hash.sumOf(b)
			if sum != nil && got != *sum {
				rotten++
			}
			sum = &got
			c.sum.Store(sum)
			hash.noted()
		}
		hash.addSum(*sum)
	}
	if len(v.open.events) > 0 {
		hash.addSum(hash.sumOf(appendTrailRecord(b[:0], &v.open)))
	}
	return rotten
}

func appendTrailRecord(b []byte, c *trailBytes) []byte {
	b = wire.PutUint(b, 1, c.start)
	b = wire.PutUint(b, 2, c.base.Index)
	b = wire.PutUint(b, 3, uint64(c.base.Sub))
	b = wire.PutInt(b, 4, c.base.t)
	b = wire.PutID(b, 5, c.base.task)
	b = wire.PutID(b, 6, c.base.token)
	return wire.PutBytes(b, 7, c.events)
}

func decodeTrailRecord(r *wire.Reader) *trailChunk {
	c := &trailChunk{}
	for r.Next() {
		switch r.Num {
		case 1:
			c.start = r.Uint(math.MaxUint64)
		case 2:
			c.base.Index = r.Uint(math.MaxUint64)
		case 3:
			c.base.Sub = r.Uint32()
		case 4:
			c.base.t = r.Int64()
		case 5:
			c.base.task = r.ID()
		case 6:
			c.base.token = r.ID()
		case 7:
			c.events = r.Bytes()
		default:
			r.Unknown()
		}
	}
	return c
}

// appendTrailHeader appends the fields of the header's record that are of the
// trail.
func appendTrailHeader(b []byte, h *trailHeader) []byte {
	b = wire.PutInt(b, 15, h.Bounds.Bytes)
	b = wire.PutInt(b, 16, h.Bounds.AgeMS)
	b = wire.PutUint(b, 17, h.End)
	b = wire.PutUint(b, 18, h.Newest.Index)
	b = wire.PutUint(b, 19, uint64(h.Newest.Sub))
	b = wire.PutUint(b, 20, h.Gone.Index)
	return wire.PutUint(b, 21, uint64(h.Gone.Sub))
}

// decodeTrailHeader reads the field, one of appendTrailHeader's.
func decodeTrailHeader(r *wire.Reader, h *trailHeader) {
	switch r.Num {
	case 15:
		h.Bounds.Bytes = r.Int64()
	case 16:
		h.Bounds.AgeMS = r.Int64()
	case 17:
		h.End = r.Uint(math.MaxUint64)
	case 18:
		h.Newest.Index = r.Uint(math.MaxUint64)
	case 19:
		h.Newest.Sub = r.Uint32()
	case 20:
		h.Gone.Index = r.Uint(math.MaxUint64)
	case 21:
		h.Gone.Sub = r.Uint32()
	default:
		r.Unknown()
	}
}

// readChunk reads a chunk's record. What is in it is looked at by index.
func readChunk(r *wire.Reader) (*trailChunk, error) {
	c := decodeTrailRecord(r)
	switch {
	case r.Err != nil:
		return nil, r.Err
	case len(c.events) == 0 || len(c.events) > trailChunkBytes || c.start > math.MaxUint64-trailChunkBytes:
		return nil, fmt.Errorf("%w: %d bytes of events at %d", wire.ErrCorrupt, len(c.events), c.start)
	}
	return c, nil
}

// load adds a chunk that was read, behind the others.
func (t *trail) load(c *trailChunk) { t.chunks = append(t.chunks, c) }

// limits are what no event of a state can be past.
type limits struct {
	Moment    uint64 // where its newest entry's events are
	T         int64
	NextID    uint64
	NextToken uint64
}

// index builds what is derived of the header and the chunks. It returns what is wrong with
// it, "" if nothing is: each event must be one that Apply could have told.
func (t *trail) index(most limits) (problem string) {
	h := &t.header
	t.last = newLastEvents()
	newest, newestT, end := h.Gone, int64(math.MinInt64), h.End
	for i, c := range t.chunks {
		first, behind := true, c.start
		var e rawEvent
		for offset := 0; c.read(offset, &e); offset += e.size {
			at := c.start + uint64(offset)
			switch {
			case first && e.Pos != c.base.Pos:
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
		if behind != c.end() {
			return "a chunk holds what is no event"
		}
		c.newest, c.newestT = newest, newestT
		if i == len(t.chunks)-1 && c.end() != end {
			return "its end is not where it should be"
		}
	}
	if newest != h.Newest || h.Bounds.Bytes < 0 || h.Bounds.AgeMS < 0 {
		return "its newest event is not the last"
	}
	return ""
}

// followsLast notes that the event is its task's newest, and reports whether it
// leads to the one before.
func (t *trail) followsLast(e *rawEvent, at uint64) bool {
	if e.task == 0 {
		return e.before == 0
	}
	last := t.last.swap(e.task, at+1)
	if last != 0 {
		return e.before == at+1-last
	}
	return e.before <= at && (e.before == 0 || at-e.before < t.chunks[0].start)
}

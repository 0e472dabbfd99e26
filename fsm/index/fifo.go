package index

import (
	"slices"
	"sort"
)

// fifo is a set of ids that are mostly added and removed in ascending order. Ids added in
// order are in chunks of plain numbers, so that adding one and taking the first touch one
// piece of memory, however many there are. Ids added out of order, and the rest of a chunk
// that lost an id from its middle, are in a tree. A change costs amortized O(log n), a
// lookup by position at most O(log² n).
//
// The zero value is an empty set.
type fifo struct {
	count int
	left  int       // how many ids at the start of back are removed
	back  []uint64  // the last in order, fewer than a chunk, after left removed ones
	few   [2]uint64 // memory for back: most have few ids
	more  *fifoMore // nil until needed
}

// fifoMore has what only a fifo of many ids, or of some out of order, needs.
type fifoMore struct {
	front []uint64 // the first in order, (part of) a chunk; empty only if full is
	// full has the chunks in between by their first ids. Chunks never change.
	full Map[uint64, *fifoChunk] // nil until needed
	// loose has the ids that are in no chunk.
	loose IDs // nil until needed
}

// fifoChunk is a chunk of ascending ids.
type fifoChunk [64]uint64

// looseCount returns how many ids are loose.
func (f *fifo) looseCount() int {
	if f.more == nil || f.more.loose == nil {
		return 0
	}
	return f.more.loose.Len()
}

// front returns the first ids in order, or nil.
func (f *fifo) front() []uint64 {
	if f.more == nil {
		return nil
	}
	return f.more.front
}

// full returns the chunks in between, or nil.
func (f *fifo) full() Map[uint64, *fifoChunk] {
	if f.more == nil {
		return nil
	}
	return f.more.full
}

// needMore returns more, and allocates it if needed.
func (f *fifo) needMore() *fifoMore {
	if f.more == nil {
		f.more = &fifoMore{}
	}
	return f.more
}

// orderedCount returns how many ids are not loose.
func (f *fifo) orderedCount() int { return f.count - f.looseCount() }

// add adds an id that is not in the set.
func (f *fifo) add(id uint64) {
	f.count++
	if f.orderedCount() > 1 && id < f.lastInOrder() {
		f.loosen(id)
		return
	}
	if f.left > 0 && len(f.back) == cap(f.back) {
		f.back = slices.Delete(f.back, 0, f.left)
		f.left = 0
	}
	switch {
	case f.back != nil:
	case len(f.front()) > 0: // there was a chunk before, so this one will be full, too
		f.back = make([]uint64, 0, len(fifoChunk{}))
	default:
		f.back = f.few[:0]
	}
	f.back = append(f.back, id)
	if len(f.back)-f.left == len(fifoChunk{}) {
		chunk := (*fifoChunk)(f.back[f.left:])
		f.back, f.left = nil, 0
		more := f.needMore()
		if len(more.front) == 0 {
			more.front = chunk[:]
		} else {
			if more.full == nil {
				more.full = NewMap[uint64, *fifoChunk]()
			}
			more.full.Load(chunk[0], chunk)
		}
	}
}

// loosen adds an id to the loose ones.
func (f *fifo) loosen(id uint64) {
	more := f.needMore()
	if more.loose == nil {
		more.loose = NewIDs()
	}
	more.loose.Insert(id)
}

// lastInOrder returns the last id that is not loose. There must be one.
func (f *fifo) lastInOrder() uint64 {
	if n := len(f.back); n > f.left {
		return f.back[n-1]
	}
	if full := f.full(); full != nil {
		if _, chunk, ok := full.Max(); ok {
			return chunk[len(chunk)-1]
		}
	}
	return f.more.front[len(f.more.front)-1]
}

// remove removes an id that is in the set.
func (f *fifo) remove(id uint64) {
	f.count--
	back := f.back[f.left:]
	switch {
	case len(f.front()) > 0 && f.front()[0] == id:
		f.more.front = f.more.front[1:]
		f.more.refill()
	case len(back) > 0 && back[0] == id:
		f.left++
		f.resetBack()
	case f.removeFromFront(id), f.removeFromBack(id), f.removeLoose(id):
	default:
		f.removeFromFull(id)
	}
}

// refill makes the next chunk the front if the front is empty.
func (m *fifoMore) refill() {
	if len(m.front) > 0 {
		return
	}
	m.front = nil
	if m.full == nil {
		return
	}
	if _, chunk, ok := m.full.PopMin(); ok {
		m.front = chunk[:]
	}
}

// resetBack moves the back to the start of its memory if it is empty.
func (f *fifo) resetBack() {
	if f.left == len(f.back) {
		f.back, f.left = f.back[:0], 0
	}
}

func (f *fifo) removeFromFront(id uint64) bool {
	front := f.front()
	at, found := slices.BinarySearch(front, id)
	switch {
	case !found:
		return false
	case at == len(front)-1:
		f.more.front = front[:at]
	default:
		f.more.front = slices.Concat(front[:at], front[at+1:])
	}
	f.more.refill()
	return true
}

func (f *fifo) removeFromBack(id uint64) bool {
	at, found := slices.BinarySearch(f.back[f.left:], id)
	if found {
		f.back = slices.Delete(f.back, f.left+at, f.left+at+1)
		f.resetBack()
	}
	return found
}

func (f *fifo) removeLoose(id uint64) bool {
	n := f.looseCount()
	if n == 0 {
		return false
	}
	f.more.loose.Delete(id)
	return f.more.loose.Len() < n
}

// removeFromFull dissolves the chunk that has the id. The last chunk becomes the back if
// that is empty, so that taking the newest ids one by one is cheap, too.
func (f *fifo) removeFromFull(id uint64) {
	var chunk *fifoChunk
	full := f.more.full
	full.Descend(id, func(_ uint64, c *fifoChunk) bool {
		chunk = c
		return false
	})
	last, _, _ := full.Max()
	full.Delete(chunk[0])
	if len(f.back) == 0 && chunk[0] == last {
		f.back = append(f.back, chunk[:]...)
		f.removeFromBack(id)
		return
	}
	for _, other := range chunk {
		if other != id {
			f.loosen(other)
		}
	}
}

// min returns the lowest id. The set must not be empty.
func (f *fifo) min() uint64 {
	switch {
	case f.orderedCount() == 0:
		return f.looseAt(0)
	case f.looseCount() == 0:
		return f.inOrderAt(0)
	}
	return min(f.inOrderAt(0), f.looseAt(0))
}

// max returns the highest id. The set must not be empty.
func (f *fifo) max() uint64 {
	switch n := f.looseCount(); {
	case f.orderedCount() == 0:
		return f.looseAt(n - 1)
	case n == 0:
		return f.lastInOrder()
	default:
		return max(f.lastInOrder(), f.looseAt(n-1))
	}
}

// at returns the k-th id, from 0; k must be below count.
func (f *fifo) at(k int) uint64 {
	ordered, loose := f.orderedCount(), f.looseCount()
	// n of the first k ids are loose: the smallest n for which the next loose id comes
	// after the last of the k-n others.
	first := max(0, k-ordered)
	n := first + sort.Search(min(k, loose)-first, func(i int) bool {
		return f.looseAt(first+i) > f.inOrderAt(k-1-first-i)
	})
	switch {
	case n == loose:
		return f.inOrderAt(k - n)
	case k-n == ordered:
		return f.looseAt(n)
	}
	return min(f.looseAt(n), f.inOrderAt(k-n))
}

// below returns how many ids are lower than id.
func (f *fifo) below(id uint64) int {
	return sort.Search(f.orderedCount(), func(k int) bool { return f.inOrderAt(k) >= id }) +
		sort.Search(f.looseCount(), func(k int) bool { return f.looseAt(k) >= id })
}

// inOrderAt is at for the ids that are not loose.
func (f *fifo) inOrderAt(k int) uint64 {
	front := f.front()
	if k < len(front) {
		return front[k]
	}
	k -= len(front)
	if full := f.full(); full != nil {
		if _, chunk, ok := full.GetAt(k / len(fifoChunk{})); ok {
			return chunk[k%len(fifoChunk{})]
		}
	}
	return f.back[f.left+k%len(fifoChunk{})]
}

// looseAt is at for the loose ids.
func (f *fifo) looseAt(k int) uint64 {
	id, _ := f.more.loose.GetAt(k)
	return id
}

// copy returns a copy. It is almost free until one of the two changes; then parts of the
// trees are copied one by one.
func (f *fifo) copy() *fifo {
	c := *f
	c.back, c.left = slices.Clone(f.back[f.left:]), 0
	if f.more == nil {
		return &c
	}
	more := *f.more
	c.more = &more
	if more.full != nil {
		more.full = more.full.Copy()
	}
	if more.loose != nil {
		more.loose = more.loose.Copy()
	}
	return &c
}

package index

import (
	"cmp"
	"iter"
	"slices"
)

// Moment is a record's place in an order by time. Equal times are ordered by id.
type Moment struct {
	At int64
	ID uint64
}

// Compare orders moments.
func (m Moment) Compare(other Moment) int {
	return cmp.Or(cmp.Compare(m.At, other.At), cmp.Compare(m.ID, other.ID))
}

// blockMax is the size of a block. Adding in the middle of a block moves half of it, 4 KiB,
// and starting a block moves the list of blocks; with 512 both are cheap up to tens of
// millions of moments.
const blockMax = 512

// Timeline is an index of records by time. It needs little more than the 16 bytes of each
// moment while most are added at the end and removed at the beginning, as happens for tasks
// with equal retention.
type Timeline struct{ *blocks }

// blocks holds the moments in order. Blocks are sorted and never empty.
type blocks struct {
	list  [][]Moment
	count int
}

// NewTimeline returns an empty index.
func NewTimeline() Timeline { return Timeline{&blocks{}} }

// Add adds a record that is not in the index. Adding at the end is cheapest.
func (b *blocks) Add(at int64, id uint64) {
	b.count++
	m, last := Moment{at, id}, len(b.list)-1
	if last < 0 || len(b.list[last]) == blockMax && m.Compare(b.list[last][blockMax-1]) > 0 {
		b.list = append(b.list, append(make([]Moment, 0, roomOf(last)), m))
		return
	}
	i := b.find(m)
	block := b.list[i]
	if len(block) == blockMax {
		const half = blockMax / 2
		b.list = slices.Insert(b.list, i+1, append(make([]Moment, 0, blockMax), block[half:]...))
		block = block[:half:half]
		b.list[i] = block
		if m.Compare(b.list[i+1][0]) > 0 {
			i++
			block = b.list[i]
		}
	}
	place, _ := slices.BinarySearchFunc(block, m, Moment.Compare)
	b.list[i] = slices.Insert(block, place, m)
}

// roomOf returns the initial capacity of the block after last. The first block starts
// small, because many timelines stay short.
func roomOf(last int) int {
	if last < 0 {
		return 4
	}
	return blockMax
}

// find returns the index of the block for m: the last one that does not begin after m, or
// the first. There must be a block.
func (b *blocks) find(m Moment) int {
	last := len(b.list) - 1
	if b.list[last][0].Compare(m) <= 0 { // the usual case when adding
		return last
	}
	i, found := slices.BinarySearchFunc(b.list, m, func(block []Moment, m Moment) int { return block[0].Compare(m) })
	if found {
		return i
	}
	return max(i-1, 0)
}

// Remove removes a record that is in the index.
func (b *blocks) Remove(at int64, id uint64) {
	b.count--
	m := Moment{at, id}
	i := b.find(m)
	block := b.list[i]
	place, _ := slices.BinarySearchFunc(block, m, Moment.Compare)
	switch {
	case len(block) == 1:
		b.drop(i)
	case i == 0 && place == 0: // the usual case: the earliest is removed first
		b.list[0] = block[1:]
	default:
		b.list[i] = slices.Delete(block, place, place+1)
		if i > 0 {
			b.join(i - 1)
			i = min(i, len(b.list)-1)
		}
		b.join(i)
	}
}

// drop removes a block from the list.
func (b *blocks) drop(i int) {
	if i == 0 {
		b.list[0] = nil
		b.list = b.list[1:]
		return
	}
	b.list = slices.Delete(b.list, i, i+1)
}

// join merges the block with the next one if both together fill at most half a block, so
// that sparsely filled blocks do not waste memory.
func (b *blocks) join(i int) {
	if i+1 == len(b.list) || len(b.list[i])+len(b.list[i+1]) > blockMax/2 {
		return
	}
	b.list[i] = slices.Concat(b.list[i], b.list[i+1])
	b.drop(i + 1)
}

// First returns the earliest record.
func (b *blocks) First() (first Moment, ok bool) {
	if len(b.list) == 0 {
		return Moment{}, false
	}
	return b.list[0][0], true
}

// Due returns the earliest record if its time has come by now.
func (b *blocks) Due(now int64) (id uint64, ok bool) {
	next, ok := b.First()
	return next.ID, ok && next.At <= now
}

// Len returns the number of records.
func (b *blocks) Len() int { return b.count }

// All yields the records in order.
func (b *blocks) All() iter.Seq[Moment] {
	return func(yield func(Moment) bool) {
		for _, block := range b.list {
			for _, m := range block {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// descending walks a timeline backwards. The timeline must not change during the walk.
type descending struct {
	of           *blocks
	block, place int // of the next moment; block is -1 at the end
}

// Descend returns a walk that begins with the latest moment not after from.
func (b *blocks) Descend(from Moment) descending {
	d := descending{of: b, block: -1}
	if b.count == 0 || from.Compare(b.list[0][0]) < 0 {
		return d
	}
	d.block = b.find(from)
	place, exact := slices.BinarySearchFunc(b.list[d.block], from, Moment.Compare)
	if !exact {
		place--
	}
	d.place = place
	return d
}

// peek returns the next moment without moving; ok is false at the end.
func (d *descending) peek() (m Moment, ok bool) {
	if d.block < 0 {
		return Moment{}, false
	}
	return d.of.list[d.block][d.place], true
}

// next moves to the next moment.
func (d *descending) next() {
	if d.place--; d.place >= 0 {
		return
	}
	if d.block--; d.block >= 0 {
		d.place = len(d.of.list[d.block]) - 1
	}
}

// Ends orders the records with one kind of end by time.
type Ends struct {
	Own    Timeline // removed on their own
	Others Timeline // removed together with another record
}

// NewEnds returns an empty index.
func NewEnds() Ends { return Ends{NewTimeline(), NewTimeline()} }

// Latest yields the moments of both, from from backwards, latest first.
func (e Ends) Latest(from Moment) iter.Seq[Moment] {
	return func(yield func(Moment) bool) {
		own, others := e.Own.Descend(from), e.Others.Descend(from)
		for {
			m, ok := own.peek()
			walk := &own
			if other, some := others.peek(); some && (!ok || other.Compare(m) > 0) {
				m, ok, walk = other, true, &others
			}
			if !ok || !yield(m) {
				return
			}
			walk.next()
		}
	}
}

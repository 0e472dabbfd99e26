package index

import (
	"cmp"
	"iter"
	"slices"
)

// Moment is a record's place in an order by time: which one, and when. Equal
// times go by id.
type Moment struct {
	At int64
	ID uint64
}

// Compare orders moments.
func (m Moment) Compare(other Moment) int {
	return cmp.Or(cmp.Compare(m.At, other.At), cmp.Compare(m.ID, other.ID))
}

// blockMax is how many moments a block holds. To add one in the middle moves half of
// them, 4 KiB, and to begin one moves the list of blocks: with 512 both are cheap up to
// tens of millions of moments.
const blockMax = 512

// Timeline is an index of records by time. It takes little more than the 16 bytes of
// each moment while most come at the end and go at the beginning, as those of tasks
// do that are all kept equally long.
type Timeline struct{ *blocks }

// blocks are the moments in their order: none is empty, and each is sorted.
type blocks struct {
	list  [][]Moment
	count int
}

// NewTimeline returns an empty one.
func NewTimeline() Timeline { return Timeline{&blocks{}} }

// Add adds a record that is not there yet. It is cheapest at the end.
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

// roomOf returns for how many moments the block behind the last has room at first: a
// timeline of one block is often one of few moments, and grows as it needs.
func roomOf(last int) int {
	if last < 0 {
		return 4
	}
	return blockMax
}

// find returns the place of the block that m belongs to: the last that does not begin
// behind it, or the first one. There must be one.
func (b *blocks) find(m Moment) int {
	last := len(b.list) - 1
	if b.list[last][0].Compare(m) <= 0 { // the usual case for what is added
		return last
	}
	i, found := slices.BinarySearchFunc(b.list, m, func(block []Moment, m Moment) int { return block[0].Compare(m) })
	if found {
		return i
	}
	return max(i-1, 0)
}

// Remove removes a record that is there.
func (b *blocks) Remove(at int64, id uint64) {
	b.count--
	m := Moment{at, id}
	i := b.find(m)
	block := b.list[i]
	place, _ := slices.BinarySearchFunc(block, m, Moment.Compare)
	switch {
	case len(block) == 1:
		b.drop(i)
	case i == 0 && place == 0: // the usual case: the earliest go first
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

// drop takes the block out of the list.
func (b *blocks) drop(i int) {
	if i == 0 {
		b.list[0] = nil
		b.list = b.list[1:]
		return
	}
	b.list = slices.Delete(b.list, i, i+1)
}

// join makes one block of this one and the next if both together fill half of one: so
// what is left of many here and there does not hold the memory of all.
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

// Due returns the earliest record if its time has come.
func (b *blocks) Due(now int64) (id uint64, ok bool) {
	next, ok := b.First()
	return next.ID, ok && next.At <= now
}

// Len returns how many records there are.
func (b *blocks) Len() int { return b.count }

// All yields the records in their order.
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

// Descending walks a timeline backwards. The timeline must not change meanwhile.
type Descending struct {
	of           *blocks
	block, place int // of the moment to come; block -1: there is none
}

// Descend returns a walk that begins with the latest moment that is not behind from.
func (b *blocks) Descend(from Moment) Descending {
	d := Descending{of: b, block: -1}
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

// Peek returns the moment that Next goes behind, ok false at the end.
func (d *Descending) Peek() (m Moment, ok bool) {
	if d.block < 0 {
		return Moment{}, false
	}
	return d.of.list[d.block][d.place], true
}

// Next goes on.
func (d *Descending) Next() {
	if d.place--; d.place >= 0 {
		return
	}
	if d.block--; d.block >= 0 {
		d.place = len(d.of.list[d.block]) - 1
	}
}

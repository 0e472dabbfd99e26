package table

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"
)

// PageSize is how many neighbouring ids share a page. Small pages make the
// copy before a first write cheap, keep few bytes alive for a lonely old
// record, and let one word say which records are there.
const (
	pageBits = 6
	PageSize = 1 << pageBits
	pageMask = PageSize - 1
)

// Table holds records by growing ids, in pages. Looking one up is O(1) while
// ids are dense, else O(log pages).
//
// It is copy-on-write: View captures it by copying the list of pages alone.
// While a view lives, Edit, Put and Remove copy a page, and Edit a record,
// before they first change what a view may see. Everything else changes in
// place. Records must be changed through the pointer that Edit returns, never
// through one of Get.
//
// With a packing, records that rest are kept as bytes, but those of the last
// pages, which are likely to change soon. Each Get of one makes it again.
//
// The zero value is an empty table without a packing. It is not safe for concurrent
// use, but its views are safe beside everything.
type Table[T any] struct {
	pages []*Page[T] // by number; none is empty
	count int
	// epoch grows with each view. No live view has seen a page of this epoch.
	epoch uint64
	views *atomic.Int32 // live ones; nil before the first
	// journal, if not nil, is told of every record before it changes.
	journal  *Journal[T]
	packing  Packing[T] // nil: no record rests
	busy     int        // how many pages at the end have no record that rests
	scratch  []byte     // of rest
	settling settling   // pages with records that are to rest
	draining draining   // pages that may have memory to give back
}

// Page holds the records whose id is number*PageSize + position.
type Page[T any] struct {
	number uint64
	// epoch is the table's when this page last changed. So pages of one number and
	// one epoch in two views of a table have the same records.
	epoch   uint64
	used    uint64   // bit i: there is a record at position i
	fresh   uint64   // bit i: no live view has seen that record, if this is the table's epoch
	resting *resting // the records that are there, but not in records; nil if none is
	records [PageSize]*T
}

// New returns an empty table with the packing. In the last busy pages no record
// rests; with 0 busy ones records rest at once.
func New[T any](p Packing[T], busy int) Table[T] { return Table[T]{packing: p, busy: busy} }

// SetPacking puts another packing, which reads what the one before wrote, in its place.
func (t *Table[T]) SetPacking(p Packing[T]) { t.packing = p }

// SetJournal lets the journal be told of every record before it changes; nil ends
// that.
func (t *Table[T]) SetJournal(j *Journal[T]) { t.journal = j }

// PageOf returns the number of the page that the id is on.
func PageOf(id uint64) uint64 { return id >> pageBits }

// Gaps returns how many places its pages have without a record.
func (t *Table[T]) Gaps() int { return len(t.pages)*PageSize - t.count }

// Len returns how many records there are.
func (t *Table[T]) Len() int { return t.count }

// Get returns the record, nil if there is none. It is read-only.
func (t *Table[T]) Get(id uint64) *T {
	i, ok := findPage(t.pages, id>>pageBits)
	if !ok {
		return nil
	}
	return t.at(t.pages[i], id&pageMask)
}

// Look returns the record as it is kept. It must be there.
func (t *Table[T]) Look(id uint64) Kept[T] {
	i, _ := findPage(t.pages, id>>pageBits)
	p, at := t.pages[i], id&pageMask
	k := Kept[T]{ID: id, Record: p.records[at]}
	if k.Record == nil {
		k.Packed = p.resting.record(at)
	}
	return k
}

// at returns the record at the position of the page, nil if there is none.
func (t *Table[T]) at(p *Page[T], at uint64) *T {
	if r := p.records[at]; r != nil || p.resting == nil || p.used>>at&1 == 0 {
		return r
	}
	return t.packing.Unpack(p.resting.record(at), true)
}

// First returns the lowest id, ok false if there is no record.
func (t *Table[T]) First() (id uint64, ok bool) {
	if len(t.pages) == 0 {
		return 0, false
	}
	p := t.pages[0]
	return p.number<<pageBits | uint64(bits.TrailingZeros64(p.used)), true
}

// Put adds the record under id, in place of one that is there.
func (t *Table[T]) Put(id uint64, record *T) {
	p := t.writablePage(id >> pageBits)
	at, bit := id&pageMask, uint64(1)<<(id&pageMask)
	if p.used&bit == 0 {
		t.count++
	}
	if t.journal != nil {
		t.journal.note(id, t.at(p, at))
	}
	t.wake(p, at)
	p.records[at] = record
	p.used |= bit
	p.fresh |= bit
}

// Edit returns the record for writing, nil if there is none. The pointer is
// good until the next view.
func (t *Table[T]) Edit(id uint64) *T {
	i, ok := findPage(t.pages, id>>pageBits)
	if !ok {
		return nil
	}
	at, bit := id&pageMask, uint64(1)<<(id&pageMask)
	p := t.pages[i]
	if p.used&bit == 0 {
		return nil
	}
	if t.journal != nil {
		t.journal.note(id, t.at(p, at))
	}
	p = t.ownPage(i)
	switch record := p.records[at]; {
	case record == nil:
		p.records[at] = t.packing.Unpack(p.resting.record(at), false)
		p.fresh |= bit
		t.wake(p, at)
	case p.fresh&bit == 0 && t.Live() > 0:
		own := *record
		p.records[at] = &own
		p.fresh |= bit
	}
	return p.records[at]
}

// Remove removes the record. It reports whether there was one.
func (t *Table[T]) Remove(id uint64) bool {
	i, ok := findPage(t.pages, id>>pageBits)
	if !ok {
		return false
	}
	at, bit := id&pageMask, uint64(1)<<(id&pageMask)
	if t.pages[i].used&bit == 0 {
		return false
	}
	if t.journal != nil {
		t.journal.note(id, t.at(t.pages[i], at))
	}
	t.count--
	switch {
	case t.pages[i].used != bit:
		p := t.ownPage(i)
		t.wake(p, at)
		p.records[at] = nil
		p.used &^= bit
		p.fresh &^= bit
	case i == 0: // the usual case: the oldest go first
		t.pages[0] = nil
		t.pages = t.pages[1:]
	default:
		t.pages = slices.Delete(t.pages, i, i+1)
	}
	return true
}

// writablePage returns the page with that number for writing; it makes a
// missing one.
func (t *Table[T]) writablePage(number uint64) *Page[T] {
	i, ok := findPage(t.pages, number)
	if ok {
		return t.ownPage(i)
	}
	p := &Page[T]{number: number, epoch: t.epoch}
	if i == len(t.pages) {
		t.pages = append(t.pages, p)
		t.restPage(i - t.busy)
	} else {
		t.pages = slices.Insert(t.pages, i, p)
	}
	return p
}

// ownPage returns the page at i for writing, after copying it if a live view may
// see it. It is of the table's epoch then.
func (t *Table[T]) ownPage(i int) *Page[T] {
	p := t.pages[i]
	if p.epoch == t.epoch {
		return p
	}
	if t.Live() == 0 {
		p.epoch, p.fresh = t.epoch, p.used
		return p
	}
	own := *p
	own.epoch, own.fresh = t.epoch, 0
	own.resting = own.resting.clone()
	t.pages[i] = &own
	return &own
}

// All yields every record in id order.
func (t *Table[T]) All() iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		ascend(t.pages, 0, func(k Kept[T]) bool {
			if k.Record == nil {
				k.Record = t.Unpack(k.Packed)
			}
			return yield(k.ID, k.Record)
		})
	}
}

// IDs returns the ids of all records, ascending.
func (t *Table[T]) IDs() []uint64 {
	ids := make([]uint64, 0, t.count)
	ascend(t.pages, 0, func(k Kept[T]) bool {
		ids = append(ids, k.ID)
		return true
	})
	return ids
}

// Kept is a record as a table keeps it. Neither it nor its bytes are to be changed.
type Kept[T any] struct {
	ID uint64
	// Record is the record itself, nil if it rests: then packed is what it is kept
	// as.
	Record *T
	Packed []byte
}

// Ascend yields the records as they are kept, from that id upwards, until yield
// returns false.
func (t *Table[T]) Ascend(from uint64, yield func(Kept[T]) bool) { ascend(t.pages, from, yield) }

// Descend is Ascend, downwards.
func (t *Table[T]) Descend(from uint64, yield func(Kept[T]) bool) { descend(t.pages, from, yield) }

// Unpack returns the record that rests as those bytes, with which it shares memory.
func (t *Table[T]) Unpack(packed []byte) *T { return t.packing.Unpack(packed, true) }

// findPage returns the place of the page with that number, or where it would
// have to be.
func findPage[T any](pages []*Page[T], number uint64) (int, bool) {
	last := len(pages) - 1
	switch {
	case last < 0 || number < pages[0].number:
		return 0, false
	case number > pages[last].number:
		return len(pages), false
	}
	// As far behind the first as the numbers say it is without gaps before it, as far
	// before the last without gaps behind it. With gaps it is between the two.
	high := int(min(number-pages[0].number, uint64(last)))
	if pages[high].number == number {
		return high, true
	}
	low := last - int(min(pages[last].number-number, uint64(last)))
	if pages[low].number == number {
		return low, true
	}
	at, found := slices.BinarySearchFunc(pages[low:high], number, func(p *Page[T], number uint64) int {
		return cmp.Compare(p.number, number)
	})
	return low + at, found
}

// ascend yields the records on the pages as they are kept, from id from upwards.
func ascend[T any](pages []*Page[T], from uint64, yield func(Kept[T]) bool) {
	i, exact := findPage(pages, from>>pageBits)
	above := ^uint64(0)
	if exact {
		above <<= from & pageMask
	}
	for _, p := range pages[i:] {
		if !p.ascend(p.used&above, yield) {
			return
		}
		above = ^uint64(0)
	}
}

// ascend yields those of the page's records that used has a bit of, and reports
// whether yield did not end it.
func (p *Page[T]) ascend(used uint64, yield func(Kept[T]) bool) bool {
	for ; used != 0; used &= used - 1 {
		at := uint64(bits.TrailingZeros64(used))
		k := Kept[T]{ID: p.number<<pageBits | at, Record: p.records[at]}
		if k.Record == nil {
			k.Packed = p.resting.record(at)
		}
		if !yield(k) {
			return false
		}
	}
	return true
}

// descend is ascend, downwards.
func descend[T any](pages []*Page[T], from uint64, yield func(Kept[T]) bool) {
	i, exact := findPage(pages, from>>pageBits)
	below := ^uint64(0)
	if exact {
		below >>= pageMask - from&pageMask
		i++
	}
	for i--; i >= 0; i-- {
		p := pages[i]
		for used := p.used & below; used != 0; {
			at := uint64(63 - bits.LeadingZeros64(used))
			used &^= 1 << at
			k := Kept[T]{ID: p.number<<pageBits | at, Record: p.records[at]}
			if k.Record == nil {
				k.Packed = p.resting.record(at)
			}
			if !yield(k) {
				return
			}
		}
		below = ^uint64(0)
	}
}

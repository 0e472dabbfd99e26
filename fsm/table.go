package fsm

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"
)

// pageSize is how many neighbouring ids share a page. Small pages make the
// copy before a first write cheap, keep few bytes alive for a lonely old
// record, and let one word say which records are there.
const (
	pageBits = 6
	pageSize = 1 << pageBits
	pageMask = pageSize - 1
)

// table holds records by growing ids, in pages. Looking one up is O(1) while
// ids are dense, else O(log pages).
//
// It is copy-on-write: view captures it by copying the list of pages alone.
// While a view lives, edit, put and remove copy a page, and edit a record,
// before they first change what a view may see. Everything else changes in
// place. Records must be changed through the pointer that edit returns, never
// through one of get.
//
// With a packing, records that rest are kept as bytes, but those of the last
// pages, which are likely to change soon. Each get of one makes it anew.
//
// The zero value is an empty table. It is not safe for concurrent use, but its
// views are safe beside everything.
type table[T any] struct {
	pages []*page[T] // by number; none is empty
	count int
	// epoch grows with each view. No live view has seen a page of this epoch.
	epoch uint64
	views *atomic.Int32 // live ones; nil before the first
	// journal, if not nil, is told of every record before it changes.
	journal  *journal[T]
	packing  packing[T] // nil: no record rests
	busy     int        // how many pages at the end have no record that rests
	scratch  []byte     // of rest
	draining draining   // pages that may have memory to give back
}

// page holds the records whose id is number*pageSize + position.
type page[T any] struct {
	number uint64
	// epoch is the table's when this page last changed. So pages of one number and
	// one epoch in two views of a table have the same records.
	epoch   uint64
	used    uint64   // bit i: there is a record at position i
	fresh   uint64   // bit i: no live view has seen that record, if this is the table's epoch
	resting *resting // the records that are there, but not in records; nil if none is
	records [pageSize]*T
}

// len returns how many records there are.
func (t *table[T]) len() int { return t.count }

// get returns the record, nil if there is none. It is read-only.
func (t *table[T]) get(id uint64) *T {
	i, ok := findPage(t.pages, id>>pageBits)
	if !ok {
		return nil
	}
	return t.at(t.pages[i], id&pageMask)
}

// at returns the record at the position of the page, nil if there is none.
func (t *table[T]) at(p *page[T], at uint64) *T {
	if r := p.records[at]; r != nil || p.resting == nil || p.used>>at&1 == 0 {
		return r
	}
	return t.packing.unpack(p.resting.record(at), true)
}

// first returns the lowest id, ok false if there is no record.
func (t *table[T]) first() (id uint64, ok bool) {
	if len(t.pages) == 0 {
		return 0, false
	}
	p := t.pages[0]
	return p.number<<pageBits | uint64(bits.TrailingZeros64(p.used)), true
}

// put adds the record under id, in place of one that is there.
func (t *table[T]) put(id uint64, record *T) {
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

// edit returns the record for writing, nil if there is none. The pointer is
// good until the next view.
func (t *table[T]) edit(id uint64) *T {
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
		p.records[at] = t.packing.unpack(p.resting.record(at), false)
		p.fresh |= bit
		t.wake(p, at)
	case p.fresh&bit == 0 && t.viewed():
		own := *record
		p.records[at] = &own
		p.fresh |= bit
	}
	return p.records[at]
}

// remove removes the record. It reports whether there was one.
func (t *table[T]) remove(id uint64) bool {
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
func (t *table[T]) writablePage(number uint64) *page[T] {
	i, ok := findPage(t.pages, number)
	if ok {
		return t.ownPage(i)
	}
	p := &page[T]{number: number, epoch: t.epoch}
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
func (t *table[T]) ownPage(i int) *page[T] {
	p := t.pages[i]
	if p.epoch == t.epoch {
		return p
	}
	if !t.viewed() {
		p.epoch, p.fresh = t.epoch, p.used
		return p
	}
	own := *p
	own.epoch, own.fresh = t.epoch, 0
	own.resting = own.resting.clone()
	t.pages[i] = &own
	return &own
}

// all yields every record in id order.
func (t *table[T]) all() iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		ascend(t.pages, 0, func(p *page[T], at uint64) bool { return yield(p.number<<pageBits|at, t.at(p, at)) })
	}
}

// view captures the table as it is. It costs a copy of the list of pages.
func (t *table[T]) view() view[T] {
	if t.views == nil {
		t.views = new(atomic.Int32)
	}
	t.epoch++
	t.views.Add(1)
	return view[T]{pages: slices.Clone(t.pages), count: t.count, views: t.views}
}

// viewed reports whether a view lives.
func (t *table[T]) viewed() bool { return t.views != nil && t.views.Load() > 0 }

// view is a captured table. Its records never change. It is safe beside
// changes to the table until it is released.
type view[T any] struct {
	pages []*page[T]
	count int
	views *atomic.Int32 // the table's, and of no other
}

// len returns how many records there are.
func (v *view[T]) len() int { return v.count }

// all yields every record in id order, of a table without a packing.
func (v *view[T]) all() iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		ascend(v.pages, 0, func(p *page[T], at uint64) bool { return yield(p.number<<pageBits|at, p.records[at]) })
	}
}

// packed yields every record in id order: as the packing's bytes if it rests, else
// as it is. Who reads a view has no table, and so no packing.
func (v *view[T]) packed() iter.Seq2[[]byte, *T] {
	return func(yield func([]byte, *T) bool) {
		ascend(v.pages, 0, func(p *page[T], at uint64) bool {
			if r := p.records[at]; r != nil {
				return yield(nil, r)
			}
			return yield(p.resting.record(at), nil)
		})
	}
}

// release lets the table change in place again. It must be called once; then
// the view must not be read any more.
func (v *view[T]) release() { v.views.Add(-1) }

// findPage returns the place of the page with that number, or where it would
// have to be.
func findPage[T any](pages []*page[T], number uint64) (int, bool) {
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
	at, found := slices.BinarySearchFunc(pages[low:high], number, func(p *page[T], number uint64) int {
		return cmp.Compare(p.number, number)
	})
	return low + at, found
}

// ascend calls fn with the place of each record from id from upwards until it
// returns false.
func ascend[T any](pages []*page[T], from uint64, fn func(p *page[T], at uint64) bool) {
	i, exact := findPage(pages, from>>pageBits)
	above := ^uint64(0)
	if exact {
		above <<= from & pageMask
	}
	for _, p := range pages[i:] {
		for used := p.used & above; used != 0; used &= used - 1 {
			if !fn(p, uint64(bits.TrailingZeros64(used))) {
				return
			}
		}
		above = ^uint64(0)
	}
}

// descend is ascend, downwards.
func descend[T any](pages []*page[T], from uint64, fn func(p *page[T], at uint64) bool) {
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
			if !fn(p, at) {
				return
			}
		}
		below = ^uint64(0)
	}
}

package record

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"
)

// PageSize is the number of neighbouring ids on a page. Small pages make the copy before a
// first write cheap, keep little memory alive for a single old record, and let one word
// record which positions are used.
const (
	pageBits = 6
	PageSize = 1 << pageBits
	pageMask = PageSize - 1
)

// Table holds records by ascending ids, in pages. A lookup is O(1) while ids are dense,
// else O(log pages).
//
// It is copy-on-write: View copies only the list of pages. While a view is live, Edit, Put
// and Remove copy a page, and Edit a record, before they first change what the view sees.
// Everything else changes in place. Records must be changed only through the pointer from
// Edit, never through one from Get.
//
// With a packing, records are kept as bytes, except on the last pages, whose records are
// likely to change soon. Each Get of a packed record decodes it again.
//
// The zero value is an empty table without a packing. It is not safe for concurrent use,
// but its views may be used concurrently with it.
type Table[T any] struct {
	pages []*Page[T] // by number; none is empty
	count int
	// epoch grows with each view. No live view has seen a page of the current epoch.
	epoch uint64
	views *atomic.Int32 // number of live views; nil before the first
	// journal, if not nil, gets every record before it changes.
	journal  *Journal[T]
	packing  Packing[T] // nil: records are never packed
	busy     int        // how many of the last pages are never packed
	scratch  []byte     // reusable buffer
	settling settling   // pages with records to pack
	draining draining   // pages that may have memory to reclaim
}

// Page holds the records whose ids are number*PageSize + position.
type Page[T any] struct {
	number uint64
	// epoch is the table's epoch when this page last changed. So pages with the same number
	// and epoch in two views of a table have the same records.
	epoch   uint64
	used    uint64   // bit i: there is a record at position i
	fresh   uint64   // bit i: no live view has seen the record, if epoch is the table's
	resting *resting // the packed records, or nil
	records [PageSize]*T
}

// NewTable returns an empty table with the packing. The last busy pages are never packed; with
// 0, records are packed at once.
func NewTable[T any](p Packing[T], busy int) Table[T] { return Table[T]{packing: p, busy: busy} }

// SetPacking replaces the packing. The new one must be able to read what the old one wrote.
func (t *Table[T]) SetPacking(p Packing[T]) { t.packing = p }

// SetJournal lets j record every record before it changes; nil ends that.
func (t *Table[T]) SetJournal(j *Journal[T]) { t.journal = j }

// PageOf returns the number of the page for the id.
func PageOf(id uint64) uint64 { return id >> pageBits }

// Gaps returns how many places in its pages are empty.
func (t *Table[T]) Gaps() int { return len(t.pages)*PageSize - t.count }

// Len returns the number of records.
func (t *Table[T]) Len() int { return t.count }

// Get returns the record, or nil. It is read-only.
func (t *Table[T]) Get(id uint64) *T {
	i, ok := findPage(t.pages, id>>pageBits)
	if !ok {
		return nil
	}
	return t.at(t.pages[i], id&pageMask)
}

// Look returns a record, which must exist, in its stored form.
func (t *Table[T]) Look(id uint64) Kept[T] {
	i, _ := findPage(t.pages, id>>pageBits)
	p, at := t.pages[i], id&pageMask
	k := Kept[T]{ID: id, Record: p.records[at]}
	if k.Record == nil {
		k.Packed = p.resting.record(at)
	}
	return k
}

// at returns the record at the position, or nil.
func (t *Table[T]) at(p *Page[T], at uint64) *T {
	if r := p.records[at]; r != nil || p.resting == nil || p.used>>at&1 == 0 {
		return r
	}
	return t.packing.Unpack(p.resting.record(at), true)
}

// First returns the lowest id; ok is false if the table is empty.
func (t *Table[T]) First() (id uint64, ok bool) {
	if len(t.pages) == 0 {
		return 0, false
	}
	p := t.pages[0]
	return p.number<<pageBits | uint64(bits.TrailingZeros64(p.used)), true
}

// Last returns the highest id; ok is false if the table is empty.
func (t *Table[T]) Last() (id uint64, ok bool) {
	if len(t.pages) == 0 {
		return 0, false
	}
	p := t.pages[len(t.pages)-1]
	return p.number<<pageBits | uint64(bits.Len64(p.used)-1), true
}

// Put adds the record under id, replacing an existing one.
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

// Edit returns the record for writing, or nil. The pointer is valid until the next view.
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

// Remove removes the record and reports whether it existed.
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
	case i == 0: // the usual case: the oldest are removed first
		t.pages[0] = nil
		t.pages = t.pages[1:]
	default:
		t.pages = slices.Delete(t.pages, i, i+1)
	}
	return true
}

// writablePage returns the page with that number for writing, and creates it if needed.
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

// ownPage returns the page at i for writing, copied if a live view may see it. Its epoch is
// then the table's.
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

// Kept is a record as a table keeps it. Neither the record nor its bytes may be changed.
type Kept[T any] struct {
	ID uint64
	// Record is the record, or nil if it is packed; then Packed has its bytes.
	Record *T
	Packed []byte
}

// Ascend yields the records in their stored form, from id from upwards, until yield returns
// false.
func (t *Table[T]) Ascend(from uint64, yield func(Kept[T]) bool) { ascend(t.pages, from, yield) }

// Descend is Ascend downwards.
func (t *Table[T]) Descend(from uint64, yield func(Kept[T]) bool) { descend(t.pages, from, yield) }

// Unpack decodes packed bytes. The record shares memory with them.
func (t *Table[T]) Unpack(packed []byte) *T { return t.packing.Unpack(packed, true) }

// findPage returns the index of the page with that number, or where to insert it.
func findPage[T any](pages []*Page[T], number uint64) (int, bool) {
	last := len(pages) - 1
	switch {
	case last < 0 || number < pages[0].number:
		return 0, false
	case number > pages[last].number:
		return len(pages), false
	}
	// Without gaps the index follows from the distance to the first page, or to the last.
	// With gaps it is between the two.
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

// ascend yields the records on the pages in their stored form, from id from upwards.
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

// ascend yields the page's records at the positions in used. It returns false if yield did.
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

// descend is ascend downwards.
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

// View captures the table. It copies only the list of pages.
func (t *Table[T]) View() View[T] {
	if t.views == nil {
		t.views = new(atomic.Int32)
	}
	t.epoch++
	t.views.Add(1)
	return View[T]{pages: slices.Clone(t.pages), count: t.count, views: t.views}
}

// Live returns the number of live views.
func (t *Table[T]) Live() int {
	if t.views == nil {
		return 0
	}
	return int(t.views.Load())
}

// View is a captured table. Its records never change, and it may be used concurrently with
// changes to the table until it is released. It has no packing, so readers get packed
// records as bytes.
type View[T any] struct {
	pages []*Page[T]
	count int
	views *atomic.Int32 // shared with the table
}

// Len returns the number of records.
func (v *View[T]) Len() int { return v.count }

// All yields every record in its stored form, in the order of ids.
func (v *View[T]) All() iter.Seq[Kept[T]] {
	return func(yield func(Kept[T]) bool) {
		ascend(v.pages, 0, yield)
	}
}

// Pages returns the pages by number. They are read-only.
func (v *View[T]) Pages() []*Page[T] { return v.pages }

// Origin identifies the table of a view: views of the same table have the same Origin. The
// zero value is no table's.
type Origin struct{ views *atomic.Int32 }

// Origin returns the identity of the view's table.
func (v *View[T]) Origin() Origin { return Origin{v.views} }

// Release lets the table change in place again. It must be called exactly once; afterwards
// the view must not be read.
func (v *View[T]) Release() { v.views.Add(-1) }

// Number returns the page's number: its first id divided by PageSize.
func (p *Page[T]) Number() uint64 { return p.number }

// Epoch identifies changes: pages with the same number and epoch in two views of a table
// have the same records.
func (p *Page[T]) Epoch() uint64 { return p.epoch }

// All yields the page's records in their stored form, in the order of ids.
func (p *Page[T]) All() iter.Seq[Kept[T]] {
	return func(yield func(Kept[T]) bool) {
		p.ascend(p.used, yield)
	}
}

// former is a record before a change, nil if it did not exist.
type former[T any] struct {
	id     uint64
	record *T
}

// Journal records what changes of a table replaced, oldest first, since SetJournal. A
// record that changed several times is in it several times.
type Journal[T any] []former[T]

// note records that the record is about to change; nil if it does not exist.
func (j *Journal[T]) note(id uint64, record *T) {
	if record != nil {
		clone := *record
		record = &clone
	}
	*j = append(*j, former[T]{id, record})
}

// IDs returns the ids of the records that changed, ascending.
func (j Journal[T]) IDs() []uint64 {
	ids := make([]uint64, len(j))
	for i := range j {
		ids[i] = j[i].id
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Restore puts the records back to their state before the oldest change.
func (j Journal[T]) Restore(t *Table[T]) {
	for _, f := range slices.Backward(j) {
		if f.record == nil {
			t.Remove(f.id)
		} else {
			t.Put(f.id, f.record)
		}
	}
}

// Load adds a record after all others while the table is being filled and has no views. It
// adds the record itself or, if that is packed, a copy of its bytes. Packed records may be
// read meanwhile but not kept. Call Loaded at the end.
func (t *Table[T]) Load(id uint64, record *T, packed []byte) {
	number, at := id>>pageBits, id&pageMask
	if len(t.pages) == 0 || t.pages[len(t.pages)-1].number != number {
		t.closeLoaded()
		t.pages = append(t.pages, &Page[T]{number: number, epoch: t.epoch})
	}
	p := t.pages[len(t.pages)-1]
	p.used |= 1 << at
	t.count++
	if record != nil {
		p.records[at] = record
		p.fresh |= 1 << at
		return
	}
	if p.resting == nil {
		// The size of the page's memory is unknown until the page is complete.
		p.resting = &resting{bytes: t.scratch[:0]}
	}
	r := p.resting
	r.places[at] = place{uint32(len(r.bytes)), uint16(len(packed))}
	r.bytes = append(r.bytes, packed...)
	r.live += len(packed)
	r.count++
}

// closeLoaded copies the packed records of the last page into separate memory.
func (t *Table[T]) closeLoaded() {
	if len(t.pages) == 0 {
		return
	}
	if r := t.pages[len(t.pages)-1].resting; r != nil {
		t.scratch = r.bytes
		r.bytes = append(make([]byte, 0, len(r.bytes)), r.bytes...)
	}
}

// Loaded ends the loading. It unpacks the records of the last pages.
func (t *Table[T]) Loaded() {
	t.closeLoaded()
	for _, p := range t.pages[max(0, len(t.pages)-t.busy):] {
		if p.resting == nil {
			continue
		}
		for at := range uint64(PageSize) {
			if p.resting.places[at].size > 0 {
				p.records[at] = t.packing.Unpack(p.resting.record(at), false)
				p.fresh |= 1 << at
			}
		}
		p.resting = nil
	}
}

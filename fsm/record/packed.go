package record

import "math/bits"

// Packing says how a table packs records into bytes.
type Packing[T any] interface {
	// Rests reports whether the record should be packed. Then Pack must append between 1
	// and 65,535 bytes.
	Rests(record *T) bool
	// Pack appends the encoded record with this id.
	Pack(b []byte, id uint64, record *T) []byte
	// Unpack is the inverse of Pack. The record may share memory with b only if shared is
	// true; b then lives as long as the record and is never changed.
	Unpack(b []byte, shared bool) *T
}

// resting holds the packed records of one page, in one piece of memory without pointers. So
// even a table of ten million has few objects for the garbage collector, and a record takes
// little more than its own bytes.
//
// Bytes are only appended, so that a copy can share them with the original. The space of
// removed records is reclaimed when it exceeds half, but with a delay (see draining).
type resting struct {
	bytes  []byte
	live   int // bytes of packed records
	count  int
	places [PageSize]place // by position in the page
}

// place is where a packed record is. Start and size are adjacent so that a lookup touches
// only one cache line for both.
type place struct {
	start uint32 // in bytes
	size  uint16 // 0: no packed record here
}

// record returns the bytes of the packed record at this position.
func (r *resting) record(at uint64) []byte {
	p := r.places[at]
	end := p.start + uint32(p.size)
	return r.bytes[p.start:end:end]
}

// clone returns a copy that can be changed, or nil for nil. The original must not be
// changed any more.
func (r *resting) clone() *resting {
	if r == nil {
		return nil
	}
	own := *r
	return &own
}

// add adds a record at a position without one.
func (r *resting) add(at uint64, record []byte) {
	if len(r.bytes)+len(record) > cap(r.bytes) {
		// Make room for several, so that tasks that come and go do not move all others each
		// time.
		more := max(1, r.count/8, min(r.count, PageSize-r.count))
		r.move(r.live + more*len(record))
	}
	r.places[at] = place{uint32(len(r.bytes)), uint16(len(record))}
	r.bytes = append(r.bytes, record...)
	r.live += len(record)
	r.count++
}

// remove removes the record at this position.
func (r *resting) remove(at uint64) {
	r.live -= int(r.places[at].size)
	r.count--
	r.places[at] = place{}
}

// sparse reports whether more than half of the memory is unused.
func (r *resting) sparse() bool { return r.live < cap(r.bytes)/2 }

// move moves the records into memory of that size.
func (r *resting) move(size int) {
	b := make([]byte, 0, size)
	for at := range uint64(PageSize) {
		if r.places[at].size == 0 {
			continue
		}
		start := uint32(len(b))
		b = append(b, r.record(at)...)
		r.places[at].start = start
	}
	r.bytes = b
}

// Rest allows the record to be packed, unless it is on one of the last pages or not
// suitable. It is packed only when its page has settled. Pointers to it stay valid, but
// changes through them are lost from then on.
func (t *Table[T]) Rest(id uint64) {
	i, ok := findPage(t.pages, id>>pageBits)
	if !ok || t.packing == nil || i >= len(t.pages)-t.busy {
		return
	}
	if record := t.pages[i].records[id&pageMask]; record == nil || !t.packing.Rests(record) {
		return
	}
	number := t.pages[i].number
	if t.busy == 0 {
		t.settle(number)
		return
	}
	if last := &t.settling[number%uint64(len(t.settling))]; *last != number {
		t.settle(*last)
		*last = number
	}
}

// settling has the numbers of pages with records to pack. A queue that is worked off leaves
// them one by one in the same page: packing each at once would move the packed ones again
// and again, and would pack a record twice if it is looked at once more. So a page is
// packed when another page takes its place here.
type settling [16]uint64

// settle packs the suitable records of the page, if it still exists.
func (t *Table[T]) settle(number uint64) {
	i, ok := findPage(t.pages, number)
	if !ok || i >= len(t.pages)-t.busy {
		return
	}
	var which uint64 // one bit per position
	for at, record := range t.pages[i].records {
		if record != nil && t.packing.Rests(record) {
			which |= 1 << at
		}
	}
	switch resting := t.pages[i].resting; {
	case which == 0:
	case resting == nil || resting.count <= bits.OnesCount64(which):
		t.restPage(i)
	default:
		for ; which != 0; which &= which - 1 {
			t.rest(i, uint64(bits.TrailingZeros64(which)))
		}
	}
}

// rest packs one record of the page at i.
func (t *Table[T]) rest(i int, at uint64) {
	p := t.ownPage(i)
	t.scratch = t.packing.Pack(t.scratch[:0], p.number<<pageBits|at, p.records[at])
	p.resting.add(at, t.scratch)
	p.records[at] = nil
	p.fresh &^= 1 << at
}

// restPage packs all suitable records of the page at i, if it exists.
func (t *Table[T]) restPage(i int) {
	if i < 0 || t.packing == nil {
		return
	}
	p := t.pages[i]
	if r := p.resting; r != nil && r.count == bits.OnesCount64(p.used) && r.live >= cap(r.bytes)*15/16 {
		return // all of it is packed closely, as when the pages behind it had been emptied
	}
	all := &resting{bytes: t.scratch[:0]}
	for at := range uint64(PageSize) {
		switch record := p.records[at]; {
		case record != nil && t.packing.Rests(record):
			start := len(all.bytes)
			all.bytes = t.packing.Pack(all.bytes, p.number<<pageBits|at, record)
			all.places[at] = place{uint32(start), uint16(len(all.bytes) - start)}
		case p.resting != nil && p.resting.places[at].size > 0:
			start := len(all.bytes)
			all.bytes = append(all.bytes, p.resting.record(at)...)
			all.places[at] = place{uint32(start), p.resting.places[at].size}
		default:
			continue
		}
		all.count++
	}
	t.scratch = all.bytes
	if all.count == 0 {
		return
	}
	all.live = len(all.bytes)
	own := make([]byte, all.live) // allocated right before it is filled, so it need not be cleared
	copy(own, all.bytes)
	all.bytes = own
	p = t.ownPage(i)
	p.resting = all
	for at := range uint64(PageSize) {
		if all.places[at].size > 0 {
			p.records[at] = nil
			p.fresh &^= 1 << at
		}
	}
}

// draining has the numbers of pages that records have recently left. A queue that is worked
// off takes all packed records of a page one by one: reclaiming space each time it exceeds
// half would move every record once more. So a page is tidied when another page takes its
// place here, and at most 16 pages have more than half to reclaim.
type draining [16]uint64

// wake drops the bytes of a record, if it is packed.
func (t *Table[T]) wake(p *Page[T], at uint64) {
	r := p.resting
	switch {
	case r == nil || r.places[at].size == 0:
		return
	case r.count == 1:
		p.resting = nil
		return
	}
	r.remove(at)
	if last := &t.draining[p.number%uint64(len(t.draining))]; *last != p.number {
		t.tidy(*last)
		*last = p.number
	}
}

// tidy reclaims the unused memory of the page if it still exists and that is more than
// half.
func (t *Table[T]) tidy(number uint64) {
	i, ok := findPage(t.pages, number)
	if !ok {
		return
	}
	if r := t.pages[i].resting; r == nil || !r.sparse() {
		return
	}
	r := t.ownPage(i).resting
	r.move(r.live)
}

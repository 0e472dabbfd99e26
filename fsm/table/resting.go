package table

import "math/bits"

// Packing says how the records of a table are kept that rest.
type Packing[T any] interface {
	// Rests reports whether the record is one to keep as bytes, of which Pack
	// appends at least one and at most 65,535 then.
	Rests(record *T) bool
	// Pack appends the record that has the id.
	Pack(b []byte, id uint64, record *T) []byte
	// Unpack is the inverse of Pack. Only if shared is true may the record share
	// memory with b, which then lives on with it and is never changed.
	Unpack(b []byte, shared bool) *T
}

// resting holds the records of one page that rest, one behind the other in one
// piece of memory without pointers: so a table of ten million has few pieces for
// the collector to look at, and a record takes little more than its own bytes.
//
// Bytes are only added: a copy shares them with the original. What records leave
// behind goes when it is more than half, but not at once (draining).
type resting struct {
	bytes  []byte
	live   int // bytes of records that rest
	count  int
	places [PageSize]place // by position in the page
}

// place is where a record rests. Start and size stand side by side: a record that
// nobody looked at for long costs one line of the processor's cache for both.
type place struct {
	start uint32 // in bytes
	size  uint16 // 0: no record rests there
}

// record returns the bytes of the record at that position of the page.
func (r *resting) record(at uint64) []byte {
	p := r.places[at]
	end := p.start + uint32(p.size)
	return r.bytes[p.start:end:end]
}

// clone returns a copy that can be changed, nil of nil. The original must not be
// changed any more.
func (r *resting) clone() *resting {
	if r == nil {
		return nil
	}
	own := *r
	return &own
}

// add adds the record at a position where none rests.
func (r *resting) add(at uint64, record []byte) {
	if len(r.bytes)+len(record) > cap(r.bytes) {
		// Room is made for some more, or tasks that come and go would move all others
		// each time.
		more := max(1, r.count/8, min(r.count, PageSize-r.count))
		r.move(r.live + more*len(record))
	}
	r.places[at] = place{uint32(len(r.bytes)), uint16(len(record))}
	r.bytes = append(r.bytes, record...)
	r.live += len(record)
	r.count++
}

// remove removes the record at that position.
func (r *resting) remove(at uint64) {
	r.live -= int(r.places[at].size)
	r.count--
	r.places[at] = place{}
}

// sparse reports whether what records left behind is more than half.
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

// Rest lets the record be kept as bytes, if it is one for that and not in one of
// the last pages. That is done when its page has settled: pointers to it stay what they
// are, but what is changed through them is lost by then.
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

// settling has the numbers of pages that have records which are to rest. A queue that is
// worked off leaves them one after the other in a page: to add each to those that rest
// would move these again and again, and one that is looked at once more would be packed
// twice. So that waits until another page takes the place here.
type settling [16]uint64

// settle lets the records of the page be kept as bytes that are for that, if there still
// is one.
func (t *Table[T]) settle(number uint64) {
	i, ok := findPage(t.pages, number)
	if !ok || i >= len(t.pages)-t.busy {
		return
	}
	var which uint64 // a bit of each position
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

// rest adds the record at the position of the page at i to those that rest there.
func (t *Table[T]) rest(i int, at uint64) {
	p := t.ownPage(i)
	t.scratch = t.packing.Pack(t.scratch[:0], p.number<<pageBits|at, p.records[at])
	p.resting.add(at, t.scratch)
	p.records[at] = nil
	p.fresh &^= 1 << at
}

// restPage lets all records of a page be kept as bytes that are for that, if there
// is a page at i.
func (t *Table[T]) restPage(i int) {
	if i < 0 || t.packing == nil {
		return
	}
	p := t.pages[i]
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
	own := make([]byte, all.live) // at once with what follows: it need not be cleared
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

// draining has the numbers of pages that records left of late. A queue that is worked
// off takes all that rest in a page one after the other: to give back what they leave
// behind each time it is more than half would move every record once more. So that
// waits until another page takes the place here; no more pages than there are places
// have more than half to give back.
type draining [16]uint64

// wake forgets the bytes of a record, if it rests.
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

// tidy gives back what records left behind in the page, if there still is one and
// that is more than half.
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

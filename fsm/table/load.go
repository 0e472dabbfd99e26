package table

// Load adds a record behind all that are there, while the table is filled and
// nobody views it: as it is or, if it rests, as its bytes, which are copied. What
// rests may be looked at meanwhile, but is not to be kept. Loaded ends it.
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
		// Until the page is full nobody knows how much memory it will take.
		p.resting = &resting{bytes: t.scratch[:0]}
	}
	r := p.resting
	r.places[at] = place{uint32(len(r.bytes)), uint16(len(packed))}
	r.bytes = append(r.bytes, packed...)
	r.live += len(packed)
	r.count++
}

// closeLoaded gives what rests in the last page memory of its own.
func (t *Table[T]) closeLoaded() {
	if len(t.pages) == 0 {
		return
	}
	if r := t.pages[len(t.pages)-1].resting; r != nil {
		t.scratch = r.bytes
		r.bytes = append(make([]byte, 0, len(r.bytes)), r.bytes...)
	}
}

// Loaded ends what Load began: in the last pages no record rests.
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

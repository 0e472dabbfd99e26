package table

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

// closeLoaded copies the packed records of the last page into memory of their own.
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

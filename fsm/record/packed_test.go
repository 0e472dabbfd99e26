package record

import (
	"testing"

	"github.com/claimq/claimq/fsm/record/recordtest"
)

// Resting records of a page are in one piece of memory with no room to spare, whether it
// came one by one or was loaded; in the last pages nothing rests.
func TestTable_restsInPages(t *testing.T) {
	t.Parallel()
	const pages, busy = 10, 3
	loaded := NewTable[recordtest.Record](recordtest.EvenRests{}, busy)
	grown := NewTable[recordtest.Record](recordtest.EvenRests{}, busy)
	for id := range uint64(pages * PageSize) {
		r := &recordtest.Record{Value: int(2 * id)}
		grown.Put(id, r)
		loaded.Load(id, nil, recordtest.EvenRests{}.Pack(nil, id, r))
	}
	loaded.Loaded()
	for name, tab := range map[string]*Table[recordtest.Record]{"grown": &grown, "loaded": &loaded} {
		for i, p := range tab.pages {
			r := p.resting
			if rests, want := r != nil, i < pages-busy; rests != want {
				t.Errorf("%s: page %d of %d rests: %v, want %v", name, i, pages, rests, want)
			}
			if r != nil && (r.count != PageSize || cap(r.bytes) != r.live || len(r.bytes) != r.live) {
				t.Errorf("%s: page %d has %d records, and room for %d bytes, of which %d are used", name, i, r.count, cap(r.bytes), r.live)
			}
		}
		for id := range uint64(pages * PageSize) {
			if got := tab.Get(id); got.Value != int(2*id) {
				t.Fatalf("%s: record %d is %d", name, id, got.Value)
			}
		}
	}
}

// What records leave behind that rested is given back, but for a few pages: whether
// they leave a page one after the other or here and there.
func TestTable_givesBack(t *testing.T) {
	t.Parallel()
	const pages = 100
	for name, order := range map[string]func(n int) uint64{
		"page by page":   func(n int) uint64 { return uint64(n) },
		"here and there": func(n int) uint64 { return uint64(n%pages)*PageSize + uint64(n/pages) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := NewTable[recordtest.Record](recordtest.EvenRests{}, 0)
			for id := range uint64(pages * PageSize) {
				tab.Put(id, &recordtest.Record{Value: int(2 * id)})
				tab.Rest(id)
			}
			for n := range pages * PageSize * 3 / 4 {
				tab.Edit(order(n))
			}
			sparse := 0
			for _, p := range tab.pages {
				if p.resting != nil && p.resting.sparse() {
					sparse++
				}
			}
			if most := len(tab.draining); sparse > most {
				t.Errorf("%d pages have memory to give back, %d may", sparse, most)
			}
			for id := range uint64(pages * PageSize) {
				if got := tab.Get(id); got.Value != int(2*id) {
					t.Fatalf("record %d is %d", id, got.Value)
				}
			}
		})
	}
}

// What is to rest waits until its page has settled: so a page whose records leave and
// come back one after the other is packed once, into one piece of memory, and only few
// pages have records that wait.
func TestTable_settles(t *testing.T) {
	t.Parallel()
	const pages, busy = 100, 1
	tab := NewTable[recordtest.Record](recordtest.EvenRests{}, busy)
	for id := range uint64((pages + busy) * PageSize) {
		tab.Put(id, &recordtest.Record{Value: int(2*id) + 1}) // odd: it does not rest
	}
	for id := range uint64(pages * PageSize) {
		tab.Edit(id).Value = int(2 * id)
		tab.Rest(id)
		if p := tab.pages[id>>pageBits]; p.resting != nil {
			t.Fatalf("record %d rests although its page has not settled", id)
		}
		tab.Edit(id)
		tab.Rest(id)
	}
	for i, p := range tab.pages[:pages-len(tab.settling)] {
		switch r := p.resting; {
		case r == nil || r.count != PageSize:
			t.Errorf("page %d does not rest", i)
		case cap(r.bytes) != r.live:
			t.Errorf("page %d has room for %d bytes, of which %d are used", i, cap(r.bytes), r.live)
		}
	}
	// One of each page again: it is added to those that rest.
	for id := uint64(7); id < pages*PageSize; id += PageSize {
		tab.Edit(id).Value += 2
		tab.Rest(id)
	}
	settled := 0
	for i, p := range tab.pages[:pages] {
		if p.records[7] == nil && p.resting.count == PageSize {
			settled++
		}
		if id := uint64(i*PageSize + 7); tab.Get(id).Value != int(2*id)+2 {
			t.Errorf("record %d is %d", id, tab.Get(id).Value)
		}
	}
	if want := pages - len(tab.settling); settled != want {
		t.Errorf("%d pages have settled, want %d", settled, want)
	}
}

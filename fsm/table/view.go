package table

import (
	"iter"
	"slices"
	"sync/atomic"
)

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

// All yields every record as it is kept, in the order of ids.
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

// All yields the page's records as they are kept, in the order of ids.
func (p *Page[T]) All() iter.Seq[Kept[T]] {
	return func(yield func(Kept[T]) bool) {
		p.ascend(p.used, yield)
	}
}

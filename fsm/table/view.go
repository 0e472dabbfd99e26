package table

import (
	"iter"
	"slices"
	"sync/atomic"
)

// View captures the table as it is. It costs a copy of the list of pages.
func (t *Table[T]) View() View[T] {
	if t.views == nil {
		t.views = new(atomic.Int32)
	}
	t.epoch++
	t.views.Add(1)
	return View[T]{pages: slices.Clone(t.pages), count: t.count, views: t.views}
}

// Live returns how many views live.
func (t *Table[T]) Live() int {
	if t.views == nil {
		return 0
	}
	return int(t.views.Load())
}

// View is a captured table. Its records never change. It is safe beside
// changes to the table until it is released. Who reads one has no table, and so no
// packing.
type View[T any] struct {
	pages []*Page[T]
	count int
	views *atomic.Int32 // the table's, and of no other
}

// Len returns how many records there are.
func (v *View[T]) Len() int { return v.count }

// All yields every record as it is kept, in id order.
func (v *View[T]) All() iter.Seq[Kept[T]] {
	return func(yield func(Kept[T]) bool) {
		ascend(v.pages, 0, yield)
	}
}

// Pages returns its pages, by number. They are read-only.
func (v *View[T]) Pages() []*Page[T] { return v.pages }

// Origin says of which table a view is. Views have the same one if they are of the
// same table; the zero value is of none.
type Origin struct{ views *atomic.Int32 }

// Origin says of which table the view is.
func (v *View[T]) Origin() Origin { return Origin{v.views} }

// Release lets the table change in place again. It must be called once; then
// the view must not be read any more.
func (v *View[T]) Release() { v.views.Add(-1) }

// Number is that of its first id, over the page's size.
func (p *Page[T]) Number() uint64 { return p.number }

// Epoch tells changes apart: pages of one number and one epoch in two views of a
// table have the same records.
func (p *Page[T]) Epoch() uint64 { return p.epoch }

// All yields the page's records as they are kept, in id order.
func (p *Page[T]) All() iter.Seq[Kept[T]] {
	return func(yield func(Kept[T]) bool) {
		p.ascend(p.used, yield)
	}
}

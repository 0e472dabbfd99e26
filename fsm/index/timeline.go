package index

import (
	"iter"

	"github.com/tidwall/btree"
)

// Moment is a record's place in an order by time: which one, and when. Equal
// times go by id.
type Moment struct {
	At int64
	ID uint64
}

// Timeline is an index of records by time.
type Timeline struct{ tree *btree.BTreeG[Moment] }

// NewTimeline returns an empty one.
func NewTimeline() Timeline {
	return Timeline{btree.NewBTreeGOptions(func(a, b Moment) bool {
		return a.At < b.At || a.At == b.At && a.ID < b.ID
	}, btree.Options{NoLocks: true})}
}

// Add adds a record that is not there yet. It is cheapest at the end.
func (l Timeline) Add(at int64, id uint64) { l.tree.Load(Moment{at, id}) }

// Remove removes a record that is there.
func (l Timeline) Remove(at int64, id uint64) { l.tree.Delete(Moment{at, id}) }

// First returns the earliest record.
func (l Timeline) First() (first Moment, ok bool) { return l.tree.Min() }

// Due returns the earliest record if its time has come.
func (l Timeline) Due(now int64) (id uint64, ok bool) {
	next, ok := l.First()
	return next.ID, ok && next.At <= now
}

// Len returns how many records there are.
func (l Timeline) Len() int { return l.tree.Len() }

// All yields the records in their order.
func (l Timeline) All() iter.Seq[Moment] {
	return func(yield func(Moment) bool) { l.tree.Scan(yield) }
}

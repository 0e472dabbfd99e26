package table

import "slices"

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

// Restore puts the records back as they were before the oldest change.
func (j Journal[T]) Restore(t *Table[T]) {
	for _, f := range slices.Backward(j) {
		if f.record == nil {
			t.Remove(f.id)
		} else {
			t.Put(f.id, f.record)
		}
	}
}

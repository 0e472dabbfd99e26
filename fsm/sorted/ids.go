package sorted

import "github.com/tidwall/btree"

// IDs is a set of ids.
type IDs interface {
	Len() int

	// Min returns the lowest id; ok is false if the set is empty.
	Min() (id uint64, ok bool)

	// GetAt returns the i-th id, from 0; ok is false if there are fewer.
	GetAt(i int) (id uint64, ok bool)

	// Keys returns all ids.
	Keys() []uint64

	Insert(id uint64)
	Delete(id uint64)

	// Copy returns a copy, as Map.Copy does.
	Copy() IDs
}

// NewIDs returns an empty set.
func NewIDs() IDs { return &ids{} }

// ids implements IDs.
type ids struct{ btree.Set[uint64] }

func (s *ids) Copy() IDs { return &ids{*s.Set.Copy()} }

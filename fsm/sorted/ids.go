package sorted

import "github.com/tidwall/btree"

// IDs is a set of ids.
type IDs interface {
	Len() int

	// Min returns the lowest one, if there is one.
	Min() (id uint64, ok bool)

	// GetAt returns the one that comes i-th, from 0, if there are so many.
	GetAt(i int) (id uint64, ok bool)

	// Keys returns all of them.
	Keys() []uint64

	Insert(id uint64)
	Delete(id uint64)

	// Copy returns a copy, as that of a Map.
	Copy() IDs
}

// NewIDs returns an empty set.
func NewIDs() IDs { return &ids{} }

// ids is an IDs.
type ids struct{ btree.Set[uint64] }

func (s *ids) Copy() IDs { return &ids{*s.Set.Copy()} }

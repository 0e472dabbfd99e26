package index

import (
	"cmp"

	"github.com/tidwall/btree"
)

// Map, IDs and List are B-trees. They are interfaces to keep compilation fast: otherwise every
// package that uses a Machine would compile all methods of each tree in it again, some
// thousand functions.

// Map holds values by key, in the order of the keys.
type Map[K cmp.Ordered, V any] interface {
	Len() int

	// Get returns the key's value; ok is false if the key is not in the map.
	Get(key K) (value V, ok bool)

	// GetAt returns the i-th entry, from 0; ok is false if there are fewer.
	GetAt(i int) (key K, value V, ok bool)

	// Max returns the last entry; ok is false if the map is empty.
	Max() (key K, value V, ok bool)

	// Keys returns all keys.
	Keys() []K

	// Set sets the key's value and returns the one that it replaces, if any.
	Set(key K, value V) (old V, had bool)

	// Load is Set, optimized for a key after all others.
	Load(key K, value V) (old V, had bool)

	// Delete removes the key and returns its value.
	Delete(key K) (old V, had bool)

	// PopMin removes the first entry; ok is false if the map is empty.
	PopMin() (key K, value V, ok bool)

	// Scan calls fn with each entry in order until it returns false.
	Scan(fn func(key K, value V) bool)

	// Ascend calls fn with each entry from the key on until it returns false.
	Ascend(from K, fn func(key K, value V) bool)

	// Descend calls fn with each entry from the key backwards until it returns false.
	Descend(from K, fn func(key K, value V) bool)

	// Copy returns a copy. It is almost free until one of the two changes; then parts are
	// copied one by one.
	Copy() Map[K, V]
}

// NewMap returns an empty map.
func NewMap[K cmp.Ordered, V any]() Map[K, V] { return &tree[K, V]{} }

// tree implements Map.
type tree[K cmp.Ordered, V any] struct{ btree.Map[K, V] }

func (t *tree[K, V]) Copy() Map[K, V] { return &tree[K, V]{*t.Map.Copy()} }

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

// List holds values in a custom order. It holds only one of several values that are equal
// in the order.
type List[T any] interface {
	Len() int

	// Min returns the first value; ok is false if the list is empty.
	Min() (value T, ok bool)

	// Set adds a value. It returns the equal value that it replaces, if any.
	Set(value T) (old T, had bool)

	// Delete removes the value that is equal to this one and returns it.
	Delete(value T) (old T, had bool)

	// Scan calls fn with each value in order until it returns false.
	Scan(fn func(value T) bool)
}

// NewList returns an empty list in the order of less.
func NewList[T any](less func(a, b T) bool) List[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

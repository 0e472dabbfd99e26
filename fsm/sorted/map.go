package sorted

import (
	"cmp"

	"github.com/tidwall/btree"
)

// Map is values by their keys, in the order of these.
type Map[K cmp.Ordered, V any] interface {
	Len() int

	// Get returns the key's value, if it has one.
	Get(key K) (value V, ok bool)

	// GetAt returns the one that comes i-th, from 0, if there are so many.
	GetAt(i int) (key K, value V, ok bool)

	// Max returns the last one, if there is one.
	Max() (key K, value V, ok bool)

	// Keys returns all keys.
	Keys() []K

	// Set gives the key a value, and returns the one that it had.
	Set(key K, value V) (old V, had bool)

	// Load is Set, and quickest behind all others.
	Load(key K, value V) (old V, had bool)

	// Delete removes the key, and returns its value.
	Delete(key K) (old V, had bool)

	// PopMin removes the first one, if there is one.
	PopMin() (key K, value V, ok bool)

	// Scan calls fn with all of them until it returns false.
	Scan(fn func(key K, value V) bool)

	// Ascend calls fn with those from the key on until it returns false.
	Ascend(from K, fn func(key K, value V) bool)

	// Descend calls fn with those up to the key, the last one first, until it returns false.
	Descend(from K, fn func(key K, value V) bool)

	// Copy returns a copy. It costs next to nothing until one of the two changes: then
	// parts are copied one by one.
	Copy() Map[K, V]
}

// NewMap returns an empty map.
func NewMap[K cmp.Ordered, V any]() Map[K, V] { return &tree[K, V]{} }

// tree is a Map.
type tree[K cmp.Ordered, V any] struct{ btree.Map[K, V] }

func (t *tree[K, V]) Copy() Map[K, V] { return &tree[K, V]{*t.Map.Copy()} }

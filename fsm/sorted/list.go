package sorted

import "github.com/tidwall/btree"

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

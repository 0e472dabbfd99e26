package sorted

import "github.com/tidwall/btree"

// List is values in an order of their own. Of two that come neither before the other there
// is one.
type List[T any] interface {
	Len() int

	// Min returns the first one, if there is one.
	Min() (value T, ok bool)

	// Set adds a value, and returns the one whose place it takes.
	Set(value T) (old T, had bool)

	// Delete removes the value in this one's place, and returns it.
	Delete(value T) (old T, had bool)

	// Scan calls fn with all of them until it returns false.
	Scan(fn func(value T) bool)
}

// NewList returns an empty list in the order of less.
func NewList[T any](less func(a, b T) bool) List[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

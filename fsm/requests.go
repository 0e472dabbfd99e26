package fsm

import "github.com/tidwall/btree"

// forgetAt is when a claim request is forgotten, and which.
type forgetAt struct {
	u   int64
	seq uint64
}

// newForgetting returns an empty set of requests in the order in which they
// are forgotten: by time, then by sequence number.
func newForgetting() *btree.BTreeG[forgetAt] {
	return btree.NewBTreeGOptions(func(a, b forgetAt) bool {
		return a.u < b.u || a.u == b.u && a.seq < b.seq
	}, btree.Options{NoLocks: true})
}

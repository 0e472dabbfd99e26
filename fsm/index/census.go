package index

import "math/bits"

// census counts tasks by priority, and how many have a higher one. It is a binary trie over
// the bits of the priorities present, so its shape depends on them alone and every
// operation takes at most 32 steps.
type census struct {
	root *censusNode
	// spare are nodes for the next new priority, because in a type that is mostly empty a
	// priority comes and goes with each task.
	spare      *censusNode
	spareCount int
}

// censusNode stands for one priority, or for several that are equal down to some bit.
type censusNode struct {
	key   uint32 // one of its priorities
	low   uint8  // how many low bits its priorities may differ in, the highest of them does; 0 = one priority
	count int64  // number of tasks
	// child splits its priorities by the highest bit in which they differ. Spare nodes are
	// linked by child[0].
	child [2]*censusNode
}

// censusSparesMax bounds census.spareCount: a priority takes two nodes.
const censusSparesMax = 2

// censusKey orders priorities as unsigned numbers.
func censusKey(priority int32) uint32 { return uint32(priority) ^ 1<<31 }

// side returns the index of the child that the key belongs to. The node must have children.
func (n *censusNode) side(key uint32) uint32 { return key >> (n.low - 1) & 1 }

// add counts one more task of the priority.
func (c *census) add(priority int32) {
	key := censusKey(priority)
	at := &c.root
	for *at != nil {
		n := *at
		if apart := key ^ n.key; apart>>n.low != 0 {
			above := c.node(censusNode{key: key, low: uint8(bits.Len32(apart)), count: n.count + 1})
			above.child[above.side(n.key)] = n
			above.child[above.side(key)] = c.node(censusNode{key: key, count: 1})
			*at = above
			return
		}
		n.count++
		if n.low == 0 {
			return
		}
		at = &n.child[n.side(key)]
	}
	*at = c.node(censusNode{key: key, count: 1})
}

// remove counts one task less. There must be one of this priority.
func (c *census) remove(priority int32) {
	key := censusKey(priority)
	var above **censusNode
	at := &c.root
	for (*at).low > 0 {
		(*at).count--
		above, at = at, &(*at).child[(*at).side(key)]
	}
	n := *at
	if n.count--; n.count > 0 {
		return
	}
	if above == nil {
		c.root = nil
	} else {
		parent := *above
		*above = parent.child[1-parent.side(key)]
		c.free(parent)
	}
	c.free(n)
}

// above returns how many tasks have a higher priority.
func (c *census) above(priority int32) (count int64) {
	key := censusKey(priority)
	for n := c.root; n != nil; n = n.child[n.side(key)] {
		if apart := key ^ n.key; apart>>n.low != 0 {
			if n.key > key {
				count += n.count
			}
			return count
		}
		if n.low == 0 {
			return count
		}
		if n.side(key) == 0 {
			count += n.child[1].count
		}
	}
	return count
}

// node returns a node with the contents of n.
func (c *census) node(n censusNode) *censusNode {
	got := c.spare
	if got == nil {
		return &n
	}
	c.spare = got.child[0]
	c.spareCount--
	*got = n
	return got
}

// free keeps the node for reuse if there is room.
func (c *census) free(n *censusNode) {
	if c.spareCount >= censusSparesMax {
		return
	}
	*n = censusNode{child: [2]*censusNode{c.spare}}
	c.spare = n
	c.spareCount++
}

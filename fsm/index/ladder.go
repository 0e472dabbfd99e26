package index

import (
	"math"
	"math/bits"
)

// ladder finds the first task in every order, and the k-th, among the tasks of all types
// with more than a given number of attempts left. It is a binary trie over the bits of
// attempts left and name, so its shape depends only on its rungs, and an operation takes at
// most as many steps as there are bits in which rungs differ.
type ladder struct{ root *fork }

// rung holds the claimable tasks of one type with the same number of attempts left.
type rung struct {
	of   *Type
	key  string // the share key, or ""
	left int32  // attempts left, not negative
	name string // identifies the rung together with left
	sum
	stands bool // it is in the ladder
}

// sum is the number of tasks in a part of the ladder, and the first of them.
type sum struct {
	count int
	first ranks
}

// fork is a part of the ladder: one rung, or two parts, with the rungs of the first before
// those of the second.
type fork struct {
	sum
	least, most int32    // attempts left of its first rung and of its last
	bit         int      // the first bit in which its parts differ; aRung if it is one rung
	parts       [2]*fork // nil for one rung
	rung        *rung
}

// aRung is greater than every bit.
const aRung = math.MaxInt

// len returns the number of tasks at the last put.
func (r *rung) len() int { return r.count }

// symbolBits is the number of bits of a rung's key for each byte of its name; a 0 bit
// follows the name's end. The bits of left come first.
const symbolBits, leftBits = 9, 32

// symbol returns the bits for one byte of the name.
func (r *rung) symbol(at int) uint32 {
	if at < len(r.name) {
		return 1<<(symbolBits-1) | uint32(r.name[at])
	}
	return 0
}

// side returns one bit of the rung's key.
func (r *rung) side(bit int) uint32 {
	if bit < leftBits {
		return uint32(r.left) >> (leftBits - 1 - bit) & 1
	}
	bit -= leftBits
	return r.symbol(bit/symbolBits) >> (symbolBits - 1 - bit%symbolBits) & 1
}

// apart returns the first bit in which the keys of two rungs differ, or aRung.
func (r *rung) apart(other *rung) int {
	if apart := uint32(r.left ^ other.left); apart != 0 {
		return bits.LeadingZeros32(apart)
	}
	for at := range max(len(r.name), len(other.name)) {
		if apart := r.symbol(at) ^ other.symbol(at); apart != 0 {
			return leftBits + at*symbolBits + symbolBits - bits.Len32(apart)
		}
	}
	return aRung
}

// put sets the number of tasks of the rung and the ranks of its first ones.
func (l *ladder) put(r *rung, count int, first *ranks) {
	if r.stands && r.count == count && r.first == *first {
		return
	}
	r.sum = sum{count, *first}
	bit := aRung
	if !r.stands && l.root != nil {
		near := l.root
		for near.rung == nil {
			near = near.parts[r.side(near.bit)]
		}
		bit = r.apart(near.rung)
	}
	r.stands = true
	l.root = l.root.put(r, bit)
}

// put returns the fork with the rung added. The rung is in it already, or differs from the
// nearest one in the given bit.
func (f *fork) put(r *rung, bit int) *fork {
	switch {
	case f == nil:
		return &fork{sum: r.sum, least: r.left, most: r.left, bit: aRung, rung: r}
	case bit < f.bit:
		above := &fork{bit: bit}
		above.parts[1-r.side(bit)], above.parts[r.side(bit)] = f, (*fork)(nil).put(r, bit)
		above.add()
		return above
	case f.rung != nil:
		f.sum = r.sum
		return f
	}
	part := &f.parts[r.side(f.bit)]
	*part = (*part).put(r, bit)
	f.add()
	return f
}

// add recomputes the fork from its parts.
func (f *fork) add() {
	a, b := f.parts[0], f.parts[1]
	f.count, f.least, f.most = a.count+b.count, a.least, b.most
	for o := range orders {
		f.first[o] = a.first[o].or(b.first[o])
	}
}

// remove removes a rung that was put.
func (l *ladder) remove(r *rung) {
	r.stands = false
	l.root = l.root.remove(r)
}

func (f *fork) remove(r *rung) *fork {
	if f.rung == r {
		return nil
	}
	side := r.side(f.bit)
	if f.parts[side] = f.parts[side].remove(r); f.parts[side] == nil {
		return f.parts[1-side]
	}
	f.add()
	return f
}

// above calls take for the largest parts whose rungs all have more than left attempts left.
// There is at most one for each bit of attempts left.
func (l *ladder) above(left int32, take func(*fork)) {
	for f := l.root; f != nil && f.most > left; {
		if f.least > left {
			take(f)
			return
		}
		if f.parts[1].least > left {
			take(f.parts[1])
			f = f.parts[0]
		} else {
			f = f.parts[1]
		}
	}
}

// count returns how many tasks have more than left attempts left.
func (l *ladder) count(left int32) (count int) {
	l.above(left, func(f *fork) { count += f.count })
	return count
}

// first returns the id and the rung of the first task with more than left attempts left. r
// is nil if no task qualifies.
func (l *ladder) first(left int32, o order) (id uint64, r *rung) {
	first, in := noRank, (*fork)(nil)
	l.above(left, func(f *fork) {
		if f.first[o].before(first) == 1 {
			first, in = f.first[o], f
		}
	})
	if in == nil {
		return 0, nil
	}
	for in.rung == nil {
		part := in.parts[0]
		if part.first[o] != first {
			part = in.parts[1]
		}
		in = part
	}
	id, _ = first.task(o)
	return id, in.rung
}

// at finds the k-th task, from 0, of those with more than left attempts left, ordered by
// attempts left, name and the rung's own order: it is the at-th task of r.
func (l *ladder) at(left int32, k int) (r *rung, at int) {
	f := l.root
	at = k + f.count - l.count(left) // those with fewer attempts left come first
	for f.rung == nil {
		if before := f.parts[0].count; at < before {
			f = f.parts[0]
		} else {
			f, at = f.parts[1], at-before
		}
	}
	return f.rung, at
}

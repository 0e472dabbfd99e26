package index

import (
	"math"
	"math/bits"
)

// order is an order in which claims take tasks.
type order uint8

// The orders. Equal priorities go oldest first in both orders of priority.
const (
	highest order = iota // priority, highest first
	lowest               // priority, lowest first
	oldest               // id, ascending
	newest               // id, descending
	orders               // number of orders
)

// rank is the place of a task in an order: by first, then by second, smaller ones earlier.
// second is the task's id, or its complement in newest, so no two tasks have the same rank.
type rank struct{ first, second uint64 }

// ranks has a rank in every order.
type ranks [orders]rank

// noRank comes after the rank of every task. It never changes.
var noRank = rank{math.MaxUint64, math.MaxUint64}

// noRanks are the ranks of a contender without a task. They never change.
var noRanks = ranks{noRank, noRank, noRank, noRank}

// rankOf returns the rank of the task in the order.
func rankOf(o order, priority int32, id uint64) rank {
	switch o {
	case highest:
		return rank{uint64(math.MaxInt32 - int64(priority)), id}
	case lowest:
		return rank{uint64(int64(priority) - math.MinInt32), id}
	case newest:
		return rank{0, ^id}
	}
	return rank{0, id}
}

// task returns the id of the task with the rank; ok is false for noRank.
func (r rank) task(o order) (id uint64, ok bool) {
	switch {
	case r == noRank:
		return 0, false
	case o == newest:
		return ^r.second, true
	}
	return r.second, true
}

// priority returns the priority of the task, from its rank in lowest.
func (r rank) priority() int32 { return int32(int64(r.first) + math.MinInt32) }

// before returns 1 if r comes before other, else 0. It has no branch, because the result is
// unpredictable.
func (r rank) before(other rank) uint64 {
	_, less := bits.Sub64(r.second, other.second, 0)
	_, less = bits.Sub64(r.first, other.first, less)
	return less
}

// or returns the earlier of the two ranks.
func (r rank) or(other rank) rank {
	mask := -other.before(r)
	return rank{r.first ^ (r.first^other.first)&mask, r.second ^ (r.second^other.second)&mask}
}

// contender is something whose first task competes with those of others in every order. It embeds
// its slot.
type contender interface{ seat() *slot }

// slot is the index of a contender in its tournament. It may change when another is removed.
type slot int32

func (s *slot) seat() *slot { return s }

// tournament finds, in every order, which contender has the first task. It is always up to date:
// a change replays only the rounds of that contender. Ranks are stored next to each other in
// groups of four, one cache line; the first of each four goes on to the next round. The winner
// depends on the ranks alone, not on the order of changes.
type tournament struct {
	top        ranks // the first of all, in orders that are up to date
	contenders []contender
	// rounds has the ranks of each round: in the first those of the contenders by slot, noRank
	// for an empty slot. With one contender there are no rounds.
	rounds []round
}

// round has the ranks of one round in every order; their number is a multiple of roundOf.
type round [orders][]rank

// roundOf is the number of ranks from which one goes on.
const roundOf = 4

// newTournament returns an empty tournament.
func newTournament() tournament { return tournament{top: noRanks} }

// first returns the ranks of the first tasks. The result is read-only and stays up to date.
func (t *tournament) first() *ranks { return &t.top }

// add adds a contender that is not in the tournament. It starts without a task.
func (t *tournament) add(c contender) {
	*c.seat() = slot(len(t.contenders))
	t.contenders = append(t.contenders, c)
	for n, at := len(t.contenders), 0; n > 1; n, at = (n+roundOf-1)/roundOf, at+1 {
		if at == len(t.rounds) {
			t.rounds = append(t.rounds, round{})
			t.rounds[at].grow()
			t.rounds[at].set(0, &t.top) // of the first four, or of the only contender
		}
		if n > len(t.rounds[at][0]) {
			t.rounds[at].grow()
		}
	}
}

// grow adds room for four ranks.
func (r *round) grow() {
	for o := range orders {
		r[o] = append(r[o], noRank, noRank, noRank, noRank)
	}
}

// set sets the ranks at one index.
func (r *round) set(at int, to *ranks) {
	for o := range orders {
		r[o][at] = to[o]
	}
}

// put sets the ranks of the first tasks of the contender at the slot, noRanks if it has none.
func (t *tournament) put(at slot, to *ranks) {
	if len(t.rounds) == 0 {
		t.top = *to
		return
	}
	for o := range orders {
		if all := t.rounds[0][o]; all[at] != to[o] {
			all[at] = to[o]
			t.play(o, int(at)/roundOf)
		}
	}
}

// play plays one group of four in the first round, and later rounds while the winner
// changes.
func (t *tournament) play(o order, at int) {
	for i := range t.rounds {
		four := (*[roundOf]rank)(t.rounds[i][o][at*roundOf:])
		first := four[0].or(four[1]).or(four[2].or(four[3]))
		if i == len(t.rounds)-1 {
			t.top[o] = first
			return
		}
		next := &t.rounds[i+1][o][at]
		if *next == first {
			return
		}
		*next = first
		at /= roundOf
	}
}

// bySlot returns the ranks of the contenders' first tasks, by slot.
func (t *tournament) bySlot(o order) []rank {
	if len(t.rounds) == 0 {
		return t.top[o : o+1]
	}
	return t.rounds[0][o]
}

// remove removes a contender. The last one takes over its slot.
func (t *tournament) remove(c contender) {
	end := slot(len(t.contenders) - 1)
	last, at := t.contenders[end], *c.seat()
	var its ranks
	for o := range orders {
		its[o] = t.bySlot(o)[end]
	}
	t.put(end, &noRanks)
	t.contenders[end] = nil
	t.contenders = t.contenders[:end]
	if at != end {
		*last.seat() = at
		t.contenders[at] = last
		t.put(at, &its)
	}
	t.shrink()
}

// tournamentKept is the number of contenders for which a tournament keeps room once it had
// it.
const tournamentKept = 64

// shrink releases memory if there were many more contenders before.
func (t *tournament) shrink() {
	if len(t.rounds) == 0 || len(t.rounds[0][0]) <= max(tournamentKept, 4*len(t.contenders)) {
		return
	}
	all, before := t.contenders, t.rounds[0]
	*t = newTournament()
	for at, c := range all {
		var its ranks
		for o := range orders {
			its[o] = before[o][at]
		}
		t.add(c)
		t.put(slot(at), &its)
	}
}

package fsm

import (
	"math"
	"math/bits"
	"slices"
)

// order is one of the orders in which claims take tasks.
type order uint8

// The orders. Equal priorities go oldest first in both orders of priority.
const (
	orderHighest order = iota // priority, highest first
	orderLowest               // priority, lowest first
	orderOldest               // id, ascending
	orderNewest               // id, descending
	orderCount
)

// orderOf returns the order that a ClaimNext asks for.
func orderOf(c ClaimNext) order {
	switch {
	case c.SortBy == SortCreatedAt && c.Ascending:
		return orderOldest
	case c.SortBy == SortCreatedAt:
		return orderNewest
	case c.Ascending:
		return orderLowest
	}
	return orderHighest
}

// rank is the place of a task in an order: by first, then by second, smaller
// ones earlier. Second is the task's id, or its complement in orderNewest, so
// no two tasks rank the same.
type rank struct{ first, second uint64 }

// ranks has a rank in every order.
type ranks [orderCount]rank

// noRank is behind the rank of every task.
var noRank = rank{math.MaxUint64, math.MaxUint64}

// noRanks is of what has no task.
var noRanks = ranks{noRank, noRank, noRank, noRank}

// rankOf returns the rank of the task in the order.
func rankOf(o order, priority int32, id uint64) rank {
	switch o {
	case orderHighest:
		return rank{uint64(math.MaxInt32 - int64(priority)), id}
	case orderLowest:
		return rank{uint64(int64(priority) - math.MinInt32), id}
	case orderNewest:
		return rank{0, ^id}
	}
	return rank{0, id}
}

// task returns the id of the task that has the rank, ok false if none has.
func (r rank) task(o order) (id uint64, ok bool) {
	switch {
	case r == noRank:
		return 0, false
	case o == orderNewest:
		return ^r.second, true
	}
	return r.second, true
}

// priority returns the priority of the task that has the rank in orderLowest.
func (r rank) priority() int32 { return int32(int64(r.first) + math.MinInt32) }

// before reports whether r is in front of other: 1 if so, else 0. Which one is, is
// as good as random, so there is no branch to guess wrong.
func (r rank) before(other rank) uint64 {
	_, less := bits.Sub64(r.second, other.second, 0)
	_, less = bits.Sub64(r.first, other.first, less)
	return less
}

// or returns the one of the two that is in front.
func (r rank) or(other rank) rank {
	mask := -other.before(r)
	return rank{r.first ^ (r.first^other.first)&mask, r.second ^ (r.second^other.second)&mask}
}

// contender is something whose first task competes with those of others, in
// every order. Embed it.
type contender struct {
	slot int32
	of   *typeState // that it is, if it is a type
}

// tournament finds, in every order, the first of the first tasks of its
// contenders. Their ranks stand next to each other, in fours of a cache line:
// the first of each four goes on to the next round. What wins depends on the
// ranks alone, never on how the tournament came to look.
type tournament struct {
	top        ranks // the first of all, in orders in which nothing is left to play
	ranked     int   // contenders that have a task, if there are rounds
	contenders []*contender
	unplayed   *unplayed // nil: what changes is played at once
	// rounds has the ranks of each round, in the first one those of the contenders by
	// their slots, noRank where there is none. With one contender there are no rounds.
	rounds []round
}

// round has so many ranks in every order, a multiple of roundOf.
type round [orderCount][]rank

// roundOf is of how many ranks one goes on.
const roundOf = 4

// unplayed is what a tournament has left to play until somebody asks: most changes of
// many contenders are of orders that nobody asks for, or of one contender again.
type unplayed [orderCount]struct {
	fours []int32 // of the first round, that have another rank
	all   bool    // too many to tell
}

// unplayedShare is one in how many ranks is noted as unplayed at most. Then playing
// all costs as much as a few rounds for each.
const unplayedShare = 16

// newTournament returns an empty one that plays at once: its top is always good.
func newTournament() tournament { return tournament{top: noRanks} }

// newLazyTournament returns an empty one that plays when it is asked.
func newLazyTournament() tournament { return tournament{top: noRanks, unplayed: &unplayed{}} }

// first returns the id of the first task, ok false if there is none.
func (t *tournament) first(o order) (id uint64, ok bool) {
	if t.unplayed != nil {
		t.catchUp(o)
	}
	return t.top[o].task(o)
}

// add adds a contender that is not there yet. It has no task.
func (t *tournament) add(c *contender) {
	c.slot = int32(len(t.contenders))
	t.contenders = append(t.contenders, c)
	for n, at := len(t.contenders), 0; n > 1; n, at = (n+roundOf-1)/roundOf, at+1 {
		if at == len(t.rounds) {
			t.rounds = append(t.rounds, round{})
			t.rounds[at].grow()
			t.rounds[at].set(0, &t.top) // of the only four before, or the only contender
			if at == 0 && t.top != noRanks {
				t.ranked = 1
			}
		}
		if n > len(t.rounds[at][0]) {
			t.rounds[at].grow()
		}
	}
}

// grow makes room for another four.
func (r *round) grow() {
	for o := range orderCount {
		r[o] = append(r[o], noRank, noRank, noRank, noRank)
	}
}

// set sets the ranks at a place.
func (r *round) set(at int, to *ranks) {
	for o := range orderCount {
		r[o][at] = to[o]
	}
}

// put says what the ranks of the contender's first tasks are, noRanks if it has no
// task.
func (t *tournament) put(c *contender, to *ranks) {
	if len(t.rounds) == 0 {
		t.top = *to
		return
	}
	switch was, is := t.rounds[0][orderOldest][c.slot] != noRank, to[orderOldest] != noRank; {
	case is && !was:
		t.ranked++
	case was && !is:
		t.ranked--
	}
	for o := range orderCount {
		all := t.rounds[0][o]
		if all[c.slot] == to[o] {
			continue
		}
		all[c.slot] = to[o]
		if t.unplayed == nil {
			t.play(o, int(c.slot)/roundOf)
		} else {
			t.unplayed.note(o, c.slot/roundOf, len(all)/unplayedShare)
		}
	}
}

// note notes a four that is to be played, if there are no more than max.
func (u *unplayed) note(o order, four int32, max int) {
	switch order := &u[o]; {
	case order.all || len(order.fours) > 0 && order.fours[len(order.fours)-1] == four:
	case len(order.fours) > max:
		order.all = true
	default:
		order.fours = append(order.fours, four)
	}
}

// catchUp plays what is left to play in the order.
func (t *tournament) catchUp(o order) {
	left := &t.unplayed[o]
	if left.all {
		left.all, left.fours = false, left.fours[:0]
		for four := range len(t.rounds[0][o]) / roundOf {
			t.play(o, four)
		}
	}
	for _, four := range left.fours {
		t.play(o, int(four))
	}
	left.fours = left.fours[:0]
}

// play plays a four of the first round, and the later rounds as far as it matters.
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

// any reports whether any contender has a task. It changes nothing.
func (t *tournament) any() bool {
	if len(t.rounds) == 0 {
		return t.top != noRanks
	}
	return t.ranked > 0
}

// bySlot returns the ranks of the contenders' first tasks. It is read-only.
func (t *tournament) bySlot(o order) []rank {
	if len(t.rounds) == 0 {
		return t.top[o : o+1]
	}
	return t.rounds[0][o]
}

// winner returns the contender with the first task, when first has named it.
func (t *tournament) winner(o order) *contender {
	at := 0
	for i := len(t.rounds) - 1; i >= 0; i-- {
		at *= roundOf
		at += slices.Index(t.rounds[i][o][at:at+roundOf], t.top[o])
	}
	return t.contenders[at]
}

// remove removes a contender that is there. The last one takes its slot.
func (t *tournament) remove(c *contender) {
	last := t.contenders[len(t.contenders)-1]
	var its ranks
	for o := range orderCount {
		its[o] = t.bySlot(o)[last.slot]
	}
	t.put(last, &noRanks)
	t.contenders[last.slot] = nil
	t.contenders = t.contenders[:last.slot]
	if last != c {
		last.slot = c.slot
		t.contenders[c.slot] = last
		t.put(last, &its)
	}
	t.shrink()
}

// tournamentKept is for how many contenders a tournament keeps room, once it had so
// many.
const tournamentKept = 64

// shrink gives back what was needed for many more contenders.
func (t *tournament) shrink() {
	if len(t.rounds) == 0 || len(t.rounds[0][0]) <= max(tournamentKept, 4*len(t.contenders)) {
		return
	}
	all, before := t.contenders, t.rounds[0]
	if t.unplayed == nil {
		*t = newTournament()
	} else {
		*t = newLazyTournament()
	}
	for at, c := range all {
		var its ranks
		for o := range orderCount {
			its[o] = before[o][at]
		}
		t.add(c)
		t.put(c, &its)
	}
}

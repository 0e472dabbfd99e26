package index

import (
	"math"
	"math/bits"
	"slices"
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
// second is the task's id, or its complement in Newest, so no two tasks have the same rank.
type rank struct{ first, second uint64 }

// ranks has a rank in every order.
type ranks [orders]rank

// NoRank ranks after every task. It never changes.
var noRank = rank{math.MaxUint64, math.MaxUint64}

// noRanks is for contenders without a task. It never changes.
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

// Task returns the id of the task with the rank; ok is false for NoRank.
func (r rank) Task(o order) (id uint64, ok bool) {
	switch {
	case r == noRank:
		return 0, false
	case o == newest:
		return ^r.second, true
	}
	return r.second, true
}

// priority returns the priority of the task, from its rank in Lowest.
func (r rank) priority() int32 { return int32(int64(r.first) + math.MinInt32) }

// Before returns 1 if r comes before other, else 0. It has no branch, because the result is
// unpredictable.
func (r rank) Before(other rank) uint64 {
	_, less := bits.Sub64(r.second, other.second, 0)
	_, less = bits.Sub64(r.first, other.first, less)
	return less
}

// or returns the earlier of the two ranks.
func (r rank) or(other rank) rank {
	mask := -other.Before(r)
	return rank{r.first ^ (r.first^other.first)&mask, r.second ^ (r.second^other.second)&mask}
}

// contender is something whose first task competes with those of others in every order.
// Embed it.
type contender struct {
	Of   any // the caller's own; not used here
	slot int32
}

// Slot returns its index among the contenders. It may change when a contender is removed.
func (c *contender) Slot() int32 { return c.slot }

// tournament finds, in every order, the first of the first tasks of its contenders. Their
// ranks are stored next to each other in groups of four, one cache line; the first of each
// four goes on to the next round. The winner depends on the ranks alone, not on the order
// of changes.
type tournament struct {
	top        ranks // the first of all, in orders that are up to date
	ranked     int   // contenders with a task, if there are rounds
	contenders []*contender
	unplayed   *unplayed // nil: changes are played at once
	// rounds has the ranks of each round. The first has those of the contenders by slot,
	// NoRank for empty slots. With one contender there are no rounds.
	rounds []round
}

// round has the ranks of one round in every order; their number is a multiple of roundOf.
type round [orders][]rank

// roundOf is the number of ranks from which one goes on.
const roundOf = 4

// unplayed lists what a lazy tournament plays only when it is asked, because most changes
// concern orders that are not asked for, or the same contender again.
type unplayed [orders]struct {
	fours []int32 // groups of four in the first round that have changed
	all   bool    // too many changed; play them all
}

// unplayedShare limits the noted groups to one in this many ranks. Beyond that, playing
// everything costs no more than playing each.
const unplayedShare = 16

// newTournament returns an empty tournament that plays at once, so that Top is always
// valid.
func newTournament() tournament { return tournament{top: noRanks} }

// newLazyTournament returns an empty tournament that plays when it is asked.
func newLazyTournament() tournament { return tournament{top: noRanks, unplayed: &unplayed{}} }

// Top returns the ranks of the first tasks of a tournament that plays at once. The result
// is read-only and stays up to date.
func (t *tournament) Top() *ranks { return &t.top }

// Len returns the number of contenders.
func (t *tournament) Len() int { return len(t.contenders) }

// At returns the contender with that slot.
func (t *tournament) At(slot int32) *contender { return t.contenders[slot] }

// First returns the id of the first task; ok is false if no contender has a task.
func (t *tournament) First(o order) (id uint64, ok bool) {
	if t.unplayed != nil {
		t.catchUp(o)
	}
	return t.top[o].Task(o)
}

// Add adds a contender that is not in the tournament. It starts without a task.
func (t *tournament) Add(c *contender) {
	c.slot = int32(len(t.contenders))
	t.contenders = append(t.contenders, c)
	for n, at := len(t.contenders), 0; n > 1; n, at = (n+roundOf-1)/roundOf, at+1 {
		if at == len(t.rounds) {
			t.rounds = append(t.rounds, round{})
			t.rounds[at].grow()
			t.rounds[at].set(0, &t.top) // of the first four, or of the only contender
			if at == 0 && t.top != noRanks {
				t.ranked = 1
			}
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

// Put sets the ranks of the contender's first tasks, NoRanks if it has none.
func (t *tournament) Put(c *contender, to *ranks) {
	if len(t.rounds) == 0 {
		t.top = *to
		return
	}
	switch was, is := t.rounds[0][oldest][c.slot] != noRank, to[oldest] != noRank; {
	case is && !was:
		t.ranked++
	case was && !is:
		t.ranked--
	}
	for o := range orders {
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

// note notes a group of four to play, or that all must be played if there are more than
// max.
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

// Any reports whether any contender has a task. It changes nothing.
func (t *tournament) Any() bool {
	if len(t.rounds) == 0 {
		return t.top != noRanks
	}
	return t.ranked > 0
}

// BySlot returns the ranks of the contenders' first tasks, by slot. It is read-only.
func (t *tournament) BySlot(o order) []rank {
	if len(t.rounds) == 0 {
		return t.top[o : o+1]
	}
	return t.rounds[0][o]
}

// Winner returns the contender that has the task from First. Call First before.
func (t *tournament) Winner(o order) *contender {
	at := 0
	for i := len(t.rounds) - 1; i >= 0; i-- {
		at *= roundOf
		at += slices.Index(t.rounds[i][o][at:at+roundOf], t.top[o])
	}
	return t.contenders[at]
}

// Remove removes a contender. The last one takes over its slot.
func (t *tournament) Remove(c *contender) {
	last := t.contenders[len(t.contenders)-1]
	var its ranks
	for o := range orders {
		its[o] = t.BySlot(o)[last.slot]
	}
	t.Put(last, &noRanks)
	t.contenders[last.slot] = nil
	t.contenders = t.contenders[:last.slot]
	if last != c {
		last.slot = c.slot
		t.contenders[c.slot] = last
		t.Put(last, &its)
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
	if t.unplayed == nil {
		*t = newTournament()
	} else {
		*t = newLazyTournament()
	}
	for at, c := range all {
		var its ranks
		for o := range orders {
			its[o] = before[o][at]
		}
		t.Add(c)
		t.Put(c, &its)
	}
}

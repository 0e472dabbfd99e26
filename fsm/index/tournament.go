package index

import (
	"math"
	"math/bits"
	"slices"
)

// Order is one of the orders in which claims take tasks.
type Order uint8

// The orders. Equal priorities go oldest first in both orders of priority.
const (
	Highest Order = iota // priority, highest first
	Lowest               // priority, lowest first
	Oldest               // id, ascending
	Newest               // id, descending
	Orders               // how many there are
)

// Rank is the place of a task in an order: by first, then by second, smaller
// ones earlier. Second is the task's id, or its complement in Newest, so
// no two tasks rank the same.
type Rank struct{ first, second uint64 }

// Ranks has a rank in every order.
type Ranks [Orders]Rank

// NoRank is behind the rank of every task. It never changes.
var NoRank = Rank{math.MaxUint64, math.MaxUint64}

// NoRanks is of what has no task. It never changes.
var NoRanks = Ranks{NoRank, NoRank, NoRank, NoRank}

// rankOf returns the rank of the task in the order.
func rankOf(o Order, priority int32, id uint64) Rank {
	switch o {
	case Highest:
		return Rank{uint64(math.MaxInt32 - int64(priority)), id}
	case Lowest:
		return Rank{uint64(int64(priority) - math.MinInt32), id}
	case Newest:
		return Rank{0, ^id}
	}
	return Rank{0, id}
}

// Task returns the id of the task that has the rank, ok false if none has.
func (r Rank) Task(o Order) (id uint64, ok bool) {
	switch {
	case r == NoRank:
		return 0, false
	case o == Newest:
		return ^r.second, true
	}
	return r.second, true
}

// priority returns the priority of the task that has the rank in Lowest.
func (r Rank) priority() int32 { return int32(int64(r.first) + math.MinInt32) }

// Before reports whether r is in front of other: 1 if so, else 0. Which one is, is
// as good as random, so there is no branch to guess wrong.
func (r Rank) Before(other Rank) uint64 {
	_, less := bits.Sub64(r.second, other.second, 0)
	_, less = bits.Sub64(r.first, other.first, less)
	return less
}

// or returns the one of the two that is in front.
func (r Rank) or(other Rank) Rank {
	mask := -other.Before(r)
	return Rank{r.first ^ (r.first^other.first)&mask, r.second ^ (r.second^other.second)&mask}
}

// Contender is something whose first task competes with those of others, in
// every order. Embed it.
type Contender struct {
	Of   any // whose first task it is, for whoever asks; nothing here looks at it
	slot int32
}

// Slot returns its place among the contenders, from 0: another one once one of them
// was removed.
func (c *Contender) Slot() int32 { return c.slot }

// Tournament finds, in every order, the first of the first tasks of its
// contenders. Their ranks stand next to each other, in fours of a cache line:
// the first of each four goes on to the next round. What wins depends on the
// ranks alone, never on how the tournament came to look.
type Tournament struct {
	top        Ranks // the first of all, in orders in which nothing is left to play
	ranked     int   // contenders that have a task, if there are rounds
	contenders []*Contender
	unplayed   *unplayed // nil: what changes is played at once
	// rounds has the ranks of each round, in the first one those of the contenders by
	// their slots, NoRank where there is none. With one contender there are no rounds.
	rounds []round
}

// round has so many ranks in every order, a multiple of roundOf.
type round [Orders][]Rank

// roundOf is of how many ranks one goes on.
const roundOf = 4

// unplayed is what a tournament has left to play until somebody asks: most changes of
// many contenders are of orders that nobody asks for, or of one contender again.
type unplayed [Orders]struct {
	fours []int32 // of the first round, that have another rank
	all   bool    // too many to tell
}

// unplayedShare is one in how many ranks is noted as unplayed at most. Then playing
// all costs as much as a few rounds for each.
const unplayedShare = 16

// NewTournament returns an empty one that plays at once: its top is always good.
func NewTournament() Tournament { return Tournament{top: NoRanks} }

// NewLazyTournament returns an empty one that plays when it is asked.
func NewLazyTournament() Tournament { return Tournament{top: NoRanks, unplayed: &unplayed{}} }

// Top returns the ranks of the first tasks, in a tournament that plays at once. It
// is read-only, and follows what happens.
func (t *Tournament) Top() *Ranks { return &t.top }

// Len returns how many contenders there are.
func (t *Tournament) Len() int { return len(t.contenders) }

// At returns the contender with that slot.
func (t *Tournament) At(slot int32) *Contender { return t.contenders[slot] }

// First returns the id of the first task, ok false if there is none.
func (t *Tournament) First(o Order) (id uint64, ok bool) {
	if t.unplayed != nil {
		t.catchUp(o)
	}
	return t.top[o].Task(o)
}

// Add adds a contender that is not there yet. It has no task.
func (t *Tournament) Add(c *Contender) {
	c.slot = int32(len(t.contenders))
	t.contenders = append(t.contenders, c)
	for n, at := len(t.contenders), 0; n > 1; n, at = (n+roundOf-1)/roundOf, at+1 {
		if at == len(t.rounds) {
			t.rounds = append(t.rounds, round{})
			t.rounds[at].grow()
			t.rounds[at].set(0, &t.top) // of the only four before, or the only contender
			if at == 0 && t.top != NoRanks {
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
	for o := range Orders {
		r[o] = append(r[o], NoRank, NoRank, NoRank, NoRank)
	}
}

// set sets the ranks at a place.
func (r *round) set(at int, to *Ranks) {
	for o := range Orders {
		r[o][at] = to[o]
	}
}

// Put says what the ranks of the contender's first tasks are, NoRanks if it has no
// task.
func (t *Tournament) Put(c *Contender, to *Ranks) {
	if len(t.rounds) == 0 {
		t.top = *to
		return
	}
	switch was, is := t.rounds[0][Oldest][c.slot] != NoRank, to[Oldest] != NoRank; {
	case is && !was:
		t.ranked++
	case was && !is:
		t.ranked--
	}
	for o := range Orders {
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
func (u *unplayed) note(o Order, four int32, max int) {
	switch order := &u[o]; {
	case order.all || len(order.fours) > 0 && order.fours[len(order.fours)-1] == four:
	case len(order.fours) > max:
		order.all = true
	default:
		order.fours = append(order.fours, four)
	}
}

// catchUp plays what is left to play in the order.
func (t *Tournament) catchUp(o Order) {
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
func (t *Tournament) play(o Order, at int) {
	for i := range t.rounds {
		four := (*[roundOf]Rank)(t.rounds[i][o][at*roundOf:])
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
func (t *Tournament) Any() bool {
	if len(t.rounds) == 0 {
		return t.top != NoRanks
	}
	return t.ranked > 0
}

// BySlot returns the ranks of the contenders' first tasks. It is read-only.
func (t *Tournament) BySlot(o Order) []Rank {
	if len(t.rounds) == 0 {
		return t.top[o : o+1]
	}
	return t.rounds[0][o]
}

// Winner returns the contender with the first task, when first has named it.
func (t *Tournament) Winner(o Order) *Contender {
	at := 0
	for i := len(t.rounds) - 1; i >= 0; i-- {
		at *= roundOf
		at += slices.Index(t.rounds[i][o][at:at+roundOf], t.top[o])
	}
	return t.contenders[at]
}

// Remove removes a contender that is there. The last one takes its slot.
func (t *Tournament) Remove(c *Contender) {
	last := t.contenders[len(t.contenders)-1]
	var its Ranks
	for o := range Orders {
		its[o] = t.BySlot(o)[last.slot]
	}
	t.Put(last, &NoRanks)
	t.contenders[last.slot] = nil
	t.contenders = t.contenders[:last.slot]
	if last != c {
		last.slot = c.slot
		t.contenders[c.slot] = last
		t.Put(last, &its)
	}
	t.shrink()
}

// tournamentKept is for how many contenders a tournament keeps room, once it had so
// many.
const tournamentKept = 64

// shrink gives back what was needed for many more contenders.
func (t *Tournament) shrink() {
	if len(t.rounds) == 0 || len(t.rounds[0][0]) <= max(tournamentKept, 4*len(t.contenders)) {
		return
	}
	all, before := t.contenders, t.rounds[0]
	if t.unplayed == nil {
		*t = NewTournament()
	} else {
		*t = NewLazyTournament()
	}
	for at, c := range all {
		var its Ranks
		for o := range Orders {
			its[o] = before[o][at]
		}
		t.Add(c)
		t.Put(c, &its)
	}
}

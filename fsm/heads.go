package fsm

import "slices"

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
type rank struct {
	first  int64
	second uint64
}

func (r rank) before(other rank) bool {
	return r.first < other.first || r.first == other.first && r.second < other.second
}

// rankOf returns the rank of the task in the order.
func rankOf(o order, priority int32, id uint64) rank {
	switch o {
	case orderHighest:
		return rank{-int64(priority), id}
	case orderLowest:
		return rank{int64(priority), id}
	case orderNewest:
		return rank{0, ^id}
	}
	return rank{0, id}
}

// task returns the id of the task that has the rank.
func (r rank) task(o order) uint64 {
	if o == orderNewest {
		return ^r.second
	}
	return r.second
}

// tournament finds, in every order, the contender with the first task.
type tournament [orderCount]heads

// newTournament returns an empty one.
func newTournament() (t tournament) {
	for o := range orderCount {
		t[o].order = o
	}
	return t
}

// first returns the id of the first task.
func (t *tournament) first(o order) (id uint64, ok bool) {
	c := t[o].first()
	if c == nil {
		return 0, false
	}
	return c.ranks[o].task(o), true
}

// put places the contender, whose first tasks are those of its own tournament
// below, which is not empty. known says whether it is in t already.
func (t *tournament) put(c *contender, below *tournament, known bool) {
	for o := range orderCount {
		first := below[o].first().ranks[o]
		switch {
		case !known:
			c.ranks[o] = first
			t[o].add(c)
		case first != c.ranks[o]:
			c.ranks[o] = first
			t[o].moved(c)
		}
	}
}

// add adds a contender that has its ranks already.
func (t *tournament) add(c *contender) {
	for o := range orderCount {
		t[o].add(c)
	}
}

// remove removes a contender that is there.
func (t *tournament) remove(c *contender) {
	for o := range orderCount {
		t[o].remove(c)
	}
}

// contender is something whose first task competes with those of others, in
// every order. Embed it.
type contender struct {
	ranks  [orderCount]rank  // of its first task in that order
	places [orderCount]int32 // in the heads of that order
}

// heads keeps contenders so that the one with the first task is found at once:
// an indexed binary heap. What is at the top depends on the ranks alone, never
// on how the heap came to look.
type heads struct {
	order order
	items []*contender
}

// first returns the contender that is first, nil if there is none.
func (h *heads) first() *contender {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

// add adds a contender that is not there yet.
func (h *heads) add(c *contender) {
	c.places[h.order] = int32(len(h.items))
	h.items = append(h.items, c)
	h.up(len(h.items) - 1)
}

// remove removes a contender that is there.
func (h *heads) remove(c *contender) {
	at, last := int(c.places[h.order]), len(h.items)-1
	if at != last {
		h.swap(at, last)
	}
	h.items[last] = nil
	h.items = h.items[:last]
	if at != last {
		h.fix(at)
	}
	if cap(h.items) > 64 && len(h.items) < cap(h.items)/4 {
		h.items = slices.Clip(slices.Clone(h.items))
	}
}

// moved restores the order after the contender's rank changed.
func (h *heads) moved(c *contender) { h.fix(int(c.places[h.order])) }

func (h *heads) fix(at int) {
	if !h.down(at) {
		h.up(at)
	}
}

func (h *heads) up(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if !h.before(at, parent) {
			return
		}
		h.swap(at, parent)
		at = parent
	}
}

// down reports whether it moved anything.
func (h *heads) down(at int) bool {
	from := at
	for {
		child := 2*at + 1
		if child >= len(h.items) {
			break
		}
		if right := child + 1; right < len(h.items) && h.before(right, child) {
			child = right
		}
		if !h.before(child, at) {
			break
		}
		h.swap(at, child)
		at = child
	}
	return at != from
}

func (h *heads) before(a, b int) bool {
	return h.items[a].ranks[h.order].before(h.items[b].ranks[h.order])
}

func (h *heads) swap(a, b int) {
	h.items[a], h.items[b] = h.items[b], h.items[a]
	h.items[a].places[h.order] = int32(a)
	h.items[b].places[h.order] = int32(b)
}

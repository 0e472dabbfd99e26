package index

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
)

// Chooser finds the tasks for one ClaimNext, one after the other.
type Chooser struct {
	types   *Types
	order   order
	any     *ranking // all types, if any type may be claimed
	climber *climber // the same for claims that need attempts left or are random
	draw    *draw    // the listed types of a random claim
	// listed are the slots of the listed types if one task is wanted: then looking at each
	// type once is cheapest.
	listed []int32
	one    bool
	// sources are the listed types that have tasks, as a binary heap with the first task on
	// top.
	sources []source
	// turn is the share of a fair type whose turn the task from First is, and place its place
	// then; nil if it takes no turn.
	turn   *stock
	turnOf *Type
	place  lead
}

// source is an open type or one of its queues.
type source struct {
	of    *Type
	queue *queue // nil for all queues of the type
}

// rank returns the rank of the first task of the source.
func (s *source) rank(o order) rank {
	if s.queue != nil {
		return s.queue.rank(o)
	}
	return s.of.ranking.rank(o)
}

// empty reports whether the source has no tasks left.
func (s *source) empty() bool {
	return s.of.standing != open || s.queue != nil && (s.queue.len() == 0 || s.queue.of.closed)
}

// Choose returns the chooser for c. It looks only at the first tasks of the requested types. Only
// one Chooser may be in use at a time. list, if not nil, caches the slots of the listed types.
func (s *Types) Choose(c command.ClaimNext, list *command.TypeList, dice *Dice) Chooser {
	n := Chooser{types: s, order: orderOf(c)}
	switch {
	case c.Types == nil && c.SortBy != command.SortRandom && c.MoreAttempts == 0:
		n.any = &s.ready
	case c.Types == nil:
		n.climber = &climber{types: s, more: c.MoreAttempts, order: n.order}
		if c.SortBy == command.SortRandom {
			n.climber.dice = dice
		}
	case c.SortBy == command.SortRandom:
		n.draw = s.newDraw(c, dice)
	case c.Limit == 1 && c.MoreAttempts == 0:
		n.one, n.listed = true, s.locate(c.Types, list)
	default:
		clear(s.sources)
		s.sources = s.sourcesOf(c, s.sources[:0])
		n.sources = s.sources
		for at := len(n.sources)/2 - 1; at >= 0; at-- {
			n.down(at)
		}
	}
	return n
}

// orderOf returns the order in which a ClaimNext takes tasks.
func orderOf(c command.ClaimNext) order {
	switch {
	case c.SortBy == command.SortCreatedAt && c.Ascending:
		return oldest
	case c.SortBy == command.SortCreatedAt:
		return newest
	case c.Ascending:
		return lowest
	}
	return highest
}

// sourcesOf appends the listed types that can be claimed from.
func (s *Types) sourcesOf(c command.ClaimNext, sources []source) []source {
	for _, name := range c.Types {
		ts := s.byName[name]
		if ts == nil || ts.standing != open {
			continue
		}
		if c.MoreAttempts == 0 {
			sources = append(sources, source{of: ts})
			continue
		}
		for _, q := range ts.queuesAbove(c.MoreAttempts) {
			sources = append(sources, source{of: ts, queue: q})
		}
	}
	return sources
}

// First returns the id of the next task to claim. ok is false if no task is left.
func (n *Chooser) First() (id uint64, ok bool) {
	switch {
	case n.any != nil:
		if id, ok = n.any.first(n.order); ok {
			id = n.firstOfType(n.any.winner(n.order).(*Type))
		}
		return id, ok
	case n.climber != nil:
		return n.climber.next()
	case n.draw != nil:
		return n.draw.first()
	case n.one:
		ts := n.firstListed()
		if ts == nil {
			return 0, false
		}
		return n.firstOfType(ts), true
	case len(n.sources) == 0:
		return 0, false
	}
	first := &n.sources[0]
	if first.queue == nil {
		return n.firstOfType(first.of), true
	}
	return first.rank(n.order).task(n.order)
}

// firstListed returns the listed type that has the first task, or nil.
func (n *Chooser) firstListed() *Type {
	all := &n.types.ready
	if len(n.listed) == 1 {
		if ts := all.all[n.listed[0]].(*Type); ts.standing == open {
			return ts
		}
		return nil
	}
	first, of := noRank, int32(0)
	if len(n.listed) > 0 {
		ready := all.bySlot(n.order)
		for _, slot := range n.listed {
			if r := ready[slot]; r.before(first) == 1 {
				first, of = r, slot
			}
		}
	}
	if first == noRank {
		return nil
	}
	return all.all[of].(*Type)
}

// firstOfType returns the id of the first task of an open type. In a fair type, a claim by
// priority, highest first, takes the first task of the share whose turn it is. Both the type and
// the share become the cached ones, because the claim changes them next.
func (n *Chooser) firstOfType(ts *Type) (id uint64) {
	n.types.recent = ts
	if ts.turns != nil && n.order == highest {
		n.turnOf = ts
		n.turn, n.place = ts.turns.first()
		if n.turn.share != nil {
			ts.shares.recent = n.turn.share
		}
		return n.turn.highest().second
	}
	id, _ = ts.ranking.first(n.order)
	if ts.shares != nil {
		if sh := ts.ranking.winner(n.order).(*stock).share; sh != nil {
			ts.shares.recent = sh
		}
	}
	return id
}

// Taken must be called when the task from First has been claimed.
func (n *Chooser) Taken(saved Turns) {
	if n.turn != nil {
		n.turnOf.tookTurn(n.turn, n.place, saved)
		n.turn = nil
	}
	switch {
	case n.any != nil, n.one:
		return // the types themselves keep these up to date
	case n.climber != nil:
		n.climber.taken()
		return
	case n.draw != nil:
		n.draw.taken()
		return
	}
	n.refit()
	// A type that its limits have just closed may have several sources.
	for len(n.sources) > 0 && n.sources[0].empty() {
		n.refit()
	}
}

// refit restores the heap after the first source changed.
func (n *Chooser) refit() {
	if n.sources[0].empty() {
		last := len(n.sources) - 1
		n.sources[0] = n.sources[last]
		n.sources = n.sources[:last]
	}
	n.down(0)
}

func (n *Chooser) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(n.sources) {
			return
		}
		if right := child + 1; right < len(n.sources) && n.before(right, child) {
			child = right
		}
		if !n.before(child, at) {
			return
		}
		n.sources[at], n.sources[child] = n.sources[child], n.sources[at]
		at = child
	}
}

func (n *Chooser) before(a, b int) bool {
	return n.sources[a].rank(n.order).before(n.sources[b].rank(n.order)) == 1
}

// locate returns the slots in ready of the listed types that exist.
func (s *Types) locate(names []string, list *command.TypeList) []int32 {
	if list == nil {
		return s.appendSlots(nil, names)
	}
	if !list.Located || list.AsOf != s.changes {
		list.Slots = s.appendSlots(list.Slots[:0], names)
		list.Located, list.AsOf = true, s.changes
	}
	return list.Slots
}

func (s *Types) appendSlots(slots []int32, names []string) []int32 {
	for _, name := range names {
		if ts := s.byName[name]; ts != nil {
			slots = append(slots, int32(ts.inTypes))
		}
	}
	return slots
}

// Claimable reports whether c would claim a task at time t, by T. It changes nothing.
func (s *Types) Claimable(c command.ClaimNext, t int64) bool {
	if c.Types == nil {
		return (s.opened > 0 || s.anyOpening(t)) && (c.MoreAttempts == 0 || s.anyAbove(c.MoreAttempts, t))
	}
	return slices.ContainsFunc(c.Types, func(name string) bool {
		ts := s.byName[name]
		if ts == nil {
			return false
		}
		_, open := s.openAt(ts, t)
		return open && s.hasAboveAt(ts, c.MoreAttempts, t)
	})
}

// anyOpening reports whether a rate limit lets tasks of any type be claimed by time t, by T.
func (s *Types) anyOpening(t int64) (found bool) {
	s.openings.Scan(func(o opening) bool {
		if found = found || o.t <= t && s.isOpening(o, t); found {
			return false
		}
		return o.t <= t
	})
	return found
}

// isOpening reports whether the opening, which is due at time t, lets tasks be claimed.
func (s *Types) isOpening(o opening, t int64) bool {
	ts := s.byName[o.name]
	return ts.isUnlimitedAt(t) && (o.key == "" || ts.roomOf(ts.shares.byName[o.key], t) > 0)
}

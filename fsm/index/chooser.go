package index

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
)

// Chooser finds the tasks for one ClaimNext, one after the other.
type Chooser struct {
	types   *Types
	order   order
	any     *tournament // all types, if any type may be claimed
	climber *climber    // the same for claims that need attempts left or are random
	draw    *draw       // the listed types of a random claim
	// listed are the slots of the listed types if one task is wanted: then looking at each
	// type once is cheapest.
	listed []int32
	ready  []rank // the first ranks of all types
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
	*ranks
	of    *Type
	queue *queue // nil for all queues of the type
}

// empty reports whether the source has no tasks left.
func (s *source) empty() bool {
	return s.of.standing != open || s.queue != nil && (s.queue.Len() == 0 || s.of.isClosed(s.queue.Key))
}

// Choose returns the chooser for c. It looks only at the first tasks of the requested
// types. Only one Chooser may be in use at a time. list, if not nil, caches the slots of
// the listed types.
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
		n.listed, n.ready = s.locate(c.Types, list), s.ready.BySlot(n.order)
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
			sources = append(sources, source{ranks: ts.first.Top(), of: ts})
			continue
		}
		for _, q := range ts.queuesAbove(c.MoreAttempts) {
			sources = append(sources, source{ranks: q.First(), of: ts, queue: q})
		}
	}
	return sources
}

// First returns the id of the next task to claim. ok is false if no task is left.
func (n *Chooser) First() (id uint64, ok bool) {
	switch {
	case n.any != nil:
		if id, ok = n.any.First(n.order); ok {
			n.types.recent = n.any.Winner(n.order).Of.(*Type)
			id = n.byTurn(n.types.recent, id)
		}
		return id, ok
	case n.climber != nil:
		return n.climber.next()
	case n.draw != nil:
		return n.draw.first()
	case n.ready != nil:
		first, of := noRank, int32(0)
		for _, slot := range n.listed {
			if r := n.ready[slot]; r.Before(first) == 1 {
				first, of = r, slot
			}
		}
		if id, ok = first.Task(n.order); ok {
			n.types.recent = n.types.ready.At(of).Of.(*Type)
			id = n.byTurn(n.types.recent, id)
		}
		return id, ok
	case len(n.sources) == 0:
		return 0, false
	}
	first := n.sources[0]
	if id, ok = first.ranks[n.order].Task(n.order); ok && first.queue == nil {
		id = n.byTurn(first.of, id)
	}
	return id, ok
}

// byTurn returns the task of the type whose turn it is in a claim by priority, highest first:
// first, unless the type is fair.
func (n *Chooser) byTurn(ts *Type, first uint64) uint64 {
	if ts.turns == nil || n.order != highest {
		return first
	}
	n.turnOf = ts
	n.turn, n.place = ts.turns.first()
	return n.turn.highest().second
}

// Taken must be called when the task from First has been claimed.
func (n *Chooser) Taken(saved Turns) {
	if n.turn != nil {
		n.turnOf.tookTurn(n.turn, n.place, saved)
		n.turn = nil
	}
	switch {
	case n.any != nil, n.ready != nil:
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
	return n.sources[a].ranks[n.order].Before(n.sources[b].ranks[n.order]) == 1
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
			slots = append(slots, ts.seat.Slot())
		}
	}
	return slots
}

// Claimable reports whether c would claim a task at time t, by T. It changes nothing.
func (s *Types) Claimable(c command.ClaimNext, t int64) bool {
	if c.Types == nil {
		opensAt, waits := s.NextOpening()
		return (s.ready.Any() || waits && opensAt <= t) && (c.MoreAttempts == 0 || s.anyAbove(c.MoreAttempts, t))
	}
	return slices.ContainsFunc(c.Types, func(name string) bool {
		ts := s.byName[name]
		if ts == nil {
			return false
		}
		standing, _ := ts.standingAt(t)
		return standing == open && ts.hasAbove(c.MoreAttempts)
	})
}

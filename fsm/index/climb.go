package index

import (
	"cmp"
	"slices"
	"strings"
)

// updateLadder brings the ladder up to date. Only claims that need the ladder call it. They are
// rare, so a type that changed many times in between is updated once.
func (s *Types) updateLadder() {
	for _, ts := range s.stale {
		ts.stale = 0
		ts.updateRungs(&s.ladder)
	}
	clear(s.stale)
	s.stale = s.stale[:0]
}

// updateRungs updates the type's rungs, one for each of its queues. A closed type has none.
func (ts *Type) updateRungs(l *ladder) {
	var queues []*queue
	if ts.standing == open {
		queues = ts.queuesAbove(-1)
		if ts.shares != nil {
			slices.SortFunc(queues, func(a, b *queue) int { return cmp.Or(cmp.Compare(a.left, b.left), strings.Compare(a.of.key, b.of.key)) })
		}
	}
	if !slices.EqualFunc(ts.rungs, queues, func(r *rung, q *queue) bool { return r.compare(q) == 0 }) {
		ts.rungs = ts.rungsFor(l, queues)
	}
	for i, q := range queues {
		first := q.top()
		l.put(ts.rungs[i], q.len(), &first)
	}
}

// rungsFor returns one rung for each queue, reusing those of the type that fit and removing the
// others from the ladder.
func (ts *Type) rungsFor(l *ladder, queues []*queue) []*rung {
	rungs, old := make([]*rung, len(queues)), ts.rungs
	for i, q := range queues {
		for len(old) > 0 && old[0].compare(q) < 0 {
			l.remove(old[0])
			old = old[1:]
		}
		if len(old) > 0 && old[0].compare(q) == 0 {
			rungs[i], old = old[0], old[1:]
		} else {
			rungs[i] = newRung(ts, q)
		}
	}
	for _, r := range old {
		l.remove(r)
	}
	return rungs
}

// newRung returns a rung for a queue of the type. No name of a type contains the control
// character between the two parts of its name.
func newRung(ts *Type, q *queue) *rung {
	r := &rung{of: ts, left: q.left, name: ts.name, key: q.of.key}
	if q.of.key != "" {
		r.name += "\x00" + q.of.key
	}
	return r
}

// compare returns 0 if the rung is the queue's, else which of the two comes first in their type.
func (r *rung) compare(q *queue) int {
	return cmp.Or(cmp.Compare(r.left, q.left), strings.Compare(r.key, q.of.key))
}

// removeRungs removes a forgotten type from the ladder.
func (s *Types) removeRungs(ts *Type) {
	for _, r := range ts.rungs {
		s.ladder.remove(r)
	}
	ts.rungs = nil
	if at := ts.stale - 1; at >= 0 {
		last := len(s.stale) - 1
		moved := s.stale[last]
		s.stale[at], moved.stale = moved, ts.stale
		s.stale[last], s.stale = nil, s.stale[:last]
		ts.stale = 0
	}
}

// anyAbove reports whether some type has claimable tasks with more than left attempts left
// at time t, by T. It changes nothing, so it checks the stale types one by one.
func (s *Types) anyAbove(left int32, t int64) bool {
	synced := s.ladder.count(left)
	for _, ts := range s.stale {
		for _, r := range ts.rungs {
			if r.left > left {
				synced -= r.len()
			}
		}
		if _, open := s.openAt(ts, t); open && s.hasAboveAt(ts, left, t) {
			return true
		}
	}
	found := synced > 0
	s.openings.Scan(func(o opening) bool {
		found = found || o.t <= t && s.isOpening(o, t) && s.hasAboveAt(s.byName[o.name], left, t)
		return !found && o.t <= t
	})
	return found
}

// climber finds tasks for one claim of any type that needs attempts left or takes tasks at random.
// It uses the ladder. A random task is the k-th of all candidates, ordered by attempts left, type,
// share key and id.
type climber struct {
	types *Types
	more  int32
	order order
	dice  *Dice // nil if tasks are not taken at random
}

// next returns the id of the next task to claim.
func (c *climber) next() (id uint64, ok bool) {
	c.types.updateLadder()
	if c.dice == nil {
		id, rung := c.types.ladder.first(c.more, c.order)
		if rung != nil {
			c.types.recent = rung.of
		}
		return id, rung != nil
	}
	total := c.types.ladder.count(c.more)
	if total == 0 {
		return 0, false
	}
	rung, k := c.types.ladder.at(c.more, c.dice.pick(total))
	ts := rung.of
	c.types.recent = ts
	of := ts.stockOf(rung.key)
	at, _ := of.findQueue(rung.left)
	return of.queues[at].at(k), true
}

// taken must be called when the task from next has been claimed.
func (c *climber) taken() {
	if c.dice != nil {
		c.dice.picks++
	}
}

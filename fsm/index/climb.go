package index

import (
	"slices"
)

// climb brings the ladder up to date. It is called only by claims that need the ladder,
// which are rare, so that a type that changed many times in between is updated once.
func (s *Types) climb() {
	for _, ts := range s.stale {
		ts.stale = 0
		ts.climb(&s.ladder)
	}
	clear(s.stale)
	s.stale = s.stale[:0]
}

// climb updates the type's queues in the ladder. A closed type has none there.
func (ts *Type) climb(l *ladder) {
	var queues []*queue
	if ts.standing == open {
		queues = ts.queues
	}
	if !slices.EqualFunc(ts.rungs, queues, func(r *rung, q *queue) bool { return r.Left == q.Left }) {
		ts.rungs = ts.rerung(l, queues)
	}
	for i, q := range queues {
		l.Put(ts.rungs[i], q.Len(), q.First())
	}
}

// rerung returns one rung for each queue, reusing those that fit and removing the others.
func (ts *Type) rerung(l *ladder, queues []*queue) []*rung {
	rungs, old := make([]*rung, len(queues)), ts.rungs
	for i, q := range queues {
		for len(old) > 0 && old[0].Left < q.Left {
			l.Remove(old[0])
			old = old[1:]
		}
		if len(old) > 0 && old[0].Left == q.Left {
			rungs[i], old = old[0], old[1:]
		} else {
			rungs[i] = &rung{Of: ts, Left: q.Left, Name: ts.name}
		}
	}
	for _, r := range old {
		l.Remove(r)
	}
	return rungs
}

// fall removes a forgotten type from the ladder.
func (s *Types) fall(ts *Type) {
	for _, r := range ts.rungs {
		s.ladder.Remove(r)
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
	synced := s.ladder.Count(left)
	for _, ts := range s.stale {
		for _, r := range ts.rungs {
			if r.Left > left {
				synced -= r.Len()
			}
		}
		if standing, _ := ts.standingAt(t); standing == open && len(ts.queuesAbove(left)) > 0 {
			return true
		}
	}
	found := synced > 0
	s.openings.Scan(func(o opening) bool {
		found = found || o.t <= t && len(s.byName[o.name].queuesAbove(left)) > 0
		return !found && o.t <= t
	})
	return found
}

// climber finds tasks of any type for one claim that wants attempts left or random tasks. A
// random task is the k-th of all candidates, ordered by attempts left, type and id.
type climber struct {
	types *Types
	more  int32
	order order
	dice  *Dice // nil if tasks are not taken at random
}

// next returns the id of the next task to claim.
func (c *climber) next() (id uint64, ok bool) {
	c.types.climb()
	if c.dice == nil {
		id, rung := c.types.ladder.First(c.more, c.order)
		if rung != nil {
			c.types.recent = rung.Of.(*Type)
		}
		return id, rung != nil
	}
	total := c.types.ladder.Count(c.more)
	if total == 0 {
		return 0, false
	}
	rung, k := c.types.ladder.At(c.more, c.dice.pick(total))
	ts := rung.Of.(*Type)
	c.types.recent = ts
	at, _ := ts.findQueue(rung.Left)
	return ts.queues[at].At(k), true
}

// taken must be called when the task from next has been claimed.
func (c *climber) taken() {
	if c.dice != nil {
		c.dice.picks++
	}
}

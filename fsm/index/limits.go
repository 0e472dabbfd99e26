package index

import (
	"github.com/claimq/claimq/fsm/record"
)

// standing says whether a type can be claimed from.
type standing uint8

const (
	closed standing = iota // no claimable task, paused, or at its limit of claims
	waits                  // only the rate limit forbids claims, until opensAt
	open                   // its tasks are in the tournament of types
)

// opening is the time, by T, at which a rate-limited type opens.
type opening struct {
	t    int64
	name string
}

// newOpenings returns an empty set of types, ordered by when they open.
func newOpenings() List[opening] {
	return NewList(func(a, b opening) bool {
		return a.t < b.t || a.t == b.t && a.name < b.name
	})
}

// standingAt returns the type's standing at t, and when it opens if it waits.
func (ts *Type) standingAt(t int64) (s standing, opensAt int64) {
	switch {
	case ts.ready == 0:
		return closed, 0
	case ts.record == nil:
		return open, 0
	case ts.record.Settings.Paused || ts.Slots() <= 0:
		return closed, 0
	}
	if at := ts.record.ClaimableAt(t); at > t {
		return waits, at
	}
	return open, 0
}

// Slots returns how many more claims the type may have at the same time.
func (ts *Type) Slots() int64 {
	if ts.record == nil || ts.record.Settings.MaxClaimed <= 0 {
		return record.NoLimit
	}
	return int64(ts.record.Settings.MaxClaimed) - ts.claimed
}

// Room returns how many tasks claims could take at time t, by T; fewer if shares close before.
func (ts *Type) Room(t int64) int64 {
	if standing, _ := ts.standingAt(t); standing != open {
		return 0
	}
	n := min(int64(ts.ready), ts.Slots())
	if ts.record != nil {
		n = min(n, ts.record.ClaimsAt(t))
	}
	return n
}

// hasLimits reports whether the type limits claims.
func (ts *Type) hasLimits() bool {
	return ts.record != nil && (ts.record.Settings.MaxClaimed > 0 || ts.record.Settings.RateLimit > 0 || ts.perKey > 0)
}

// Limit sets the type's settings, at time now by T: those of r, which may be its current
// record after a change, or nil for none. It notes all tasks that the settings make
// claimable, because no later change would report them. If limits per share key or turns
// begin or end, it takes time for each share.
func (s *Types) Limit(ts *Type, r *record.TaskType, saved Turns, now int64) {
	ts.record = r
	perKey, fair := int32(0), false
	if r != nil {
		perKey, fair = r.Settings.MaxClaimedPerKey, r.Settings.Fair
	}
	if perKey != ts.perKey {
		ts.perKey = perKey
		ts.settleShares(saved)
	}
	switch {
	case fair && ts.turns == nil:
		ts.startTurns()
	case !fair && ts.turns != nil:
		ts.stopTurns(saved)
	}
	ts.added = ts.ready
	s.place(ts, now)
}

// place updates the type's standing from its tasks, its settings and the time, and notes
// what became claimable. Call it after any of these change. It costs O(log types), however
// many tasks there are.
func (s *Types) place(ts *Type, now int64) {
	ts.oldest = ts.findOldest()
	was, opened := ts.standing, ts.opensAt
	ts.standing, ts.opensAt = ts.standingAt(now)
	if was == waits && (ts.standing != waits || opened != ts.opensAt) {
		s.openings.Delete(opening{opened, ts.name})
		was = closed
	}
	if wasOpen := was == open; wasOpen != (ts.standing == open) {
		s.opened++
		if wasOpen {
			s.opened -= 2
		}
	}
	s.ready.change(ts.inTypes)
	if ts.standing == waits && was != waits {
		s.openings.Set(opening{ts.opensAt, ts.name})
	}
	if ts.stale == 0 {
		s.stale = append(s.stale, ts)
		ts.stale = len(s.stale)
	}
	s.note(ts, was == open, now)
	ts.added = 0
	s.weigh(ts)
}

// note records how many tasks became claimable when the type was placed: those added if the
// type was open before, all if it has just opened, at most what its limits allow. A type
// with limits is noted with at least one task whenever it is placed while open, because the
// room of a rate limit grows with time and no entry reports that, and that of a share may grow
// while it is open: waiting claims are then woken one by one while there is room.
func (s *Types) note(ts *Type, before bool, now int64) {
	if ts.standing != open {
		return
	}
	n := ts.added
	if !before {
		n = ts.ready
	}
	if ts.hasLimits() {
		n = int(min(int64(max(n, 1)), ts.Slots(), ts.record.ClaimsAt(now)))
	}
	switch {
	case n == 0:
	case s.isNoted(ts):
		s.noted[ts.noted].Count += n
	default:
		ts.noted = len(s.noted)
		s.noted = append(s.noted, Ready{Type: ts.name, Count: n})
	}
}

// OpenDue opens the types whose time has come, by T.
func (s *Types) OpenDue(now int64) {
	for {
		next, ok := s.openings.Min()
		if !ok || next.t > now {
			return
		}
		s.place(s.byName[next.name], now)
	}
}

// NextOpening returns the earliest time, by T, at which a type opens that only its rate
// limit keeps closed. ok is false if there is no such type.
func (s *Types) NextOpening() (t int64, ok bool) {
	next, ok := s.openings.Min()
	return next.t, ok
}

// Openings returns the types whose rate limit opens them by time t, with the number of
// tasks that can be claimed from each then. next is when the next type opens; ok is false
// if none does.
func (s *Types) Openings(t int64) (due []Ready, next int64, ok bool) {
	s.openings.Scan(func(o opening) bool {
		if o.t > t {
			next, ok = o.t, true
			return false
		}
		if n := s.byName[o.name].Room(t); n > 0 {
			due = append(due, Ready{Type: o.name, Count: int(n)})
		}
		return true
	})
	return due, next, ok
}

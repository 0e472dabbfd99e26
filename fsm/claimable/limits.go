package claimable

import (
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/sorted"
)

// standing says whether claims find a type.
type standing uint8

const (
	closed standing = iota // it has no claimable task, is paused, or has claims enough
	waits                  // only its rate limit forbids claims, until opensAt
	open                   // its tasks are in the tournament of the types
)

// opening is when a type that waits for its rate limit opens, by T.
type opening struct {
	t    int64
	name string
}

// newOpenings returns an empty set of types in the order in which they open.
func newOpenings() sorted.List[opening] {
	return sorted.NewList(func(a, b opening) bool {
		return a.t < b.t || a.t == b.t && a.name < b.name
	})
}

// standingAt returns where the type stands at t, and when it opens if it waits.
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

// Slots returns how many more claims the type may have at a time.
func (ts *Type) Slots() int64 {
	if ts.record == nil || ts.record.Settings.MaxClaimed <= 0 {
		return record.NoLimit
	}
	return int64(ts.record.Settings.MaxClaimed) - ts.claimed
}

// Room returns how many tasks claims could take at t, by T.
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

// hasLimits reports whether the type has a limit of claims.
func (ts *Type) hasLimits() bool {
	return ts.record != nil && (ts.record.Settings.MaxClaimed > 0 || ts.record.Settings.RateLimit > 0)
}

// Limit says what the type's settings are from now on, by T: those of r, which may be the
// ones that it has and that changed; nil if it has none. All that they let be claimed is
// noted: nobody would tell of it later.
func (s *Types) Limit(ts *Type, r *record.TaskType, now int64) {
	ts.record = r
	ts.added = ts.ready
	s.place(ts, now)
}

// place moves the type to where its tasks, its settings and the time say it
// stands, and notes what became claimable. What changes one of these calls
// it afterwards. It costs O(log types), however many tasks the type has.
func (s *Types) place(ts *Type, now int64) {
	ts.oldest = ts.findOldest()
	was, opened := ts.standing, ts.opensAt
	ts.standing, ts.opensAt = ts.standingAt(now)
	if was == waits && (ts.standing != waits || opened != ts.opensAt) {
		s.openings.Delete(opening{opened, ts.name})
		was = closed
	}
	if ts.standing == open {
		s.ready.Put(&ts.seat, ts.first.Top())
	} else {
		s.ready.Put(&ts.seat, &index.NoRanks)
	}
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

// note notes the tasks that became claimable when the type was placed. An
// open type that was open before gained what was added; one that has just
// opened, all it has. What its limits let be claimed bounds both. A type with
// limits is noted with one task at least whenever it is placed and open: those that
// wait are woken one by one as long as there is room, since room grows with
// time, of which nobody tells.
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

// NextOpening returns the earliest time, by T, at which a type of which only
// its rate limit forbids claims may be claimed from; ok is false if there is
// none.
func (s *Types) NextOpening() (t int64, ok bool) {
	next, ok := s.openings.Min()
	return next.t, ok
}

// Openings returns the types of which only the rate limit forbade claims when they were
// placed, and not any more at t, with how many of their tasks may be claimed then; and when
// the next one opens, ok false if none does.
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

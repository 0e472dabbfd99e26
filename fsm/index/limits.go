package index

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/record"
)

// standing says whether a type can be claimed from.
type standing uint8

const (
	closed standing = iota // no claimable task, paused, or at its limit of claims
	waits                  // only the rate limit forbids claims, until opensAt
	open                   // its tasks are in the tournament of types
)

// opening is the time, by T, at which a rate-limited type or share opens.
type opening struct {
	t    int64
	name string
	key  string // of the share, or ""
}

// newOpenings returns an empty set of types and shares, ordered by when they open.
func newOpenings() List[opening] {
	return NewList(func(a, b opening) bool {
		return cmp.Or(cmp.Compare(a.t, b.t), strings.Compare(a.name, b.name), strings.Compare(a.key, b.key)) < 0
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

// room returns how many of n claimable tasks the type's own limits let claims take at time t, by
// T.
func (ts *Type) room(n, t int64) int64 {
	if !ts.isUnlimitedAt(t) {
		return 0
	}
	n = min(n, ts.Slots())
	if ts.record != nil {
		n = min(n, ts.record.ClaimsAt(t))
	}
	return n
}

// hasLimits reports whether the type, or one of its shares, limits claims.
func (ts *Type) hasLimits() bool {
	return ts.HasSaved() || ts.record != nil && (ts.record.Settings.MaxClaimed > 0 || ts.record.Settings.RateLimit > 0 || ts.perKey > 0 || ts.ratePerKey > 0)
}

// SetRecord sets the type's saved settings, at time now by T: r, which may be its current record
// after a change, or nil for none. It notes all tasks that the settings make claimable, because no
// later change would report them. If limits per share key or turns begin or end, it takes time for
// each share.
func (s *Types) SetRecord(ts *Type, r *record.TaskType, saved Turns, now int64) {
	ts.record = r
	var with record.TypeSettings
	if r != nil {
		with = r.Settings
	}
	fair := with.Fair
	if with.MaxClaimedPerKey != ts.perKey || with.RateLimitPerKey != ts.ratePerKey {
		ts.perKey, ts.ratePerKey = with.MaxClaimedPerKey, with.RateLimitPerKey
		s.settleShares(ts, saved, now)
	}
	s.settle(ts, saved, now) // shares may have lost what was saved of them
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
	ts.findOldest()
	was, opened := ts.standing, ts.opensAt
	ts.standing, ts.opensAt = ts.standingAt(now)
	if was == waits && (ts.standing != waits || opened != ts.opensAt) {
		s.openings.Delete(opening{opened, ts.name, ""})
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
		s.openings.Set(opening{ts.opensAt, ts.name, ""})
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
		n = int(ts.room(int64(max(n, 1)), now))
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

// OpenDue opens the types and shares whose time has come, by T.
func (s *Types) OpenDue(saved Turns, now int64) {
	for {
		next, ok := s.openings.Min()
		if !ok || next.t > now {
			return
		}
		ts := s.byName[next.name]
		if next.key != "" {
			s.reopen(ts, ts.shares.byName[next.key], saved, now)
		}
		s.place(ts, now)
	}
}

// NextOpening returns the earliest time, by T, at which a type or share opens that only its rate
// limit keeps closed. ok is false if no rate limit closes anything.
func (s *Types) NextOpening() (t int64, ok bool) {
	next, ok := s.openings.Min()
	return next.t, ok
}

// Openings returns the types that a rate limit, their own or of their shares, opens by time t, with
// the number of tasks that it lets be claimed from each then. next is when the next type or share
// opens; ok is false if none does.
func (s *Types) Openings(t int64) (due []Ready, next int64, ok bool) {
	at := map[string]int{}
	s.openings.Scan(func(o opening) bool {
		if o.t > t {
			next, ok = o.t, true
			return false
		}
		ts, n := s.byName[o.name], int64(0)
		if o.key == "" {
			n = int64(ts.ready)
		} else {
			n = ts.roomOf(ts.shares.byName[o.key], t)
		}
		i, known := at[o.name]
		if !known {
			i = len(due)
			at[o.name] = i
			due = append(due, Ready{Type: o.name})
		}
		due[i].Count += int(n)
		return true
	})
	for i := range due {
		due[i].Count = int(s.byName[due[i].Type].room(int64(due[i].Count), t))
	}
	return slices.DeleteFunc(due, func(r Ready) bool { return r.Count == 0 }), next, ok
}

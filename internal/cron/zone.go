package cron

import "time"

const (
	// lastMS is the last millisecond of the year 9999, after which nothing runs:
	// times of later years cannot be written.
	lastMS = 253_402_300_799_999
	// jumpMax is more than any clock ever jumped.
	jumpMax = 48 * time.Hour
	// shiftMax is how far a new release moves a slot at most: governments move their clocks
	// by an hour, rarely by two.
	shiftMax = 3 * time.Hour
	// jumpsMax bounds the jumps of one search: it leaves out those that are
	// jumpMax before a time that was found.
	jumpsMax = 1000
)

// wall returns what a clock in the zone shows, as if that were UTC.
func wall(at time.Time, offset time.Duration) time.Time { return at.UTC().Add(offset) }

// offsetOf returns how far the clocks are ahead of UTC then.
func offsetOf(at time.Time) time.Duration {
	_, seconds := at.Zone()
	return time.Duration(seconds) * time.Second
}

// next returns the first time after after, and the time on the wall that it is for: the first
// one, where the clocks leave out several. It goes from one jump of the zone's clocks to the
// next: in between, the clock on the wall only goes on.
func (f *fields) next(after int64, zone *time.Location) (next, shown int64, ok bool) {
	at := time.UnixMilli(after + 1).In(zone)
	for range jumpsMax {
		begun, ends := at.ZoneBounds()
		offset := offsetOf(at)
		from := wall(at, offset)
		if !begun.IsZero() && !f.anyHour {
			// Times that come a second time do not count.
			if again := wall(begun, offsetOf(begun.Add(-1))); from.Before(again) {
				from = again
			}
		}
		slot, found := f.onWall(from)
		if !found {
			return 0, 0, false
		}
		run := slot.Add(-offset)
		if ends.IsZero() || run.Before(ends) {
			return run.UnixMilli(), slot.UnixMilli(), run.UnixMilli() <= lastMS
		}
		if !f.anyHour && slot.Before(wall(ends, offsetOf(ends))) {
			return ends.UnixMilli(), slot.UnixMilli(), ends.UnixMilli() <= lastMS // it is left out
		}
		at = ends
		if later := run.Add(-jumpMax); at.Before(later) {
			at = later.In(zone)
		}
	}
	return 0, 0, false
}

// Wall returns the time on the wall that the slot is for, in milliseconds as if it were in
// UTC; 0: it is none of the plan's slots, or the plan goes by an interval.
func (t *Times) Wall(slot int64) int64 {
	if t.fields == nil || slot == 0 {
		return 0
	}
	at, shown, ok := t.fields.next(slot-2, t.zone) // from before a jump, if it is at one
	if !ok || at != slot {
		return 0
	}
	return shown
}

// Again returns where a slot is that was computed for the time shown on the wall: where it
// was, unless the zone's data are others now. What comes before it on the wall is done, so no
// time on the wall is done twice; of a plan that goes by the time that passes, what comes before
// last, the slot that ran last. shown 0 is not known: then the slot is the one that is nearest.
// ok is false if there is none any more.
func (t *Times) Again(slot, shown, last int64) (moved int64, ok bool) {
	if t.fields == nil || slot == 0 {
		return slot, true
	}
	now := t.Wall(slot)
	switch {
	case now != 0 && (shown == 0 || now == shown):
		return slot, true
	case shown == 0:
		return t.nearest(slot)
	}
	at := shown - (offsetOf(time.UnixMilli(slot).In(t.zone)) + shiftMax).Milliseconds()
	if t.fields.anyHour {
		at = max(at, last)
	}
	for {
		next, wall, ok := t.fields.next(at, t.zone)
		if !ok || wall >= shown {
			return next, ok
		}
		at = next
	}
}

// nearest returns the slot that is nearest to at, which is none.
func (t *Times) nearest(at int64) (slot int64, ok bool) {
	from := at - shiftMax.Milliseconds()
	slot, ok = t.Next(at)
	if ok {
		from = max(from, at-(slot-at))
	}
	for before, some := t.Next(from); some && before < at; before, some = t.Next(before) {
		slot, ok = before, true
	}
	return slot, ok
}

package cron

import "time"

const (
	// lastMS is the last millisecond of the year 9999. Nothing runs after it, because times of
	// later years cannot be written.
	lastMS = 253_402_300_799_999
	// jumpMax is longer than any jump of a clock in history.
	jumpMax = 48 * time.Hour
	// shiftMax bounds the shift of a slot by a new release of the zones: governments move clocks
	// by an hour, rarely by two.
	shiftMax = 3 * time.Hour
	// jumpsMax bounds the jumps in one search, which skips those that are jumpMax before a time
	// that it found.
	jumpsMax = 1000
)

// wall returns the local time at a given offset, as if it were UTC.
func wall(at time.Time, offset time.Duration) time.Time { return at.UTC().Add(offset) }

// offsetOf returns the zone's offset from UTC at that time.
func offsetOf(at time.Time) time.Duration {
	_, seconds := at.Zone()
	return time.Duration(seconds) * time.Second
}

// next returns the first run after after, and the local time that it is for: the first one, if
// the clocks skip several. It goes from one jump of the zone's clocks to the next, because
// between them local time advances evenly.
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
			return ends.UnixMilli(), slot.UnixMilli(), ends.UnixMilli() <= lastMS // the jump skips it
		}
		at = ends
		if later := run.Add(-jumpMax); at.Before(later) {
			at = later.In(zone)
		}
	}
	return 0, 0, false
}

// Wall returns the local time that the slot is for, in milliseconds as if it were UTC; 0 if
// the plan does not have the slot, or has an interval.
func (t *Times) Wall(slot int64) int64 {
	if t.fields == nil || slot == 0 {
		return 0
	}
	at, shown, ok := t.fields.next(slot-2, t.zone) // from before a jump, if the slot is at one
	if !ok || at != slot {
		return 0
	}
	return shown
}

// Again returns the place of a slot that was computed for the local time shown: the same place,
// unless the zone's data have changed. Earlier local times count as done, so that none is done
// twice; for a plan that follows elapsed time, so do times before last, the last slot that ran.
// If shown is 0, it is not known, and the nearest slot is returned. ok is false if the plan
// never runs again.
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

// nearest returns the slot nearest to at, which is not a slot itself.
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

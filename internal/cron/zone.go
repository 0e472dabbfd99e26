package cron

import "time"

const (
	// lastMS is the last millisecond of the year 9999, after which nothing runs:
	// times of later years cannot be written.
	lastMS = 253_402_300_799_999
	// jumpMax is more than any clock ever jumped.
	jumpMax = 48 * time.Hour
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

// next returns the first time after after. It goes from one jump of the zone's
// clocks to the next: in between, the clock on the wall only goes on.
func (f *fields) next(after int64, zone *time.Location) (next int64, ok bool) {
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
			return 0, false
		}
		run := slot.Add(-offset)
		if ends.IsZero() || run.Before(ends) {
			return run.UnixMilli(), run.UnixMilli() <= lastMS
		}
		if !f.anyHour && slot.Before(wall(ends, offsetOf(ends))) {
			return ends.UnixMilli(), ends.UnixMilli() <= lastMS // it is left out
		}
		at = ends
		if later := run.Add(-jumpMax); at.Before(later) {
			at = later.In(zone)
		}
	}
	return 0, false
}

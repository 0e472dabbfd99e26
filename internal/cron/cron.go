// Package cron computes when a schedule runs. It knows nothing of claimq: the API validates
// user input with it, and the leader computes the times with it that it then writes to the
// log.
//
// An expression has five fields: minute, hour, day of month, month, day of week. A field is
// `*` or a list of numbers, ranges `a-b`, and either with a step: `*/s`, `a-b/s`, `a/s`
// (from a on). Months and days of the week have names such as JAN and SUN; Sunday is 0 and
// 7. A day of month may be `L`, the last, or `15W`, the working day nearest to the 15th of
// that month; a day of week `5L`, the last Friday of the month, or `1#2`, its second Monday.
// If both days are given, either one is enough, unless one of the fields begins with `*`:
// then both must match. An expression may also be one of the names @hourly, @daily or
// @midnight, @weekly, @monthly, @yearly or @annually. There are no seconds and no years.
//
// The fields are matched with the local time of the time zone. Where its clocks jump:
//   - A schedule for certain hours runs once for each local time: the first time
//     if it comes twice, and at the moment of the jump if it is skipped.
//   - A schedule for any hour (the field begins with `*`) follows elapsed time: it
//     runs in both hours of the same name, and skipped times are skipped.
package cron

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/claimq/claimq/internal/zones"
)

// Plan says when a schedule runs: by Cron in Timezone, or every EveryMS.
type Plan struct {
	Cron     string // five fields, or @hourly, @daily, ...
	Timezone string // IANA name; "" = UTC
	EveryMS  int64
}

// Errors of Plan.Read, by the field that is wrong.
var (
	ErrCron     = errors.New("bad cron expression")
	ErrTimezone = errors.New("unknown time zone")
	ErrEvery    = errors.New("bad interval")
)

// Times is a Plan that has been read. It is never changed, and safe for concurrent use.
type Times struct {
	fields  *fields // nil: every everyMS
	zone    *time.Location
	everyMS int64
}

// Read parses the plan with these zones; nil: those in the binary. A plan whose time never
// comes, such as February 31st, is not an error. Errors, wrapped with details: ErrCron,
// ErrTimezone, ErrEvery.
func (p Plan) Read(data *zones.Data) (*Times, error) {
	switch {
	case p.Cron == "" && p.EveryMS <= 0:
		return nil, fmt.Errorf("%w: %d ms", ErrEvery, p.EveryMS)
	case p.Cron == "":
		return &Times{everyMS: p.EveryMS}, nil
	case p.EveryMS != 0:
		return nil, fmt.Errorf("%w: %d ms together with a cron expression", ErrEvery, p.EveryMS)
	}
	f, err := parse(p.Cron)
	if err != nil {
		return nil, err
	}
	zone, err := data.Location(p.Timezone)
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrTimezone, p.Timezone)
	}
	return &Times{fields: f, zone: zone}, nil
}

// Next returns the first time after after at which the plan runs, both in milliseconds since
// the Unix epoch; ok is false if it never runs again. For EveryMS, after must be the
// previous slot.
func (t *Times) Next(after int64) (next int64, ok bool) {
	if t.fields == nil {
		return t.Following(after, after)
	}
	if after > lastMS {
		return 0, false
	}
	next, _, ok = t.fields.next(after, t.zone)
	return next, ok
}

// Latest returns the last slot that is not after now, looking at slot and at most limit
// slots after it. passed is the number of slots it skips, including slot itself. slot must
// be one of the plan's and not after now.
func (t *Times) Latest(slot, now int64, limit int64) (latest, passed int64) {
	if t.fields == nil {
		// The difference of any two int64 fits in a uint64.
		passed = int64(min(uint64(now-slot)/uint64(t.everyMS), uint64(limit)))
		return slot + passed*t.everyMS, passed
	}
	for latest = slot; passed < limit; passed++ {
		next, ok := t.Next(latest)
		if !ok || next > now {
			break
		}
		latest = next
	}
	return latest, passed
}

// Following returns the first slot after both now and slot, which must be one of the plan's;
// ok is false if the plan never runs again.
func (t *Times) Following(slot, now int64) (next int64, ok bool) {
	now = max(slot, now)
	if t.fields != nil {
		return t.Next(now)
	}
	// The difference of any two int64 fits in a uint64.
	behind := int64(uint64(now-slot) % uint64(t.everyMS))
	if now > math.MaxInt64-t.everyMS {
		return 0, false
	}
	return now - behind + t.everyMS, true
}

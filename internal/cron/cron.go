// Package cron says when a schedule runs. It knows nothing of claimq: the API
// checks with it what users send, and the leader computes with it what it then
// logs as a value.
//
// An expression has five fields: minute, hour, day of month, month, day of week.
// A field is `*` or a list of numbers, ranges `a-b`, and either with a step,
// `*/s`, `a-b/s`, `a/s` (from a on). Months and days of the week have names, JAN
// and SUN; Sunday is 0 and 7. A day of month may be `L`, the last, or `15W`, the
// working day nearest to the 15th of that month; a day of week `5L`, the last
// Friday of the month, or `1#2`, its second Monday. If both days are given,
// either will do, unless one of the fields begins with `*`: then both must match.
// Or it is one of the names @hourly, @daily or @midnight, @weekly, @monthly,
// @yearly or @annually. There are no seconds and no years.
//
// The fields are matched with the time on the wall in the time zone. Where its
// clocks jump:
//   - What is set to certain hours runs once for each time on the wall: the first
//     time if that comes twice, and at the moment of the jump if it is left out.
//   - What runs at any hour (the field begins with `*`) goes by the time that
//     passes: it runs in both hours of the same name, and what is left out is
//     left out.
package cron

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/claimq/claimq/internal/zones"
)

// Plan is when a schedule runs: by Cron in Timezone, or every EveryMS.
type Plan struct {
	Cron     string // five fields, or @hourly, @daily, ...
	Timezone string // IANA name; "" = UTC
	EveryMS  int64
}

// Errors of Check: which field is wrong.
var (
	ErrCron     = errors.New("bad cron expression")
	ErrTimezone = errors.New("unknown time zone")
	ErrEvery    = errors.New("bad interval")
)

// Times is a Plan that has been read. It is never changed, and safe for
// concurrent use.
type Times struct {
	fields  *fields // nil: every everyMS
	zone    *time.Location
	everyMS int64
}

// Read reads the plan by these zones; nil: those in the binary. A plan whose time never
// comes, as on February 31st, is not wrong. Errors: ErrCron, ErrTimezone, ErrEvery, wrapped,
// with what is wrong.
func (p Plan) Read(data *zones.Data) (*Times, error) {
	switch {
	case p.Cron == "" && p.EveryMS <= 0:
		return nil, fmt.Errorf("%w: %d ms", ErrEvery, p.EveryMS)
	case p.Cron == "":
		return &Times{everyMS: p.EveryMS}, nil
	case p.EveryMS != 0:
		return nil, fmt.Errorf("%w: %d ms beside a cron expression", ErrEvery, p.EveryMS)
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

// Next returns the first time after after at which the plan runs, both in
// milliseconds since the Unix epoch; ok false if there is none. For EveryMS, after is the
// slot before.
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

// Latest returns the last slot that is not after now, of slot and at most limit that
// follow it, and how many it passes over: slot itself is one, unless it is the last.
// slot is one of the plan's, and not after now.
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

// Following returns the first slot after now, and after slot, which is one of
// the plan's; ok false if there is none.
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

package periodic

import (
	"fmt"
	"time"

	"github.com/claimq/claimq/internal/cron"
)

// slotMin is the least time between two slots.
const slotMin = time.Second

// Slots returns the first slot after the given time, or the zero time after the last slot. It must return the same
// in every replica, in whole seconds.
type Slots func(after time.Time) time.Time

// Every returns slots at intervals of d, in whole seconds, counted from the beginning of 1970 in UTC: with 24 h they
// are at midnight UTC.
func Every(d time.Duration) (Slots, error) {
	if d < slotMin || d%time.Second != 0 {
		return nil, fmt.Errorf("periodic: every %v, it must be a second or more, in whole seconds", d)
	}
	step := int64(d / time.Second)
	return func(after time.Time) time.Time {
		n := after.Unix() / step
		if after.Unix()%step < 0 {
			n--
		}
		return time.Unix((n+1)*step, 0).UTC()
	}, nil
}

// Cron returns the slots of an expression with five fields, or @hourly, @daily and the like, in the time zone, an
// IANA name; "" is UTC. When clocks change, an expression with certain hours still runs once a day, like a schedule
// of the cluster.
func Cron(expression, timezone string) (Slots, error) {
	times, err := cron.Plan{Cron: expression, Timezone: timezone}.Read(nil)
	if err != nil {
		return nil, fmt.Errorf("periodic: %w", err)
	}
	return func(after time.Time) time.Time {
		next, ok := times.Next(after.UnixMilli())
		if !ok {
			return time.Time{}
		}
		return time.UnixMilli(next).UTC()
	}, nil
}

package periodic

import (
	"fmt"
	"time"

	"github.com/claimq/claimq/internal/cron"
)

// slotMin is the least time between two slots.
const slotMin = time.Second

// Slots says when a schedule is due: it returns the first time after the one that it is
// given, or the zero time if there is none. It has to be the same in every replica, and whole
// seconds.
type Slots func(after time.Time) time.Time

// Every returns the slots that are d apart, whole seconds, from the beginning of 1970 in UTC
// on: every 24 h is at midnight there.
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

// Cron returns the slots of an expression of five fields, or @hourly, @daily and the like, in
// the time zone, an IANA name; "" is UTC. Where the clocks there jump, what is set to certain
// hours runs once a day, as schedules of the cluster do.
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

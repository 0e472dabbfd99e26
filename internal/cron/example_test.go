package cron_test

import (
	"fmt"
	"time"

	"github.com/claimq/claimq/internal/cron"
)

// In Berlin the clocks jump from 2 to 3 o'clock on that day. The slot of 02:30 runs at the moment of the jump.
func ExamplePlan_Read() {
	times, err := cron.Plan{Cron: "30 2 * * *", Timezone: "Europe/Berlin"}.Read(nil)
	if err != nil {
		panic(err)
	}
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC).UnixMilli()
	for range 3 {
		next, ok := times.Next(at)
		if !ok {
			panic("no further slot")
		}
		fmt.Println(time.UnixMilli(next).UTC().Format(time.RFC3339))
		at = next
	}
	// Output:
	// 2026-03-28T01:30:00Z
	// 2026-03-29T01:00:00Z
	// 2026-03-30T00:30:00Z
}

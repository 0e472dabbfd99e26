package diary

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns nanoseconds of the machine's monotonic clock: the same for all
// processes, and the one that Go's time.Time measures by. It goes on while a
// process is stopped.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every kernel that Go runs on has it
	}
	return ts.Nano()
}

// At returns t as Now counts, or a little later than that, never earlier.
func At(t time.Time) int64 {
	left := time.Until(t)
	return Now() + int64(left)
}

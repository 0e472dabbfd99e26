package diary

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns nanoseconds of the machine's monotonic clock, which is the same for all
// processes and the one that Go's time.Time uses. It continues while a process is stopped.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every kernel that Go runs on has it
	}
	return ts.Nano()
}

// At converts t to Now's clock, rounded up.
func At(t time.Time) int64 {
	left := time.Until(t)
	return Now() + int64(left)
}

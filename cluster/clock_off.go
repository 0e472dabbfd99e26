//go:build !faults

package cluster

import "time"

func newSystemClock() ClockSource { return &systemClock{start: time.Now()} }

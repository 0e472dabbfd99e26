package clocks

import (
	"time"

	"github.com/claimq/claimq/cluster/lease"
)

// System returns the machine's clocks. Its monotonic time begins now.
func System() lease.ClockSource { return newSystem() }

// system implements lease.ClockSource with the machine's clocks.
type system struct{ start time.Time }

// Wall implements lease.ClockSource.
func (c *system) Wall() int64 { return time.Now().UnixNano() }

// Mono implements lease.ClockSource, using the monotonic reading in start.
func (c *system) Mono() time.Duration { return time.Since(c.start) }

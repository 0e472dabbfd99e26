package clustertest

import (
	"sync/atomic"
	"time"
)

// Clock is a node's clock whose wall time can jump.
type Clock struct {
	start time.Time
	skew  atomic.Int64
}

func newClock() *Clock { return &Clock{start: time.Now()} }

// Wall returns the wall clock, in nanoseconds since the Unix epoch.
func (c *Clock) Wall() int64 { return time.Now().UnixNano() + c.skew.Load() }

// Mono returns the monotonic clock.
func (c *Clock) Mono() time.Duration { return time.Since(c.start) }

// Jump moves the wall clock by d, forwards or backwards.
func (c *Clock) Jump(d time.Duration) { c.skew.Add(int64(d)) }

// Package clocks reads clocks: the machine's own ([System]), and the wall clocks of the
// other members, as a leader hears of them ([Walls]).
//
//	walls.go          the members' wall clocks, and the alarm when they are apart
//	system.go         the machine's clocks
//	system_faults.go  the same with a wall clock that a fault test sets (build tag faults)
//
// It does not decide about tasks or leases: package cluster/lease derives the calendar from
// the wall clocks of a majority. It starts no goroutine and knows no node.
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

package cluster

import (
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

// ClockSource is where a node takes its time from. Tests inject one.
type ClockSource = lease.ClockSource

// systemClock is the machine's clocks.
type systemClock struct{ start time.Time }

func newSystemClock() *systemClock { return &systemClock{start: time.Now()} }

func (c *systemClock) Wall() int64 { return time.Now().UnixNano() }

// Mono relies on start's monotonic reading.
func (c *systemClock) Mono() time.Duration { return time.Since(c.start) }

// laterOf returns the later of each clock.
func laterOf(a, b fsm.Stamp) fsm.Stamp {
	return fsm.Stamp{U: max(a.U, b.U), T: max(a.T, b.T)}
}

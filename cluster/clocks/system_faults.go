//go:build faults

package clocks

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/cluster/lease"
)

// faultClockFile names, in the environment, the file with how far the wall clock is
// ahead, in nanoseconds. No file: not at all.
const faultClockFile = "CLAIMQ_FAULT_CLOCK"

// faultClockLook is how long what the file said is believed.
const faultClockLook = 10 * time.Millisecond

// faultClock is the machine's clocks, but for a wall clock that a test sets. A build
// for fault tests has it; what users get has not.
type faultClock struct {
	system
	path string

	mu     sync.Mutex
	looked time.Duration // guarded by mu; by Mono
	ahead  int64         // guarded by mu; nanoseconds
}

func newSystem() lease.ClockSource {
	return &faultClock{system: system{start: time.Now()}, path: os.Getenv(faultClockFile), looked: -faultClockLook}
}

func (c *faultClock) Wall() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.Mono(); c.path != "" && now-c.looked >= faultClockLook {
		c.looked = now
		text, err := os.ReadFile(c.path)
		if ahead, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && perr == nil {
			c.ahead = ahead
		}
	}
	return c.system.Wall() + c.ahead
}

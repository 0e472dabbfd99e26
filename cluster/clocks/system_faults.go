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

// faultClockFile is the environment variable with the path of a file that says how far the
// wall clock is ahead, in nanoseconds. Without the file it is not ahead.
const faultClockFile = "CLAIMQ_FAULT_CLOCK"

// faultClockLook is the time after which the file is read again.
const faultClockLook = 10 * time.Millisecond

// faultClock has a wall clock that a test can set. Only builds for fault tests include it.
type faultClock struct {
	system
	path string

	mu     sync.Mutex
	looked time.Duration // guarded by mu; time of the last reading, by Mono
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

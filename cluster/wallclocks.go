package cluster

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// clocksApartMax is how far the nodes' wall clocks may be apart before the
	// leader says so. It says that it is over below clocksApartFine.
	clocksApartMax  = time.Second
	clocksApartFine = clocksApartMax / 2
	// wallReadingMax is for how long a reading of another node's clock counts.
	wallReadingMax = 30 * time.Second
)

// wallClocks are the wall clocks of the other nodes, as the leader reads them
// while it looks after the members. No lease depends on them; run_at,
// expires_at, retention and schedules do: they go by the leader's. It is safe for concurrent use.
type wallClocks struct {
	logger hclog.Logger

	mu       sync.Mutex             // guards what follows
	readings map[string]wallReading // by node id
	apart    bool                   // it was said that they are apart
}

// wallReading is how far a node's wall clock was ahead of the leader's. The
// answer was on its way for some of the time that it took to ask: the truth is
// at most slack off, either way.
type wallReading struct {
	at           time.Duration // monotonic time
	ahead, slack time.Duration
}

func newWallClocks(logger hclog.Logger) *wallClocks {
	return &wallClocks{logger: logger, readings: make(map[string]wallReading)}
}

// note takes what a node answered when it was asked for its clock, both in
// nanoseconds since the Unix epoch: its own, and the leader's when it asked, at
// which time it was asked and how long that took.
func (c *wallClocks) note(nodeID string, wall, asked int64, at, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings[nodeID] = readWall(wall, asked, at, took)
}

// readWall makes a reading of what a node answered; the parameters are note's.
func readWall(wall, asked int64, at, took time.Duration) wallReading {
	slack := took / 2
	return wallReading{at: at, ahead: time.Duration(wall-asked) - slack, slack: slack}
}

// apart returns by how much the node's clock is off at least, either way; 0 if
// it need not be.
func (r wallReading) apart() time.Duration { return max(r.ahead.Abs()-r.slack, 0) }

// judge says, once, that clocks are apart, and that they are no longer. now is
// the monotonic time. Readings that are too old are forgotten.
func (c *wallClocks) judge(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := time.Duration(0), time.Duration(0) // the leader's own
	for nodeID, r := range c.readings {
		if now-r.at > wallReadingMax {
			delete(c.readings, nodeID)
			continue
		}
		// What they are apart at least: a slow answer is no reason for an alarm.
		low, high = min(low, r.ahead+r.slack), max(high, r.ahead-r.slack)
	}
	switch apart := high - low; {
	case !c.apart && apart > clocksApartMax:
		c.apart = true
		c.logger.Error("the nodes' wall clocks are apart: see that NTP sets all of them (leases are safe, times of day are the leader's)",
			"apart_ms", apart.Milliseconds(), "ahead_of_this_node", c.describeLocked())
	case c.apart && apart < clocksApartFine:
		c.apart = false
		c.logger.Info("the nodes' wall clocks agree again", "apart_ms", apart.Milliseconds())
	}
}

// describeLocked names the nodes with how far their clocks are ahead.
func (c *wallClocks) describeLocked() string {
	items := make([]string, 0, len(c.readings))
	for _, nodeID := range sortedKeys(c.readings) {
		items = append(items, fmt.Sprintf("%s %d ms", nodeID, c.readings[nodeID].ahead.Milliseconds()))
	}
	return strings.Join(items, ", ")
}

// ahead returns how far each node's clock is ahead of the leader's, by node id.
func (c *wallClocks) ahead() map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]time.Duration, len(c.readings))
	for nodeID, r := range c.readings {
		out[nodeID] = r.ahead
	}
	return out
}

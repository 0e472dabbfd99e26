package clocks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/lease"
)

const (
	// ApartMax is the difference between the nodes' wall clocks above which the leader
	// raises an alarm. It ends the alarm below apartFine.
	ApartMax  = time.Second
	apartFine = ApartMax / 2
	// readingMax is the age at which a reading of a node's clock is no longer used.
	readingMax = 30 * time.Second
)

// Walls holds the wall clocks of the members as the leader reads them, including its own.
// No lease depends on them, but run_at, expires_at, retention and schedules do, through the
// calendar, which the voters' clocks bound (lease.Clock). It is safe for concurrent use.
type Walls struct {
	logger hclog.Logger

	mu       sync.Mutex // guards everything below
	readings map[raft.ServerID]Reading
	majority lease.Wall    // what Majority returned last
	read     int           // the number of clocks behind majority, 0 before the first call
	stepAt   time.Duration // monotonic time at which a step of the majority was first seen; 0 if it is steady
	apart    bool          // the alarm that they are apart is on
	refused  bool          // the alarm that the leader's clock is not followed is on
}

// Reading is a node's wall clock as read against the reader's monotonic clock. Because the
// answer took some time, it can be off by up to slack either way. The zero value is for a
// node that has not answered.
type Reading struct {
	NodeID string // of the node with this clock
	Wall   lease.Wall
	at     time.Duration // monotonic time
	slack  time.Duration
}

// Read returns the reading of a wall clock in nanoseconds since the Unix epoch, from a node
// that was asked at a monotonic time and took that long to answer.
func Read(nodeID string, wall int64, asked, took time.Duration) Reading {
	at := asked + took/2
	return Reading{NodeID: nodeID, Wall: lease.ReadWall(wall, at), at: at, slack: took / 2}
}

// Ahead returns how far the clock is ahead of the majority's.
func (r Reading) Ahead(majority lease.Wall) time.Duration {
	return time.Duration(r.Wall - majority)
}

// Apart returns by how much the clock is certainly off, either way.
func (r Reading) Apart(majority lease.Wall) time.Duration {
	return max(r.Ahead(majority).Abs()-r.slack, 0)
}

// NewWalls returns an empty set of clocks.
func NewWalls(logger hclog.Logger) *Walls {
	return &Walls{logger: logger, readings: make(map[raft.ServerID]Reading)}
}

// Note records a reading of a member's clock.
func (c *Walls) Note(id raft.ServerID, r Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings[id] = r
}

// NoteOwn records a reading of the leader's own clock, and logs if it has jumped.
func (c *Walls) NoteOwn(id raft.ServerID, r Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.readings[id]; ok {
		if jump := time.Duration(r.Wall - before.Wall); jump.Abs() > ApartMax {
			c.logger.Warn("this node's wall clock has jumped", "by_ms", jump.Milliseconds())
		}
	}
	c.readings[id] = r
}

// Majority returns lease.MajorityWall of these voters' clocks. now is the monotonic time;
// readings that are too old are dropped.
//
// Readings are from different moments. So two clocks that were wrong one after the other
// could pass for a majority that is wrong together. Unless more clocks were read than before,
// a step of more than lease.WallBound therefore counts only once a majority was read again
// after the step was seen; until then the majority's time continues without the step.
func (c *Walls) Majority(now time.Duration, voters []raft.ServerID) (majority lease.Wall, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.readings {
		if now-r.at > readingMax {
			delete(c.readings, id)
		}
	}
	walls := c.readLocked(voters, -1)
	majority, ok = lease.MajorityWall(walls, len(voters))
	if !ok {
		c.stepAt = 0
		return 0, false
	}
	if len(walls) <= c.read && !lease.Follows(time.Duration(majority-c.majority)) {
		if c.stepAt == 0 {
			c.stepAt = now
		}
		if majority, ok = lease.MajorityWall(c.readLocked(voters, c.stepAt), len(voters)); !ok {
			return c.majority, true
		}
	}
	c.majority, c.read, c.stepAt = majority, len(walls), 0
	return majority, true
}

// readLocked returns the voters' clocks that were read after a monotonic time.
func (c *Walls) readLocked(voters []raft.ServerID, after time.Duration) []lease.Wall {
	walls := make([]lease.Wall, 0, len(voters))
	for _, id := range voters {
		if r, ok := c.readings[id]; ok && r.at-r.slack > after {
			walls = append(walls, r.Wall)
		}
	}
	return walls
}

// Judge raises or ends the alarm that clocks are apart, and the alarm that the leader's own
// clock, which is own ahead of the majority's, is not followed. Without a majority it must
// not be called.
func (c *Walls) Judge(majority lease.Wall, own time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := time.Duration(0), time.Duration(0)
	for _, r := range c.readings {
		// Use the least difference that is certain, so that slow answers raise no alarm.
		low, high = min(low, r.Ahead(majority)+r.slack), max(high, r.Ahead(majority)-r.slack)
	}
	switch apart := high - low; {
	case !c.apart && apart > ApartMax:
		c.apart = true
		c.logger.Error("the nodes' wall clocks are apart: see that NTP sets all of them (leases are safe)",
			"apart_ms", apart.Milliseconds(), "ahead_of_the_majority", c.describeLocked(majority))
	case c.apart && apart < apartFine:
		c.apart = false
		c.logger.Info("the nodes' wall clocks agree again", "apart_ms", apart.Milliseconds())
	}
	switch follows := lease.Follows(own); {
	case !c.refused && !follows:
		c.refused = true
		c.logger.Error("this leader's wall clock is not followed, times of day go by the clocks of a majority of voters: see that NTP sets it",
			"ahead_of_the_majority_ms", own.Milliseconds(), "followed_within_ms", lease.WallBound.Milliseconds())
	case c.refused && follows:
		c.refused = false
		c.logger.Info("this leader's wall clock is followed again", "ahead_of_the_majority_ms", own.Milliseconds())
	}
}

// describeLocked lists the nodes with how far their clocks are ahead.
func (c *Walls) describeLocked(majority lease.Wall) string {
	items := make([]string, 0, len(c.readings))
	for _, id := range slices.Sorted(maps.Keys(c.readings)) {
		r := c.readings[id]
		items = append(items, fmt.Sprintf("%s %d ms", r.NodeID, r.Ahead(majority).Milliseconds()))
	}
	return strings.Join(items, ", ")
}

// Ahead returns how far each node's clock is ahead of the majority's, by node id.
func (c *Walls) Ahead(majority lease.Wall) map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]time.Duration, len(c.readings))
	for _, r := range c.readings {
		out[r.NodeID] = r.Ahead(majority)
	}
	return out
}

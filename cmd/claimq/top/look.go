package top

import (
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Look is what the nodes answered when they were asked once. What was not
// answered, or not asked for this time, is as of an earlier look, or nil.
type Look struct {
	At time.Time
	// Cluster is what the leader sees, or without one the node that answered. nil:
	// nobody answered, or the key may not ask.
	Cluster *wire.Cluster
	// NoLeader: the cluster says so, or nobody could pass a read on to a leader.
	NoLeader bool
	// Metrics are those of the nodes that were scraped at this look, by node id.
	Metrics map[string]Metrics
	Types   *Types
	Workers *Workers
	// Problems say in words what was not answered, and why.
	Problems []string
	// Err is why nothing was answered at all; nil if anything was.
	Err error
}

// Types are the task types as of At, by name.
type Types struct {
	At   time.Time
	Rows []wire.Type
}

// Workers are those who hold claims or were heard from lately, as of At, by id.
type Workers struct {
	At   time.Time
	Rows []wire.Worker
}

// Metrics are what one node's /metrics said at a moment, as far as it is shown.
// A gauge that the node left out is below 0.
type Metrics struct {
	At      time.Time
	NodeID  string
	Leads   bool
	Started float64 // seconds since the Unix epoch; tells one process from the next
	Counters

	Tasks              map[string]int64 // by status; nil: the node did not tell
	OldestPendingMS    int64
	StateBytes         int64
	StateLimitBytes    int64
	DiskFreeBytes      int64
	DiskSizeBytes      int64
	ProcessMemoryBytes int64
}

// Counters count events of the cluster since their node's process was started,
// while it led.
type Counters struct {
	Submitted, Claimed, Completed, Failed, Expired float64
}

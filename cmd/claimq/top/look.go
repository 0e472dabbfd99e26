package top

import (
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Look holds the nodes' answers to one round of requests. What was not asked or answered is from an earlier look, or
// nil.
type Look struct {
	At time.Time
	// Cluster is the leader's view, or without a leader that of the node that answered. It is nil if no node answered
	// or the key may not ask.
	Cluster *wire.Cluster
	// NoLeader is true if the cluster says so, or if no node could pass a read to a leader.
	NoLeader bool
	// Metrics holds the nodes scraped at this look, by node id.
	Metrics map[string]Metrics
	Types   *Types
	Workers *Workers
	// Problems say in words what was not answered, and why.
	Problems []string
	// Err says why no request was answered. It is nil if any was.
	Err error
}

// Types holds the task types as of At, by name.
type Types struct {
	At   time.Time
	Rows []wire.Type
}

// Workers holds the workers with claims or recent requests as of At, by id.
type Workers struct {
	At   time.Time
	Rows []wire.Worker
}

// Metrics holds the values from one node's /metrics that are shown. A gauge that the node left out is below 0.
type Metrics struct {
	At      time.Time
	NodeID  string
	Leads   bool
	Started float64 // seconds since the Unix epoch; it tells processes apart
	Counters

	Tasks              map[string]int64 // by status; nil: the node did not report them
	OldestPendingMS    int64
	StateBytes         int64
	StateLimitBytes    int64
	DiskFreeBytes      int64
	DiskSizeBytes      int64
	ProcessMemoryBytes int64
}

// Counters count the cluster's events since the process of their node started, while it led.
type Counters struct {
	Submitted, Claimed, Completed, Failed, Expired float64
}

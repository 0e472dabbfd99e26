package top

import "time"

// View is what is shown of a cluster, and what a line of JSON holds. Null is what
// is not known.
type View struct {
	At           time.Time `json:"at"`
	Leader       string    `json:"leader"` // "": none, or the key may not ask
	Term         uint64    `json:"term"`
	FeatureLevel uint32    `json:"feature_level"`
	// NoLeaderMS is for how long there has been no leader, as far as was looked; 0:
	// there is one.
	NoLeaderMS int64 `json:"no_leader_ms"`
	NodesUp    int   `json:"nodes_up"`

	Counts          map[string]int64 `json:"counts"` // of all tasks, by status
	OldestPendingMS *int64           `json:"oldest_pending_age_ms"`
	Rates           *Rates           `json:"rates"`
	StateBytes      *int64           `json:"state_bytes"` // of the leader
	StateLimitBytes *int64           `json:"state_limit_bytes"`

	Nodes    []NodeRow   `json:"nodes"`
	Types    []TypeRow   `json:"types"`
	Workers  []WorkerRow `json:"workers"`
	Problems []string    `json:"problems"`

	noLeaderSince      time.Time // zero: there is one
	silentSince        time.Time // zero: somebody answered
	typesAt, workersAt time.Time // what the rows are as of; zero: there are none yet
}

// Rates are events a second between two looks, of the whole cluster.
type Rates struct {
	Submitted float64 `json:"submitted_per_s"`
	Claimed   float64 `json:"claimed_per_s"`
	Completed float64 `json:"completed_per_s"`
	Failed    float64 `json:"failed_per_s"` // for good
	Expired   float64 `json:"expired_per_s"`
}

// TypeRow is a task type. Its rates are those of the server, over the last minute.
type TypeRow struct {
	TaskType        string           `json:"task_type"`
	Counts          map[string]int64 `json:"counts"`
	OldestPendingMS int64            `json:"oldest_pending_age_ms"`
	SubmittedPerS   float64          `json:"submitted_per_s"`
	CompletedPerS   float64          `json:"completed_per_s"`
	FailedPerS      float64          `json:"failed_per_s"`
	Paused          bool             `json:"paused"`
	MaxClaimed      *int32           `json:"max_claimed"`
	RateLimit       *float64         `json:"rate_limit"`
}

// WorkerRow is a worker.
type WorkerRow struct {
	WorkerID   string   `json:"worker_id"`
	Claimed    int      `json:"claimed"`
	LastSeenMS *int64   `json:"last_seen_ms"` // how long ago
	TaskIDs    []uint64 `json:"task_ids"`     // the first taskIDsMax
}

// taskIDsMax bounds the tasks of a worker that are kept.
const taskIDsMax = 20

// NodeRow is a node.
type NodeRow struct {
	NodeID        string `json:"node_id"`
	State         string `json:"state"`
	Suffrage      string `json:"suffrage"`
	Up            bool   `json:"up"`
	AppliedIndex  uint64 `json:"applied_index"`
	LagEntries    *int64 `json:"lag_entries"` // behind what the leader has applied
	LastContactMS int64  `json:"last_contact_ms"`
	MemoryBytes   *int64 `json:"memory_bytes"` // of the process
	DiskFreeBytes *int64 `json:"disk_free_bytes"`
	DiskSizeBytes *int64 `json:"disk_size_bytes"`
	Version       string `json:"version"`
	Healthy       bool   `json:"healthy"`
	Problem       string `json:"problem"`
}

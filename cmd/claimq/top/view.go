package top

import "time"

// View is the state of a cluster as it is shown, and as a line of JSON. Unknown values are null.
type View struct {
	At           time.Time `json:"at"`
	Leader       string    `json:"leader"` // "": no leader, or the key may not ask
	Term         uint64    `json:"term"`
	FeatureLevel uint32    `json:"feature_level"`
	// NoLeaderMS says how long there has been no leader, as far as the looks show. It is 0 while there is a leader.
	NoLeaderMS int64 `json:"no_leader_ms"`
	NodesUp    int   `json:"nodes_up"`

	Counts          map[string]int64 `json:"counts"` // of all tasks, by status
	OldestPendingMS *int64           `json:"oldest_pending_age_ms"`
	Rates           *Rates           `json:"rates"`
	StateBytes      *int64           `json:"state_bytes"` // the leader's
	StateLimitBytes *int64           `json:"state_limit_bytes"`

	Nodes    []NodeRow   `json:"nodes"`
	Types    []TypeRow   `json:"types"`
	Workers  []WorkerRow `json:"workers"`
	Problems []string    `json:"problems"`

	noLeaderSince      time.Time // zero: there is a leader
	silentSince        time.Time // zero: a node answered
	typesAt, workersAt time.Time // when the rows were read; zero: there are none yet
}

// Rates holds the cluster's events per second between two looks.
type Rates struct {
	Submitted float64 `json:"submitted_per_s"`
	Claimed   float64 `json:"claimed_per_s"`
	Completed float64 `json:"completed_per_s"`
	Failed    float64 `json:"failed_per_s"` // for good
	Expired   float64 `json:"expired_per_s"`
}

// TypeRow is a task type. Its rates come from the server and cover the last minute.
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

// taskIDsMax bounds the tasks kept for a worker.
const taskIDsMax = 20

// NodeRow is a node.
type NodeRow struct {
	NodeID        string `json:"node_id"`
	State         string `json:"state"`
	Suffrage      string `json:"suffrage"`
	Up            bool   `json:"up"`
	AppliedIndex  uint64 `json:"applied_index"`
	LagEntries    *int64 `json:"lag_entries"` // entries behind the leader's applied index
	LastContactMS int64  `json:"last_contact_ms"`
	MemoryBytes   *int64 `json:"memory_bytes"` // of the process
	DiskFreeBytes *int64 `json:"disk_free_bytes"`
	DiskSizeBytes *int64 `json:"disk_size_bytes"`
	Version       string `json:"version"`
	Healthy       bool   `json:"healthy"`
	Problem       string `json:"problem"`
}

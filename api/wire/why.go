package wire

import "time"

// Why is the answer of GET /api/tasks/{id}/why.
type Why struct {
	Success bool     `json:"success"`
	Reasons []Reason `json:"reasons"` // empty if it is claimed, running or has ended
	// Ahead is the number of claimable tasks of its type and share key that will be claimed before it; null if it
	// cannot be claimed itself.
	Ahead *int64 `json:"ahead"`
}

// Reason is one reason why a task is not running. Fields other than Code and Message depend on the code.
type Reason struct {
	Code        string     `json:"code"`
	Message     string     `json:"message"`
	ShareKey    string     `json:"share_key,omitempty"`     // share_paused, share_limit_reached, share_rate_limited
	Holders     []Holder   `json:"holders,omitempty"`       // limit_reached, share_limit_reached: the first 100 claims
	At          *time.Time `json:"at,omitempty"`            // rate_limited, share_rate_limited
	RunAt       *time.Time `json:"run_at,omitempty"`        // scheduled
	Steps       []string   `json:"steps,omitempty"`         // blocked
	ID          uint64     `json:"id,omitempty"`            // group_behind: the head of its group
	LastAskedAt *time.Time `json:"last_asked_at,omitempty"` // no_worker; absent or null: not since this leader took over
	Ahead       *int64     `json:"ahead,omitempty"`         // queued
}

// Holder is a claim of a task.
type Holder struct {
	TaskID   uint64 `json:"task_id"`
	WorkerID string `json:"worker_id"`
}

// Worker is a worker that holds claims, or was heard from lately.
type Worker struct {
	WorkerID   string     `json:"worker_id"`
	Claimed    int        `json:"claimed"`
	TaskIDs    []uint64   `json:"task_ids"` // the first 100
	LastSeenAt *time.Time `json:"last_seen_at"`
}

// Workers is the answer of GET /api/workers.
type Workers struct {
	Success bool     `json:"success"`
	Workers []Worker `json:"workers"`
}

// Failures is the answer of GET /api/failures.
type Failures struct {
	Success    bool           `json:"success"`
	Failures   []FailureGroup `json:"failures"`    // the largest ones
	Groups     int            `json:"groups"`      // total number of groups
	Looked     int            `json:"looked"`      // tasks that were grouped
	Failed     int64          `json:"failed"`      // all failed tasks
	NextCursor string         `json:"next_cursor"` // "" or null: there are no older ones
}

// FailureGroup is a group of failed tasks of one type whose errors differ only in numbers, ids and quoted parts.
type FailureGroup struct {
	Group     string    `json:"group"`
	TaskType  string    `json:"task_type"`
	Signature string    `json:"signature"`
	Example   string    `json:"example"` // the error of the latest task
	Count     int       `json:"count"`
	FirstAt   time.Time `json:"first_at"`
	LastAt    time.Time `json:"last_at"`
	IDs       []uint64  `json:"ids"`     // the latest 5, latest first
	ByHour    []int     `json:"by_hour"` // in each of the last 24 hours, oldest first
}

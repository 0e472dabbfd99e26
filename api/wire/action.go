package wire

import "time"

// Action is the body of POST /api/tasks/actions.
type Action struct {
	Action      string `json:"action"`          // "retry", "cancel" or "delete"
	Filter      Filter `json:"filter,omitzero"` // zero fields do not filter
	All         bool   `json:"all,omitempty"`   // all tasks, without a filter
	AddAttempts int32  `json:"add_attempts,omitempty"`
	DryRun      bool   `json:"dry_run,omitempty"`
	Expect      *int64 `json:"expect,omitempty"`
}

// Filter selects tasks, as the parameters of a list do.
type Filter struct {
	Status        string     `json:"status,omitempty"`
	TaskType      string     `json:"task_type,omitempty"`
	WorkerID      string     `json:"worker_id,omitempty"`
	ParentID      uint64     `json:"parent_id,omitempty"`
	Labels        Labels     `json:"labels,omitempty"`
	ShareKey      string     `json:"share_key,omitempty"`
	CreatedAfter  *time.Time `json:"created_after,omitempty"`
	CreatedBefore *time.Time `json:"created_before,omitempty"`
	ErrorGroup    string     `json:"error_group,omitempty"` // as shown by GET /api/failures
}

// Acted is the answer of POST /api/tasks/actions.
type Acted struct {
	Success bool  `json:"success"`
	Matched int64 `json:"matched"`
	Done    int64 `json:"done"`
	More    bool  `json:"more,omitempty"` // it ran out of time: call again
	// For a dry run: how many tasks it could change, and why it could not change the others.
	Can    *int64           `json:"can,omitempty"`
	Cannot map[string]int64 `json:"cannot,omitempty"`
}

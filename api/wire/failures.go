package wire

import "time"

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

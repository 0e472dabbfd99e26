package wire

import "time"

// Failures is the answer of GET /api/failures.
type Failures struct {
	Success    bool           `json:"success"`
	Failures   []FailureGroup `json:"failures"`    // the largest
	Groups     int            `json:"groups"`      // how many there were
	Looked     int            `json:"looked"`      // tasks that were grouped
	Failed     int64          `json:"failed"`      // tasks that have failed
	NextCursor string         `json:"next_cursor"` // "" or null: no older ones have failed
}

// FailureGroup is the failed tasks of one type whose errors differ in nothing but numbers,
// ids and quoted parts.
type FailureGroup struct {
	Group     string    `json:"group"`
	TaskType  string    `json:"task_type"`
	Signature string    `json:"signature"`
	Example   string    `json:"example"` // the error of the latest
	Count     int       `json:"count"`
	FirstAt   time.Time `json:"first_at"`
	LastAt    time.Time `json:"last_at"`
	IDs       []uint64  `json:"ids"` // the latest 5, the latest first
}

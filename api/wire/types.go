package wire

import (
	"time"
)

// TypeSettings are the settings of a task type. In an answer nil means not set. In a PATCH each field that is present
// is set, and null clears it, so a PATCH is encoded from a map.
type TypeSettings struct {
	Paused     bool   `json:"paused"`
	MaxClaimed *int32 `json:"max_claimed"`

	MaxClaimedPerKey *int32 `json:"max_claimed_per_key"` // of the tasks with one share_key
	// RateLimitPerKey is the rate limit of the tasks with one share_key.
	RateLimitPerKey *float64 `json:"rate_limit_per_key"`
	Fair            bool     `json:"fair"` // share keys take turns

	RateLimit   *float64    `json:"rate_limit"`  // claims per second, six decimals
	DeadLetter  *DeadLetter `json:"dead_letter"` // to which type a task is copied when its last attempt has failed
	DelayMS     *int64      `json:"delay_ms"`    // of tasks that name neither a delay nor a time
	LeaseMS     *int64      `json:"lease_ms"`
	MaxAttempts *int32      `json:"max_attempts"` // 0 = no limit
	Backoff     *Backoff    `json:"backoff"`
	RetentionMS *int64      `json:"retention_ms"` // 0: removed at its end; -1: kept until deleted
}

// DeadLetter says to which type a task is copied when its last attempt has failed.
type DeadLetter struct {
	TaskType    string `json:"task_type"`
	MaxAttempts int32  `json:"max_attempts,omitempty"` // the attempt that is the last one, even if the task may have more; 0: as many as the task may have
}

// Type is a task type as the server answers it.
type Type struct {
	TaskType string `json:"task_type"`
	TypeTallies
	OldestWaitMS    int64   `json:"oldest_wait_ms"`
	OldestPendingID *uint64 `json:"oldest_pending_id"`
	TypeSettings
}

// TypeTallies are numbers of one task type, or of all.
type TypeTallies struct {
	Counts             map[string]int64 `json:"counts"` // by status
	OldestPendingAgeMS int64            `json:"oldest_pending_age_ms"`
	SubmittedPerS      float64          `json:"submitted_per_s"`
	CompletedPerS      float64          `json:"completed_per_s"`
	FailedPerS         float64          `json:"failed_per_s"`
}

// Types is the answer of GET /api/types and of PATCH /api/types/{type}.
type Types struct {
	Success bool         `json:"success"`
	Types   []Type       `json:"types,omitempty"`   // from GET
	Total   int          `json:"total,omitempty"`   // from GET, like the fields below
	Matched int          `json:"matched,omitempty"` // matching types, regardless of limit
	Next    string       `json:"next,omitempty"`    // for after of the next page by name; "" or null: this is the last page
	All     *TypeTallies `json:"all,omitempty"`     // of all types
	Type    *Type        `json:"type,omitempty"`    // from PATCH
}

// ShareSettings are the settings of one share, the tasks of a type with the same share_key. They come before the type's.
type ShareSettings struct {
	Paused     bool     `json:"paused"`
	MaxClaimed *int32   `json:"max_claimed"` // null: as the type's max_claimed_per_key
	Weight     int32    `json:"weight,omitempty"`
	RateLimit  *float64 `json:"rate_limit"` // null: as the type's rate_limit_per_key
}

// Share is a share as the server answers it.
type Share struct {
	ShareKey     string     `json:"share_key"`
	Pending      int64      `json:"pending"` // except those that wait for another task of their group
	Claimed      int64      `json:"claimed"`
	OldestWaitMS int64      `json:"oldest_wait_ms"`
	State        ShareState `json:"state"`
	OpensAt      *time.Time `json:"opens_at"` // when its rate limit lets a claim through; null: now
	ShareSettings
}

// ShareState says whether tasks of a share can be claimed, if their type can be.
type ShareState string

// The states of a share.
const (
	ShareOpen        ShareState = "open"
	SharePaused      ShareState = "paused"
	ShareLimited     ShareState = "limited"
	ShareRateLimited ShareState = "rate_limited"
)

// Shares is the answer of GET /api/types/{type}/shares, and of PUT and DELETE of one share.
type Shares struct {
	Success bool    `json:"success"`
	Shares  []Share `json:"shares,omitempty"` // from GET
	Next    string  `json:"next,omitempty"`   // for after of the next page; "" or null: this is the last page
	Share   *Share  `json:"share,omitempty"`  // from PUT and DELETE
}

// Defaults is the answer of GET and PATCH of /api/defaults.
type Defaults struct {
	Success  bool           `json:"success"`
	Defaults ServerDefaults `json:"defaults"`
	Limits   *Limits        `json:"limits,omitempty"` // from GET
}

// Limits are the limits.* of the nodes' configuration.
type Limits struct {
	BodyBytes  int `json:"body_bytes"`
	ValueBytes int `json:"value_bytes"` // of params, payload, result and result_payload each
	ErrorBytes int `json:"error_bytes"` // where a fail's error is cut
	Depth      int `json:"depth"`       // of nested JSON
	Items      int `json:"items"`       // tasks or ops of a request
}

// ServerDefaults are the settings for tasks that get them neither from themselves nor from their type.
type ServerDefaults struct {
	LeaseMS           int64    `json:"lease_ms"`
	MaxAttempts       int32    `json:"max_attempts"`        // 0 = no limit
	Backoff           *Backoff `json:"backoff"`             // null: none
	RetentionMS       int64    `json:"retention_ms"`        // 0: removed at its end; -1: kept until deleted
	FailedRetentionMS int64    `json:"failed_retention_ms"` // for failed tasks
}

// Upgraded is the answer of POST /api/cluster/upgrade. With "dry_run" the level is unchanged, and the other fields
// say what the upgrade would do.
type Upgraded struct {
	Success      bool            `json:"success"`
	FeatureLevel uint32          `json:"feature_level"`
	WouldBe      uint32          `json:"would_be,omitempty"`
	Nodes        []UpgradeMember `json:"nodes,omitempty"`
}

// UpgradeMember describes one member.
type UpgradeMember struct {
	NodeID       string `json:"node_id"`
	Version      string `json:"version"`
	FeatureLevel uint32 `json:"feature_level"` // the highest that it supports
	Answers      bool   `json:"answers"`       // if false, the fields are as recorded earlier
}

// History is the answer of GET /api/history. Each array has a number for each interval; those of durations have null
// for one without tasks.
type History struct {
	Success            bool       `json:"success"`
	IntervalMS         int64      `json:"interval_ms"`
	Since              *time.Time `json:"since"` // nil: nothing was submitted yet
	From               *time.Time `json:"from"`  // the beginning of the first interval; nil: there are no intervals
	To                 *time.Time `json:"to"`    // the end of the last one, which is under way
	Kept               bool       `json:"kept"`  // false: the type has no history
	Submitted          []*int64   `json:"submitted"`
	Completed          []*int64   `json:"completed"`
	Failed             []*int64   `json:"failed"`
	Pending            []*int64   `json:"pending"`
	Claimed            []*int64   `json:"claimed"`
	OldestPendingAgeMS []*int64   `json:"oldest_pending_age_ms"`
	WaitedP50MS        []*int64   `json:"waited_p50_ms"`
	WaitedP99MS        []*int64   `json:"waited_p99_ms"`
	RanP50MS           []*int64   `json:"ran_p50_ms"`
	RanP99MS           []*int64   `json:"ran_p99_ms"`
}

// Even reports whether all arrays have the same length.
func (h *History) Even() bool {
	for _, array := range [...][]*int64{h.Completed, h.Failed, h.Pending, h.Claimed, h.OldestPendingAgeMS, h.WaitedP50MS, h.WaitedP99MS, h.RanP50MS, h.RanP99MS} {
		if len(array) != len(h.Submitted) {
			return false
		}
	}
	return true
}

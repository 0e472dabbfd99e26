package wire

// TypeSettings are the settings of a task type. As an answer nil is what is not
// set. In a PATCH each field that is there is set, and null clears it, so a
// PATCH is written as a map.
type TypeSettings struct {
	Paused      bool     `json:"paused"`
	MaxClaimed  *int32   `json:"max_claimed"`
	RateLimit   *float64 `json:"rate_limit"` // claims per second, six decimals
	LeaseMS     *int64   `json:"lease_ms"`
	MaxAttempts *int32   `json:"max_attempts"` // 0 = no limit
	Backoff     *Backoff `json:"backoff"`
	RetentionMS *int64   `json:"retention_ms"` // 0: gone at its end; -1: kept until deleted
}

// Type is a task type as the server answers it.
type Type struct {
	TaskType string `json:"task_type"`
	TypeTallies
	TypeSettings
}

// TypeTallies are what is counted of a task type, or of all.
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
	Types   []Type       `json:"types,omitempty"`   // of GET
	Total   int          `json:"total,omitempty"`   // of GET, as the following
	Matched int          `json:"matched,omitempty"` // without limit
	Next    string       `json:"next,omitempty"`    // after of the next page by name; "" or null: there is none
	All     *TypeTallies `json:"all,omitempty"`     // of all types
	Type    *Type        `json:"type,omitempty"`    // of PATCH
}

// Defaults is the answer of GET and PATCH of /api/defaults.
type Defaults struct {
	Success  bool           `json:"success"`
	Defaults ServerDefaults `json:"defaults"`
	Limits   *Limits        `json:"limits,omitempty"` // of GET
}

// Limits are what the nodes take: limits.* of their configuration.
type Limits struct {
	BodyBytes  int `json:"body_bytes"`
	ValueBytes int `json:"value_bytes"` // of params, payload, result and result_payload each
	ErrorBytes int `json:"error_bytes"` // a fail's error is cut there
	Depth      int `json:"depth"`       // of nested JSON
	Items      int `json:"items"`       // tasks or ops of a request
}

// ServerDefaults are what tasks get that neither say it themselves nor have it from their
// type.
type ServerDefaults struct {
	LeaseMS           int64    `json:"lease_ms"`
	MaxAttempts       int32    `json:"max_attempts"`        // 0 = no limit
	Backoff           *Backoff `json:"backoff"`             // null: none
	RetentionMS       int64    `json:"retention_ms"`        // 0: gone at its end; -1: kept until deleted
	FailedRetentionMS int64    `json:"failed_retention_ms"` // of tasks that failed
}

// Upgraded is the answer of POST /api/cluster/upgrade. With "dry_run" the level is
// still what it was, and the rest says what would become of it.
type Upgraded struct {
	Success      bool            `json:"success"`
	FeatureLevel uint32          `json:"feature_level"`
	WouldBe      uint32          `json:"would_be,omitempty"`
	Nodes        []UpgradeMember `json:"nodes,omitempty"`
}

// UpgradeMember is what one member knows.
type UpgradeMember struct {
	NodeID       string `json:"node_id"`
	Version      string `json:"version"`
	FeatureLevel uint32 `json:"feature_level"` // the highest that it knows
	Answers      bool   `json:"answers"`       // if not, it is what is recorded of it
}

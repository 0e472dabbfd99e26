package wire

// Type is a task type: its counts and its settings. nil settings are not set.
type Type struct {
	TaskType           string           `json:"task_type"`
	Counts             map[string]int64 `json:"counts"`                // by status
	OldestPendingAgeMS int64            `json:"oldest_pending_age_ms"` // 0 if none is pending
	Paused             bool             `json:"paused"`
	MaxClaimed         *int32           `json:"max_claimed"`
	RateLimit          *float64         `json:"rate_limit"` // claims per second
	LeaseMS            *int64           `json:"lease_ms"`
	MaxAttempts        *int32           `json:"max_attempts"` // 0 = no limit
	Backoff            *Backoff         `json:"backoff"`
	RetentionMS        *int64           `json:"retention_ms"`
}

// Types is the answer of GET /api/types, and of PATCH /api/types/{type}.
type Types struct {
	Success bool   `json:"success"`
	Types   []Type `json:"types,omitempty"`
	Type    *Type  `json:"type,omitempty"` // of the PATCH
}

// Upgraded is the answer of POST /api/cluster/upgrade.
type Upgraded struct {
	Success      bool   `json:"success"`
	FeatureLevel uint32 `json:"feature_level"`
}

package wire

import "time"

// NewSchedule is the body of PUT /api/schedules/{name}. Exactly one of Cron and
// EveryMS is set.
type NewSchedule struct {
	Task     *NewTask `json:"task,omitempty"` // without idempotency_key, run_at and expires_at
	Cron     string   `json:"cron,omitempty"`
	Timezone string   `json:"timezone,omitempty"` // an IANA name, "" = UTC; only with Cron
	EveryMS  int64    `json:"every_ms,omitempty"`
	Overlap  string   `json:"overlap,omitempty"`  // "skip" (default) or "allow"
	CatchUp  string   `json:"catch_up,omitempty"` // "one" (default) or "skip"
	Paused   bool     `json:"paused,omitempty"`
}

// Schedule is a schedule as the server answers it.
type Schedule struct {
	Name       string     `json:"name"`
	Task       NewTask    `json:"task"`
	Cron       *string    `json:"cron"`
	EveryMS    *int64     `json:"every_ms"`
	Timezone   *string    `json:"timezone"`
	Overlap    string     `json:"overlap"`
	CatchUp    string     `json:"catch_up"`
	Paused     bool       `json:"paused"`
	NextRunAt  *time.Time `json:"next_run_at"`  // null: paused, or never again
	LastTaskID *uint64    `json:"last_task_id"` // null: none yet
	LastRunAt  *time.Time `json:"last_run_at"`
	Skipped    uint64     `json:"skipped"` // slots without a task since it was set
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
}

// Schedules is the answer of the calls about schedules.
type Schedules struct {
	Success   bool       `json:"success"`
	Schedules []Schedule `json:"schedules,omitempty"` // from GET /api/schedules
	Next      string     `json:"next,omitempty"`      // for after of the next page; "" or null: this is the last page
	Schedule  *Schedule  `json:"schedule,omitempty"`  // from GET and PUT of one schedule
}

// Slots is the answer of GET /api/slots.
type Slots struct {
	Success bool        `json:"success"`
	Slots   []time.Time `json:"slots"`
}

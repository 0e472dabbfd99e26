package wire

import "time"

// Event is an event of the trail.
type Event struct {
	Index      uint64    `json:"index"` // of its place
	Sub        uint32    `json:"sub"`   // its number within the entry, from 0
	Time       time.Time `json:"time"`
	TaskID     *uint64   `json:"task_id"` // null: not about a task
	Event      string    `json:"event"`
	WorkerID   *string   `json:"worker_id"`
	ClaimToken *uint64   `json:"claim_token"`
	Attempt    *int32    `json:"attempt"`
	Message    string    `json:"message"` // "" = none
}

// Place returns the event's place.
func (e *Event) Place() Place { return Place{Index: e.Index, Sub: e.Sub} }

// Events is the answer of GET /api/events and of GET /api/tasks/{id}/events.
type Events struct {
	Success bool    `json:"success"`
	Events  []Event `json:"events"`
	// Next is the place after which to continue.
	Next string `json:"next"`
	// Place is the trail's place: all events so far are at or before it. Older nodes do not send it.
	Place string `json:"place"`
}

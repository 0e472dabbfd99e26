package wire

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
)

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

// Place is a place of the trail, INDEX.SUB. Places grow with each entry of the log, and jump when a cluster begins
// and when a backup is restored, so INDEX is not an index of the log.
type Place struct {
	Index uint64
	Sub   uint32
}

// WholeEntry as the Sub of a place stands for the end of its entry, which is written as INDEX alone.
const WholeEntry = math.MaxUint32

// ParsePlace parses INDEX.SUB, or INDEX, which is after all events of that entry.
func ParsePlace(text string) (p Place, ok bool) {
	p.Sub = WholeEntry
	indexText, subText, hasSub := strings.Cut(text, ".")
	if hasSub {
		sub, err := strconv.ParseUint(subText, 10, 32)
		if err != nil {
			return p, false
		}
		p.Sub = uint32(sub)
	}
	index, err := strconv.ParseUint(indexText, 10, 64)
	p.Index = index
	return p, err == nil && p.String() == text
}

// Append appends the place in the form that ParsePlace parses.
func (p Place) Append(b []byte) []byte {
	b = strconv.AppendUint(b, p.Index, 10)
	if p.Sub == WholeEntry {
		return b
	}
	return strconv.AppendUint(append(b, '.'), uint64(p.Sub), 10)
}

// String returns the place in the form that ParsePlace parses.
func (p Place) String() string { return string(p.Append(nil)) }

// Compare orders places.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Index, q.Index), cmp.Compare(p.Sub, q.Sub))
}

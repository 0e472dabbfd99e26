package event

import "unicode/utf8"

// Event is one thing that happened, as recorded in the trail.
type Event struct {
	Pos
	T        int64 // by the calendar
	Kind     Kind
	TaskID   uint64 // 0 = not about a task
	Type     string // task type, or ""
	WorkerID string // "" = none
	Token    uint64 // 0 = none
	Attempt  int32  // the number of counted claims of the task so far
	Message  string // at most MessageMax bytes
}

// Bare returns the event without worker, token and message.
func (e *Event) Bare() Event {
	bare := *e
	bare.WorkerID, bare.Token, bare.Message = "", 0, ""
	return bare
}

const (
	// MessageMax bounds a message; a longer one is cut at a whole character.
	MessageMax = 1024
	// NameMax bounds a type's name and a worker's id in an event. The API permits at most 128 bytes.
	NameMax = 256
)

// Pos is the place of an event in the trail: Header.Moment of its entry, and its number within the
// entry, from 0. After a restore, moments are ahead of the log's indexes. Events are ordered by place.
type Pos struct {
	Index uint64
	Sub   uint32
}

// Compare orders places.
func (p Pos) Compare(q Pos) int {
	switch {
	case p == q:
		return 0
	case p.Index < q.Index || p.Index == q.Index && p.Sub < q.Sub:
		return -1
	}
	return 1
}

// Query selects events. Zero fields do not filter.
type Query struct {
	After    Pos // only events after this place
	TaskID   uint64
	Type     string
	WorkerID string
	Kinds    Kinds
	Limit    int // 1 to 1,000
	Look     int // how many events one look may scan, 0 = no limit
}

// Page is a part of the trail.
type Page struct {
	Events []Event
	// Next is the place to continue after: all matching events after After and up to it are in Events.
	Next Pos
	// More is true if there are events after Next now.
	More bool
	// Gone is true if events after After have been dropped. Then Events is empty and Oldest is the first
	// event that is kept.
	Gone   bool
	Oldest Pos
}

// Cut returns the text cut to at most most bytes, at a whole character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for at := most; at > most-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return text[:at]
		}
	}
	return text[:most]
}

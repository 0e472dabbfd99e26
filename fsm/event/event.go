package event

import "unicode/utf8"

// Event is one thing that happened, as the trail tells it.
type Event struct {
	Pos
	T        int64 // by the calendar
	Kind     Kind
	TaskID   uint64 // 0 = it is about no task
	Type     string // task type, or ""
	WorkerID string // "" = none
	Token    uint64 // 0 = none
	Attempt  int32  // the task's counted claims then
	Message  string // at most MessageMax bytes
}

// Bare returns the event without who it is about, and its message.
func (e *Event) Bare() Event {
	bare := *e
	bare.WorkerID, bare.Token, bare.Message = "", 0, ""
	return bare
}

const (
	// MessageMax bounds a message; a longer one is cut at a whole character.
	MessageMax = 1024
	// NameMax bounds a type's name and a worker's id in an event. Both are
	// shorter: 128 bytes at most.
	NameMax = 256
)

// Pos is the place of an event in the trail: the entry's index, ahead of which
// it is behind a restore, and its number within that entry, from 0. The order of events is that of their
// places.
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
	After    Pos // only those behind this place
	TaskID   uint64
	Type     string
	WorkerID string
	Kinds    Kinds
	Limit    int // 1 to 1,000
	Look     int // how many events one look goes through, 0 = as many as it may
}

// Page is a part of the trail.
type Page struct {
	Events []Event
	// Next is the place to go on after: nothing behind After up to it was left
	// out.
	Next Pos
	// More is true if there is more behind Next now.
	More bool
	// Gone is true if events behind After are kept no more: then there are no
	// Events, and Oldest is the first that is kept.
	Gone   bool
	Oldest Pos
}

// Cut returns the text, cut to so many bytes at a whole character.
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

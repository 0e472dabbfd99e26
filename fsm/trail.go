package fsm

// EventKind says what happened.
type EventKind uint8

// The events. The numbers are in snapshots and never change.
const (
	EventSubmitted       EventKind = 1
	EventScheduled       EventKind = 2 // it waits until a time: the message says until when
	EventClaimed         EventKind = 3
	EventReleased        EventKind = 4
	EventFailed          EventKind = 5 // the attempt; the message is the error
	EventRequeued        EventKind = 6 // it is pending again after a claim
	EventLeaseExpired    EventKind = 7
	EventCompleted       EventKind = 8
	EventRetried         EventKind = 9
	EventCancelRequested EventKind = 10
	EventCancelled       EventKind = 11
	EventDeleted         EventKind = 12
	EventExpired         EventKind = 13 // its expires_at came before a claim
	// 14 and 15 are finalization's.

	// Operators' acts; the message says what of.
	EventTypeChanged     EventKind = 32
	EventScheduleSet     EventKind = 33
	EventScheduleDeleted EventKind = 34
	EventNodeSet         EventKind = 35
	EventNodeRemoved     EventKind = 36
	EventLevelRaised     EventKind = 37
	EventTrailChanged    EventKind = 38
)

// Event is one thing that happened, as the trail tells it.
type Event struct {
	EventPos
	T        int64 // by the calendar
	Kind     EventKind
	TaskID   uint64 // 0 = it is about no task
	Type     string // task type, or ""
	WorkerID string // "" = none
	Token    uint64 // 0 = none
	Attempt  int32  // the task's counted claims then
	Message  string // at most eventMessageMax bytes
}

// eventMessageMax bounds a message; a longer one is cut at a whole character.
const eventMessageMax = 1024

// EventPos is the place of an event in the trail: the entry's index, and its
// number within that entry, from 0. The order of events is that of their
// places.
type EventPos struct {
	Index uint64
	Sub   uint32
}

// EventQuery selects events. Zero fields do not filter.
type EventQuery struct {
	After    EventPos // only those behind this place
	TaskID   uint64
	Type     string
	WorkerID string
	Kind     EventKind
	Limit    int // 1 to 1,000
}

// EventPage is a part of the trail.
type EventPage struct {
	Events []Event
	// Next is the place to go on after: nothing behind After up to it was left
	// out.
	Next EventPos
	// More is true if there is more behind Next now.
	More bool
	// Gone is true if events behind After are kept no more: then there are no
	// Events, and Oldest is the first that is kept.
	Gone   bool
	Oldest EventPos
}

// Events returns a part of the trail, oldest first. It looks at a bounded
// number of events, so it may have few with More set.
func (m *Machine) Events(q EventQuery) EventPage { return EventPage{} }

// NewestEvent returns the place of the newest event, the zero EventPos if there
// was none yet.
func (m *Machine) NewestEvent() EventPos { return EventPos{} }

// TaskEvents returns the last 100 events of the task that are kept, oldest
// first.
func (m *Machine) TaskEvents(id uint64) []Event { return nil }

// String returns the contract's name of the kind, "" for an unknown one.
func (k EventKind) String() string { return "" }

// ParseEventKind is the inverse of EventKind.String.
func ParseEventKind(name string) (k EventKind, ok bool) { return 0, false }

// TrailBounds returns what bounds the trail.
func (m *Machine) TrailBounds() SetTrail { return SetTrail{} }

func (m *Machine) setTrail(c SetTrail) Result { return Result{} }

package fsm

import "slices"

// EventKind says what happened.
type EventKind uint8

// The events. The numbers are in snapshots and never change.
const (
	EventSubmitted           EventKind = 1
	EventScheduled           EventKind = 2 // it waits until a time: the message says until when
	EventClaimed             EventKind = 3
	EventReleased            EventKind = 4
	EventFailed              EventKind = 5 // the attempt; the message is the error
	EventRequeued            EventKind = 6 // it is pending again after a claim
	EventLeaseExpired        EventKind = 7
	EventCompleted           EventKind = 8
	EventRetried             EventKind = 9
	EventCancelRequested     EventKind = 10
	EventCancelled           EventKind = 11
	EventDeleted             EventKind = 12
	EventExpired             EventKind = 13 // its expires_at came before a claim
	EventFinalizationClaimed EventKind = 14
	EventFinalized           EventKind = 15 // the parent has its end; the event of that end follows

	// Operators' acts; the message says what of.
	EventTypeChanged     EventKind = 32
	EventScheduleSet     EventKind = 33
	EventScheduleDeleted EventKind = 34
	EventNodeSet         EventKind = 35
	EventNodeRemoved     EventKind = 36
	EventLevelRaised     EventKind = 37
	EventTrailChanged    EventKind = 38

	// These change nothing in the state: a Tell brings them.
	EventMemberAdded           EventKind = 39
	EventMemberRemoved         EventKind = 40
	EventMemberPromoted        EventKind = 41
	EventMemberDemoted         EventKind = 42
	EventLeadershipTransferred EventKind = 43
	EventSnapshotTaken         EventKind = 44
	EventBackupSaved           EventKind = 45
	EventRestored              EventKind = 46
	EventKeysReloaded          EventKind = 47

	// Of join tokens; the message says which, and who came by it.
	EventJoinTokenMade    EventKind = 48
	EventJoinTokenUsed    EventKind = 49
	EventJoinTokenRevoked EventKind = 50
	EventJoinTokenExpired EventKind = 51

	// Of backups: EventBackupSaved and EventRestored tell of those that came to their end.
	EventBackupBegun   EventKind = 52
	EventBackupBroken  EventKind = 53
	EventRestoreBegun  EventKind = 54
	EventRestoreBroken EventKind = 55

	eventLast = EventRestoreBroken
)

// isAct reports whether it is an operator's act, which is about no task.
func (k EventKind) isAct() bool { return k >= EventTypeChanged }

// isTold reports whether a Tell brings it.
func (k EventKind) isTold() bool {
	return k >= EventMemberAdded && k <= EventKeysReloaded || k >= EventBackupBegun && k <= EventRestoreBroken
}

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

// EventPos is the place of an event in the trail: the entry's index, ahead of which
// it is behind a restore, and its number within that entry, from 0. The order of events is that of their
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

// Bounds of what one look at the trail reads.
const (
	eventLimitMax   = 1000
	eventsLookedMax = 10_000
	taskEventsMax   = 100
)

// events returns a part of the trail, oldest first. It looks at a bounded
// number of events, so it may have few with More set. It finds its first one in
// O(log chunks) and one chunk. Without After it begins with the oldest that is
// kept; an After past the newest event finds nothing. none is where the next entry's first event will be.
func (t *trail) events(q EventQuery, none EventPos) EventPage {
	h := &t.header
	page := EventPage{Next: q.After}
	switch {
	case q.After == (EventPos{}):
	case q.After.compare(h.Gone) < 0:
		page.Gone, page.Oldest = true, t.oldest(none)
		return page
	}
	if q.After.compare(h.Newest) >= 0 {
		return page
	}
	limit, looked := min(max(q.Limit, 1), eventLimitMax), 0
	for i := t.chunkBehind(q.After); i < len(t.chunks); i++ {
		c := t.chunks[i]
		var e rawEvent
		for offset := c.offsetBehind(q.After); c.read(offset, &e); offset += e.size {
			if looked == eventsLookedMax || len(page.Events) == limit {
				page.More = true
				return page
			}
			looked++
			page.Next = e.EventPos
			if e.matches(&q) {
				page.Events = append(page.Events, e.event())
			}
		}
	}
	return page
}

// chunkBehind returns the number of the first chunk that may have an event
// behind the place.
func (t *trail) chunkBehind(after EventPos) int {
	i, _ := slices.BinarySearchFunc(t.chunks, after, func(c *trailChunk, after EventPos) int {
		if c.newest.compare(after) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

// oldest returns the place of the oldest event that is kept, none if there is none.
func (t *trail) oldest(none EventPos) EventPos {
	if len(t.chunks) == 0 {
		return none
	}
	return t.chunks[0].base.EventPos
}

// stats returns how many bytes of events are kept, and the time of the oldest
// of them, by T; both are 0 if none is.
func (t *trail) stats() (bytes, oldestT int64) {
	if len(t.chunks) == 0 {
		return 0, 0
	}
	oldest := t.chunks[0]
	return int64(t.header.End - oldest.start), oldest.base.t
}

// taskEvents returns the last 100 events of the task that are kept, oldest
// first; of a removed task too. It follows the task's events from its newest
// one back: O(log chunks) each, whatever else is in the trail.
func (t *trail) taskEvents(id uint64) []Event {
	var events []Event
	end := t.last.get(id)
	for end != 0 && len(events) < taskEventsMax {
		c := t.chunkOf(end - 1)
		if c == nil { // it is kept no more
			break
		}
		var e rawEvent
		if !c.read(int(end-1-c.start), &e) {
			break
		}
		events = append(events, e.event())
		if e.before == 0 || e.before >= end {
			break
		}
		end -= e.before
	}
	slices.Reverse(events)
	return events
}

var eventNames = [...]string{
	EventFinalizationClaimed: "finalization_claimed",
	EventFinalized:           "finalized",
	EventSubmitted:           "submitted",
	EventScheduled:           "scheduled",
	EventClaimed:             "claimed",
	EventReleased:            "released",
	EventFailed:              "failed",
	EventRequeued:            "requeued",
	EventLeaseExpired:        "lease_expired",
	EventCompleted:           "completed",
	EventRetried:             "retried",
	EventCancelRequested:     "cancel_requested",
	EventCancelled:           "cancelled",
	EventDeleted:             "deleted",
	EventExpired:             "expired",

	EventTypeChanged:     "type_changed",
	EventScheduleSet:     "schedule_set",
	EventScheduleDeleted: "schedule_deleted",
	EventNodeSet:         "node_set",
	EventNodeRemoved:     "node_removed",
	EventLevelRaised:     "level_raised",
	EventTrailChanged:    "trail_changed",

	EventMemberAdded:           "member_added",
	EventMemberRemoved:         "member_removed",
	EventMemberPromoted:        "member_promoted",
	EventMemberDemoted:         "member_demoted",
	EventLeadershipTransferred: "leadership_transferred",
	EventSnapshotTaken:         "snapshot_taken",
	EventBackupSaved:           "backup_saved",
	EventRestored:              "restored",
	EventKeysReloaded:          "keys_reloaded",

	EventJoinTokenMade:    "join_token_made",
	EventJoinTokenUsed:    "join_token_used",
	EventJoinTokenRevoked: "join_token_revoked",
	EventJoinTokenExpired: "join_token_expired",

	EventBackupBegun:   "backup_begun",
	EventBackupBroken:  "backup_broken_off",
	EventRestoreBegun:  "restore_begun",
	EventRestoreBroken: "restore_broken_off",
}

// String returns the contract's name of the kind, "" for an unknown one.
func (k EventKind) String() string {
	if int(k) >= len(eventNames) {
		return ""
	}
	return eventNames[k]
}

// ParseEventKind is the inverse of EventKind.String.
func ParseEventKind(name string) (k EventKind, ok bool) {
	for i, n := range eventNames {
		if n != "" && n == name {
			return EventKind(i), true
		}
	}
	return 0, false
}

// bounds returns what bounds the trail: 64 MiB and 24 hours until others are set.
func (t *trail) bounds() trailBounds {
	if t.header.Bounds == (trailBounds{}) {
		return trailBounds{Bytes: defaultTrailBytes, AgeMS: defaultTrailAgeMS}
	}
	return t.header.Bounds
}

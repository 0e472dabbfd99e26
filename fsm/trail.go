package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/event"
)

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
func (t *trail) events(q event.Query, none event.Pos) event.Page {
	h := &t.header
	page := event.Page{Next: q.After}
	switch {
	case q.After == (event.Pos{}):
	case q.After.Compare(h.Gone) < 0:
		page.Gone, page.Oldest = true, t.oldest(none)
		return page
	}
	if q.After.Compare(h.Newest) >= 0 {
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
			page.Next = e.Pos
			if e.matches(&q) {
				page.Events = append(page.Events, e.event())
			}
		}
	}
	return page
}

// chunkBehind returns the number of the first chunk that may have an event
// behind the place.
func (t *trail) chunkBehind(after event.Pos) int {
	i, _ := slices.BinarySearchFunc(t.chunks, after, func(c *trailChunk, after event.Pos) int {
		if c.newest.Compare(after) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

// oldest returns the place of the oldest event that is kept, none if there is none.
func (t *trail) oldest(none event.Pos) event.Pos {
	if len(t.chunks) == 0 {
		return none
	}
	return t.chunks[0].base.Pos
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
func (t *trail) taskEvents(id uint64) []event.Event {
	var events []event.Event
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

// bounds returns what bounds the trail: 64 MiB and 24 hours until others are set.
func (t *trail) bounds() trailBounds {
	if t.header.Bounds == (trailBounds{}) {
		return trailBounds{Bytes: defaultTrailBytes, AgeMS: defaultTrailAgeMS}
	}
	return t.header.Bounds
}

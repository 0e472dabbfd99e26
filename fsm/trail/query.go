package trail

import (
	"slices"

	"github.com/claimq/claimq/fsm/event"
)

// Bounds of what one look at the trail reads.
const (
	LimitMax  = 1000   // events of a page
	LookedMax = 10_000 // events that a Query looks at
	TaskMax   = 100    // events that OfTask returns
)

// Query returns a part of the trail, oldest first. It looks at a bounded
// number of events, so it may have few with More set. It finds its first one in
// O(log chunks) and one chunk. Without After it begins with the oldest that is
// kept; an After past the newest event finds nothing. none
// is where the first event of the next entry will be.
func (t *Log) Query(q event.Query, none event.Pos) event.Page {
	h := &t.Header
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
	limit, looked, most := min(max(q.Limit, 1), LimitMax), 0, LookedMax
	if q.Look > 0 {
		most = min(q.Look, LookedMax)
	}
	for i := t.chunkBehind(q.After); i < len(t.chunks); i++ {
		c := t.chunks[i]
		var e rawEvent
		for offset := c.offsetBehind(q.After); c.read(offset, &e); offset += e.size {
			if looked == most || len(page.Events) == limit {
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
func (t *Log) chunkBehind(after event.Pos) int {
	i, _ := slices.BinarySearchFunc(t.chunks, after, func(c *Chunk, after event.Pos) int {
		if c.newest.Compare(after) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

// oldest returns the place of the oldest event that is kept, none if there is none.
func (t *Log) oldest(none event.Pos) event.Pos {
	if len(t.chunks) == 0 {
		return none
	}
	return t.chunks[0].Base.Pos
}

// Stats returns how many bytes of events are kept, and the time of the oldest
// of them, by T; both are 0 if none is.
func (t *Log) Stats() (bytes, oldestT int64) {
	if len(t.chunks) == 0 {
		return 0, 0
	}
	oldest := t.chunks[0]
	return int64(t.Header.End - oldest.Start), oldest.Base.T
}

// OfTask returns the last 100 events of the task that are kept, oldest
// first; of a removed task too. It follows the task's events from its newest
// one back: O(log chunks) each, whatever else is in the trail.
func (t *Log) OfTask(id uint64) []event.Event {
	var events []event.Event
	end := t.last.get(id)
	for end != 0 && len(events) < TaskMax {
		c := t.chunkOf(end - 1)
		if c == nil { // it is kept no more
			break
		}
		var e rawEvent
		if !c.read(int(end-1-c.Start), &e) {
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

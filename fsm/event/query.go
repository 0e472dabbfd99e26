package event

import (
	"slices"
)

// Bounds of one query.
const (
	LimitMax  = 1000   // events in a page
	LookedMax = 10_000 // events that Query looks at
	TaskMax   = 100    // events that OfTask returns
)

// Query returns a part of the trail, oldest first. It looks at a bounded number of events,
// so it may return few with More set. It finds the first event in O(log chunks) plus one
// chunk. Without After it begins with the oldest event that is kept; an After beyond the
// newest event finds nothing. none is the place of the next entry's first event, which
// stands for the oldest event if no event is kept.
func (t *Log) Query(q Query, none Pos) Page {
	h := &t.Header
	page := Page{Next: q.After}
	switch {
	case q.After == (Pos{}):
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

// chunkBehind returns the index of the first chunk that may have an event after the place.
func (t *Log) chunkBehind(after Pos) int {
	i, _ := slices.BinarySearchFunc(t.chunks, after, func(c *Chunk, after Pos) int {
		if c.newest.Compare(after) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

// oldest returns the place of the oldest event that is kept, or none.
func (t *Log) oldest(none Pos) Pos {
	if len(t.chunks) == 0 {
		return none
	}
	return t.chunks[0].Base.Pos
}

// Stats returns the size of the events that are kept, and the time of the oldest, by T; 0
// without events.
func (t *Log) Stats() (bytes, oldestT int64) {
	if len(t.chunks) == 0 {
		return 0, 0
	}
	oldest := t.chunks[0]
	return int64(t.Header.End - oldest.Start), oldest.Base.T
}

// OfTask returns the last 100 events of the task that are kept, oldest first, even if the
// task was removed. It follows the links back from the newest event: O(log chunks) each,
// regardless of other events.
func (t *Log) OfTask(id uint64) []Event {
	var events []Event
	end := t.last.get(id)
	for end != 0 && len(events) < TaskMax {
		c := t.chunkOf(end - 1)
		if c == nil { // no longer kept
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

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// eventsLimit is how many events a page of the trail has at most.
const eventsLimit = 1000

// Event is one thing that happened, as the cluster's trail tells it.
type Event struct {
	// Place is where it is in the trail, as INDEX.SUB: what EventFilter.After
	// takes. Places grow.
	Place  string
	Time   time.Time
	TaskID string // "": it is about no task
	// Event is submitted, scheduled, claimed, released, failed, requeued,
	// lease_expired, completed, retried, cancel_requested, cancelled, deleted,
	// expired, or an operator's act. There may come others.
	Event    string
	WorkerID string // "": none
	Token    int64  // of the claim; 0: none
	Attempt  int    // the task's counted claims then; 0: none
	Message  string
}

// EventFilter selects events. Zero fields do not filter.
type EventFilter struct {
	TaskType, WorkerID string
	Events             []string // any of them, as Event.Event
	// After is the place to go on after. "": Events begins with the oldest that is
	// kept, Follow with what happens from then on.
	After string
}

func (f *EventFilter) query(after string, limit int) string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("task_type", f.TaskType)
	set("worker_id", f.WorkerID)
	if len(f.Events) > 0 {
		q["event"] = f.Events
	}
	set("after", after)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return withQuery("", q)
}

// Events walks the trail, oldest first, up to what was its newest event when the
// walk began, or a little further. An error ends the walk: ErrEventsGone if what
// comes after f.After is not kept any more.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		newest := uint64(0)
		for after := f.After; ; {
			page, index, err := c.eventsPage(ctx, &f, after)
			if err != nil {
				yield(Event{}, fmt.Errorf("list events: %w", err))
				return
			}
			for i := range page.Events {
				if !yield(eventFromWire(&page.Events[i]), nil) {
					return
				}
			}
			if newest == 0 {
				newest = index
			}
			if page.Next == after || indexOf(page.Next) > newest {
				return
			}
			after = page.Next
		}
	}
}

// eventsPage returns a page of the trail, and the index that it reflects.
func (c *Client) eventsPage(ctx context.Context, f *EventFilter, after string) (page wire.Events, index uint64, err error) {
	a, err := c.call(ctx, Request{Method: http.MethodGet, Path: "/api/events" + f.query(after, eventsLimit)})
	if err != nil {
		return page, 0, err
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		return page, 0, fmt.Errorf("decode answer: %w", err)
	}
	return page, a.index, nil
}

// indexOf returns the index of a place.
func indexOf(place string) uint64 {
	index, _, _ := strings.Cut(place, ".")
	n, _ := strconv.ParseUint(index, 10, 64) // 0 if it is none
	return n
}

// TaskEvents returns the last 100 events of the task, oldest first. Errors:
// ErrTaskNotFound, ...
func (c *Client) TaskEvents(ctx context.Context, id string) ([]Event, error) {
	number, err := parseID(id)
	if err != nil {
		return nil, fmt.Errorf("list a task's events: %w", err)
	}
	var page wire.Events
	if err := c.get(ctx, taskPath(number, "events"), &page); err != nil {
		return nil, fmt.Errorf("list events of task %s: %w", id, err)
	}
	events := make([]Event, len(page.Events))
	for i := range page.Events {
		events[i] = eventFromWire(&page.Events[i])
	}
	return events, nil
}

func eventFromWire(w *wire.Event) Event {
	e := Event{
		Place: strconv.FormatUint(w.Index, 10) + "." + strconv.FormatUint(uint64(w.Sub), 10),
		Time:  w.Time, Event: w.Event, Message: w.Message,
	}
	if w.TaskID != nil {
		e.TaskID = formatID(*w.TaskID)
	}
	if w.WorkerID != nil {
		e.WorkerID = *w.WorkerID
	}
	if w.ClaimToken != nil {
		e.Token = int64(*w.ClaimToken)
	}
	if w.Attempt != nil {
		e.Attempt = int(*w.Attempt)
	}
	return e
}

package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// eventsLimit bounds the events of a page of the trail.
const eventsLimit = 1000

// Event is one event of the cluster's trail.
type Event struct {
	// Place is the event's position in the trail, as INDEX.SUB, for EventFilter.After. Places increase.
	Place  string
	Time   time.Time
	TaskID string // "": not about a task
	// Event is submitted, scheduled, claimed, released, failed, requeued, lease_expired, completed, retried,
	// cancel_requested, cancelled, deleted, expired, or an operator's action. Later versions may add others.
	Event    string
	WorkerID string // "": none
	Token    int64  // of the claim; 0: none
	Attempt  int    // the task's counted claims at that time; 0: none
	Message  string
}

// EventFilter selects events. Zero fields do not filter.
type EventFilter struct {
	TaskType, WorkerID string
	Events             []string // any of these, as in Event.Event
	// After is the place after which to begin. "": Events begins with the oldest event, Follow with the next one to
	// happen.
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

// Events returns the events of the trail, oldest first, up to its end when the iteration began, or slightly further.
// An error ends the iteration: ErrEventsGone if the events after f.After are no longer kept, ErrPlaceAhead if the
// trail has not reached f.After.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		end, hasEnd := wire.Place{}, false
		for after := f.After; ; {
			var page wire.Events
			if err := c.get(ctx, "/api/events"+f.query(after, eventsLimit), &page); err != nil {
				yield(Event{}, fmt.Errorf("list events: %w", err))
				return
			}
			for i := range page.Events {
				if !yield(eventFromWire(&page.Events[i]), nil) {
					return
				}
			}
			if !hasEnd { // an older node does not tell its trail's end
				end, hasEnd = wire.ParsePlace(page.Place)
			}
			next, _ := wire.ParsePlace(page.Next)
			if page.Next == after || hasEnd && next.Compare(end) >= 0 {
				return
			}
			after = page.Next
		}
	}
}

// TaskEvents returns the last 100 events of the task, oldest first. Errors: ErrTaskNotFound, ...
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
		Place: w.Place().String(), Time: w.Time, Event: w.Event, Message: w.Message,
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

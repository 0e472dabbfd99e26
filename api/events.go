package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

// eventStream is the content type of a stream of events.
const eventStream = "text/event-stream"

// Streams serves a node's streams of events.
type Streams struct {
	feed *trail.Feed // the end of the trail, shared by all streams
}

// NewStreams returns Streams that read the trail from feed.
func NewStreams(feed *trail.Feed) *Streams { return &Streams{feed} }

// Answer answers GET /api/events with a page or a stream of the trail.
func (s *Streams) Answer(r *exchange.Request) {
	streams := Streamed(r)
	q, given, bad := parseEvents(r, streams)
	if bad == nil {
		bad = r.RefuseFilter("task_type", q.Type)
	}
	if bad != nil {
		r.Refuse(bad)
		return
	}
	if streams {
		s.stream(r, q, given)
		return
	}
	page, at, ok := readEvents(r, q)
	switch {
	case !ok:
	case page.Gone:
		r.Refuse(refuseEventsGone(page.Oldest))
	case trail.Behind(q.After, at) && !r.Stale: // otherwise this node may just be behind
		r.Refuse(refusePlaceAhead(at))
	case r.RoomFor(len(page.Events) * eventBytes):
		r.Send(fasthttp.StatusOK, appendEvents(r.Body(), page.Events, page.Next, at))
	}
}

const (
	// eventsLook is the number of events examined under one lock; each takes about 0.5 µs.
	eventsLook = 2_000
	// eventsLooks is the number of looks for a page.
	eventsLooks = 5
	// eventBytes is the approximate size of an event in an answer.
	eventBytes = 256
)

// readEvents reads a page of the trail, and returns the trail's place. Later looks are as of a later index. ok is
// false if the request was already answered.
func readEvents(r *exchange.Request, q event.Query) (page event.Page, at event.Pos, ok bool) {
	q.Look = eventsLook
	index := uint64(0)
	look := func(m *fsm.Machine, _ fsm.Stamp) {
		found := m.Events(q)
		found.Events = r.Sight().Events(m, &q, found.Events)
		index, at = m.Index(), m.Place()
		if found.Gone && len(page.Events) > 0 { // they were dropped meanwhile; the page is complete up to there
			page.More = false
			return
		}
		found.Events = append(page.Events, found.Events...)
		q.Limit -= len(found.Events) - len(page.Events)
		page, q.After = found, found.Next
	}
	ok = r.Read(look)
	for n := 1; ok && page.More && q.Limit > 0 && n < eventsLooks; n++ {
		ok = r.ReadOn(index, look)
	}
	return page, at, ok
}

// Streamed reports whether the request asks for a stream. Any node answers it.
func Streamed(r *exchange.Request) bool {
	return bytes.Contains(r.HTTP.Request.Header.Peek("Accept"), []byte(eventStream))
}

// TaskEvents answers GET /api/tasks/{id}/events. next is the place of the trail's newest event, so that a client that
// continues there misses no event of the task.
func TaskEvents(r *exchange.Request) {
	id := r.Target.ID
	var events []event.Event
	var newest, at event.Pos
	var bad *refuse.Refusal
	ok := r.Read(func(m *fsm.Machine, _ fsm.Stamp) {
		events, newest, at = m.TaskEvents(id), m.NewestEvent(), m.Place()
		t := m.Get(id)
		if t == nil && len(events) > 0 { // events are kept longer than the task
			t = &fsm.Task{ID: id, Type: events[0].Type}
		}
		if bad = r.RefuseTask(m, t); bad == nil {
			events = r.Sight().Events(m, new(event.Query), events)
		}
	})
	if !ok {
		return
	}
	if bad != nil {
		r.Refuse(bad)
		return
	}
	r.Send(fasthttp.StatusOK, appendEvents(r.Body(), events, newest, at))
}

// appendEvents appends a page of the trail. at is the place of the trail's end.
func appendEvents(b []byte, events []event.Event, next, at event.Pos) []byte {
	b = jsonout.List(b, `{"success":true,"events":`, len(events), func(b []byte, i int) []byte { return trail.AppendEvent(b, &events[i]) })
	b = append(b, `,"next":"`...)
	b = append(trail.AppendPlace(b, next), `","place":"`...)
	return append(trail.AppendPlace(b, at), `"}`...)
}

// refusePlaceAhead refuses a place that the trail, which is at at, has not reached.
func refusePlaceAhead(at event.Pos) *refuse.Refusal {
	f := refuse.Because(wire.CodePlaceAhead)
	f.Text += ": it is at " + string(trail.AppendPlace(nil, at))
	f.Details = string(append(trail.AppendPlace([]byte(`,"place":"`), at), '"'))
	return f
}

// refuseEventsGone refuses a place whose following events are no longer kept.
func refuseEventsGone(oldest event.Pos) *refuse.Refusal {
	f := refuse.Because(wire.CodeEventsGone)
	f.Text = "The events asked for are kept no more: the oldest is " + string(trail.AppendPlace(nil, oldest))
	f.Details = string(append(trail.AppendPlace([]byte(`,"oldest":"`), oldest), '"'))
	return f
}

// parseEvents reads the parameters of GET /api/events. given says that after was given.
func parseEvents(r *exchange.Request, streams bool) (q event.Query, given bool, bad *refuse.Refusal) {
	limitMax := r.Server.Cfg.Limits.Items
	q.Limit = min(bound.PageDefault, limitMax)
	bad = r.ReadParams(exchange.Params{
		"after": func(p exchange.Param) *refuse.Refusal {
			if q.After, given = trail.ParsePlace(p.Value); !given {
				return badParam(p.Name, "a place in the trail, as INDEX or INDEX.SUB")
			}
			return nil
		},
		"task_type": typeParam(&q.Type),
		"worker_id": holderParam(&q.WorkerID),
		exchange.ParamEvent: func(p exchange.Param) *refuse.Refusal {
			kind, ok := event.ParseKind(p.Value)
			if !ok {
				return badParam(p.Name, "the name of an event, as docs/api.md lists them")
			}
			q.Kinds = q.Kinds.With(kind)
			return nil
		},
		"limit": func(p exchange.Param) *refuse.Refusal {
			if streams {
				return refuse.Param(p.Name, "limit does not go with Accept: "+eventStream)
			}
			return countParam(&q.Limit, limitMax)(p)
		},
	})
	return q, given, bad
}

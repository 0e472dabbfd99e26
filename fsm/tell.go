package fsm

import (
	"math"
	"strconv"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/trail"
)

// tell adds an event to the trail; until is when the wait of a Scheduled
// ends. Place and time are filled in here.
func (m *Machine) tell(e *event.Event, until int64) {
	h := &m.header
	if h.Level < record.LevelSight {
		return
	}
	e.Pos = event.Pos{Index: h.Moment(), Sub: m.told}
	e.T = h.Stamp.T
	m.told++
	m.trail.Append(e, until, h.NextID, h.NextToken)
}

// trailLimits returns what no event of the trail can be past.
func (m *Machine) trailLimits() trail.Limits {
	h := &m.header
	return trail.Limits{Moment: h.Moment(), T: h.Stamp.T, NextID: h.NextID, NextToken: h.NextToken}
}

// Events returns a part of the trail, oldest first. It looks at a bounded
// number of events, so it may have few with More set. It finds its first one in
// O(log chunks) and one chunk. Without After it begins with the oldest that is
// kept; an After past the newest event finds nothing.
func (m *Machine) Events(q event.Query) event.Page {
	return m.trail.Query(q, event.Pos{Index: m.moment() + 1})
}

// Place returns where the trail is: all events so far are up to it, and those of the next
// entry behind it.
func (m *Machine) Place() event.Pos { return event.Pos{Index: m.moment(), Sub: math.MaxUint32} }

// NewestEvent returns the place of the newest event, whether or not it is still
// kept; the zero place if there was none yet.
func (m *Machine) NewestEvent() event.Pos { return m.trail.Header.Newest }

// TrailStats returns how many bytes of events are kept, and the time of the oldest
// of them, by T; both are 0 if none is.
func (m *Machine) TrailStats() (bytes, oldestT int64) { return m.trail.Stats() }

// TaskEvents returns the last 100 events of the task that are kept, oldest
// first; of a removed task too. Each is found in O(log chunks), whatever else is in the
// trail.
func (m *Machine) TaskEvents(id uint64) []event.Event { return m.trail.OfTask(id) }

// TrailBounds returns what bounds the trail: 64 MiB and 24 hours until a
// SetTrail says otherwise.
func (m *Machine) TrailBounds() command.SetTrail { return command.SetTrail(m.trail.Bounds()) }

// eventOf returns the event of the kind about the task, and about no claim.
func eventOf(kind event.Kind, t *record.Task) event.Event {
	return event.Event{Kind: kind, TaskID: t.ID, Type: t.Type}
}

// claimEventOf returns the event of the kind about the task and its current claim.
func claimEventOf(kind event.Kind, t *record.Task) event.Event {
	return event.Event{Kind: kind, TaskID: t.ID, Type: t.Type, WorkerID: t.WorkerID, Token: t.Token, Attempt: t.Attempts}
}

// tellOf tells of the task, and of no claim.
func (m *Machine) tellOf(kind event.Kind, t *record.Task, message string) {
	e := eventOf(kind, t)
	e.Message = message
	m.tell(&e, 0)
}

// tellClaim tells of the task's current claim.
func (m *Machine) tellClaim(kind event.Kind, t *record.Task) {
	e := claimEventOf(kind, t)
	m.tell(&e, 0)
}

// tellWait tells that the task, of which no claim lives, waits for its time.
func (m *Machine) tellWait(t *record.Task) {
	e := eventOf(event.Scheduled, t)
	m.tell(&e, t.RunAt)
}

// tellAct tells of an operator's act; the message says what of.
func (m *Machine) tellAct(kind event.Kind, message string) {
	m.tell(&event.Event{Kind: kind, Message: message}, 0)
}

// tellBy is tellAct of who did it, if that is known.
func (m *Machine) tellBy(kind event.Kind, message, by string) {
	switch {
	case by == "":
	case message == "":
		by = "by " + event.Cut(by, event.NameMax)
	default:
		by = " by " + event.Cut(by, event.NameMax)
	}
	m.tellAct(kind, event.Cut(message, event.MessageMax-len(by))+by)
}

// tellOperator tells of an act that changes nothing in the state.
func (m *Machine) tellOperator(c command.Tell) Result {
	if c.Kind.IsTold() {
		m.tellBy(c.Kind, c.What, c.By)
	}
	return Result{}
}

// outcomeEvents are the events that the outcomes are told as. The cancellation
// of a claim is told by what the task is then.
var outcomeEvents = [...]event.Kind{
	record.OutcomeCompleted: event.Completed,
	record.OutcomeFailed:    event.Failed,
	record.OutcomeReleased:  event.Released,
	record.OutcomeExpired:   event.LeaseExpired,
	record.OutcomeRetried:   event.Retried,
	record.OutcomeCancelled: 0,
}

// tellEnd tells how the claim e ended, and what the task is then.
func (m *Machine) tellEnd(e *event.Event, t *record.Task, outcome record.Outcome, failure string) {
	if outcome == record.OutcomeReleased {
		e.Attempt++ // it is not counted any more, but it was this one
	}
	if e.Kind = outcomeEvents[outcome]; e.Kind != 0 {
		e.Message = failure
		m.tell(e, 0)
		e.Message = ""
	}
	switch {
	case t.Status == record.StatusPending && outcome != record.OutcomeRetried:
		e.Kind = event.Requeued
	case t.Status == record.StatusScheduled:
		e.Kind = event.Scheduled
	case t.Status == record.StatusCancelled:
		e.Kind = event.Cancelled
	case t.Status == record.StatusFailed && outcome == record.OutcomeExpired:
		e.Kind, e.Message = event.Failed, leaseExpired
	default:
		return
	}
	m.tell(e, t.RunAt)
}

// setTrail bounds the trail.
func (m *Machine) setTrail(c command.SetTrail) Result {
	if m.TrailBounds() != c {
		m.trail.Header.Bounds = trail.Bounds(c)
		m.tellAct(event.TrailChanged, strconv.FormatInt(c.Bytes, 10)+" bytes, "+strconv.FormatInt(c.AgeMS, 10)+" ms")
	}
	return Result{}
}

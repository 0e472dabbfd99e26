package fsm

import (
	"math"
	"strconv"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// tell adds an event to the trail and sets its place and time. until is the end of the wait
// for a Scheduled.
func (m *Machine) tell(e *event.Event, until int64) {
	h := &m.header
	e.Pos = event.Pos{Index: h.Moment(), Sub: m.told}
	e.T = h.Stamp.T
	m.told++
	m.trail.Append(e, until, h.NextID, h.NextToken)
}

// trailLimits returns upper bounds for the events of the trail.
func trailLimits(m *Machine) event.Limits {
	h := &m.header
	return event.Limits{Moment: h.Moment(), T: h.Stamp.T, NextID: h.NextID, NextToken: h.NextToken}
}

// Events returns a part of the trail, oldest first. It looks at a bounded number of events,
// so it may return few with More set. It finds the first event in O(log chunks) plus one
// chunk. Without After it begins with the oldest event that is kept; an After beyond the
// newest event finds nothing.
func (m *Machine) Events(q event.Query) event.Page {
	return m.trail.Query(q, event.Pos{Index: m.moment() + 1})
}

// Place returns the current end of the trail: later events come after it, all others at or
// before it.
func (m *Machine) Place() event.Pos { return event.Pos{Index: m.moment(), Sub: math.MaxUint32} }

// NewestEvent returns the place of the newest event, even if that is no longer kept; the
// zero place before the first event.
func (m *Machine) NewestEvent() event.Pos { return m.trail.Header.Newest }

// TrailStats returns the size of the events that are kept, and the time of the oldest, by
// T; 0 without events.
func (m *Machine) TrailStats() (bytes, oldestT int64) { return m.trail.Stats() }

// TaskEvents returns the last 100 events of the task that are kept, oldest first, even if
// the task was removed. It finds each in O(log chunks), regardless of other events.
func (m *Machine) TaskEvents(id uint64) []event.Event { return m.trail.OfTask(id) }

// TrailBounds returns the bounds of the trail: by default 64 MiB and 24 hours.
func (m *Machine) TrailBounds() command.SetTrail { return command.SetTrail(m.trail.Bounds()) }

// eventOf returns an event about the task, but not about a claim.
func eventOf(kind event.Kind, t *record.Task) event.Event {
	return event.Event{Kind: kind, TaskID: t.ID, Type: t.Type}
}

// claimEventOf returns an event about the task and its current claim.
func claimEventOf(kind event.Kind, t *record.Task) event.Event {
	return event.Event{Kind: kind, TaskID: t.ID, Type: t.Type, WorkerID: t.WorkerID, Token: t.Token, Attempt: t.Attempts}
}

// tellOf records an event about the task, but not about a claim.
func (m *Machine) tellOf(kind event.Kind, t *record.Task, message string) {
	e := eventOf(kind, t)
	e.Message = message
	m.tell(&e, 0)
}

// tellClaim records an event about the task's current claim.
func (m *Machine) tellClaim(kind event.Kind, t *record.Task) {
	e := claimEventOf(kind, t)
	m.tell(&e, 0)
}

// tellWait records that the unclaimed task waits for its time.
func (m *Machine) tellWait(t *record.Task) {
	e := eventOf(event.Scheduled, t)
	m.tell(&e, t.RunAt)
}

// tellAct records an operator's action; message names the object.
func (m *Machine) tellAct(kind event.Kind, message string) {
	m.tell(&event.Event{Kind: kind, Message: message}, 0)
}

// tellBy is tellAct with the operator's name, if it is known.
func (m *Machine) tellBy(kind event.Kind, message, by string) {
	if by = byName(by); by != "" && message != "" {
		by = " " + by
	}
	m.tellAct(kind, event.Cut(message, event.MessageMax-len(by))+by)
}

// byName returns what a message says of a key's name, "" if it is unknown.
func byName(name string) string {
	if name == "" {
		return ""
	}
	return "by " + event.Cut(name, event.NameMax)
}

// tellOperator records an action that changes nothing in the state.
func tellOperator(m *Machine, c command.Tell) Result {
	if c.Kind.IsTold() {
		m.tellBy(c.Kind, c.What, c.By)
	}
	return Result{}
}

// leaseExpired is the error of a task that failed because its last lease ended.
const leaseExpired = "lease expired"

// outcomeEvents maps outcomes to events. For a cancelled claim, the task's new status
// decides instead.
var outcomeEvents = [...]event.Kind{
	record.OutcomeCompleted: event.Completed,
	record.OutcomeFailed:    event.Failed,
	record.OutcomeReleased:  event.Released,
	record.OutcomeExpired:   event.LeaseExpired,
	record.OutcomeRetried:   event.Retried,
	record.OutcomeCancelled: 0,
}

// tellEnd records how the claim e ended, and the task's new status.
func (m *Machine) tellEnd(e *event.Event, t *record.Task, outcome record.Outcome, failure string) {
	if outcome == record.OutcomeReleased {
		e.Attempt++ // it was this attempt, although it no longer counts
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

// setTrail changes the bounds of the trail.
func setTrail(m *Machine, c command.SetTrail) Result {
	if m.TrailBounds() != c {
		m.trail.Header.Bounds = event.Bounds(c)
		m.tellAct(event.TrailChanged, strconv.FormatInt(c.Bytes, 10)+" bytes, "+strconv.FormatInt(c.AgeMS, 10)+" ms")
	}
	return Result{}
}

package fsm

import "strconv"

// eventOf returns the event of the kind about the task, and about no claim.
func eventOf(kind EventKind, t *Task) Event { return Event{Kind: kind, TaskID: t.ID, Type: t.Type} }

// claimEventOf returns the event of the kind about the task and its current claim.
func claimEventOf(kind EventKind, t *Task) Event {
	return Event{Kind: kind, TaskID: t.ID, Type: t.Type, WorkerID: t.WorkerID, Token: t.Token, Attempt: t.Attempts}
}

// tellOf tells of the task, and of no claim.
func (m *Machine) tellOf(kind EventKind, t *Task, message string) {
	e := eventOf(kind, t)
	e.Message = message
	m.tell(&e, 0)
}

// tellClaim tells of the task's current claim.
func (m *Machine) tellClaim(kind EventKind, t *Task) {
	e := claimEventOf(kind, t)
	m.tell(&e, 0)
}

// tellWait tells that the task, of which no claim lives, waits for its time.
func (m *Machine) tellWait(t *Task) {
	e := eventOf(EventScheduled, t)
	m.tell(&e, t.RunAt)
}

// tellAct tells of an operator's act; the message says what of.
func (m *Machine) tellAct(kind EventKind, message string) {
	m.tell(&Event{Kind: kind, Message: message}, 0)
}

// tellBy is tellAct of who did it, if that is known.
func (m *Machine) tellBy(kind EventKind, message, by string) {
	switch {
	case by == "":
	case message == "":
		by = "by " + cutText(by, eventNameMax)
	default:
		by = " by " + cutText(by, eventNameMax)
	}
	m.tellAct(kind, cutText(message, eventMessageMax-len(by))+by)
}

// tellOperator tells of an act that changes nothing in the state.
func (m *Machine) tellOperator(c Tell) Result {
	if c.Kind.isTold() {
		m.tellBy(c.Kind, c.What, c.By)
	}
	return Result{}
}

// outcomeEvents are the events that the outcomes are told as. The cancellation
// of a claim is told by what became of the task.
var outcomeEvents = [...]EventKind{
	OutcomeCompleted: EventCompleted,
	OutcomeFailed:    EventFailed,
	OutcomeReleased:  EventReleased,
	OutcomeExpired:   EventLeaseExpired,
	OutcomeRetried:   EventRetried,
	OutcomeCancelled: 0,
}

// tellEnd tells how the claim e ended, and what became of the task.
func (m *Machine) tellEnd(e *Event, t *Task, outcome Outcome, failure string) {
	if outcome == OutcomeReleased {
		e.Attempt++ // it is not counted any more, but it was this one
	}
	if e.Kind = outcomeEvents[outcome]; e.Kind != 0 {
		e.Message = failure
		m.tell(e, 0)
		e.Message = ""
	}
	switch {
	case t.Status == StatusPending && outcome != OutcomeRetried:
		e.Kind = EventRequeued
	case t.Status == StatusScheduled:
		e.Kind = EventScheduled
	case t.Status == StatusCancelled:
		e.Kind = EventCancelled
	case t.Status == StatusFailed && outcome == OutcomeExpired:
		e.Kind, e.Message = EventFailed, leaseExpired
	default:
		return
	}
	m.tell(e, t.RunAt)
}

// setTrail bounds the trail.
func (m *Machine) setTrail(c SetTrail) Result {
	if m.TrailBounds() != c {
		m.header.Trail.Bounds = c
		m.tellAct(EventTrailChanged, strconv.FormatInt(c.Bytes, 10)+" bytes, "+strconv.FormatInt(c.AgeMS, 10)+" ms")
	}
	return Result{}
}

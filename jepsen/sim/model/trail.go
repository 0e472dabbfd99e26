package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Told is one event of the trail, in words of this package.
type Told struct {
	Index   uint64
	Sub     uint32
	At      int64
	Kind    string
	ID      uint64 // 0: it is about no task
	Of      string // task type
	Worker  string
	Token   uint64
	Attempt int32
	Message string
	Until   *moment // scheduled: the message says until when
}

// Bounds are what is kept of the trail.
type Bounds struct{ Bytes, AgeMS int64 }

// ActsLevel is from which on the trail tells who did what.
const ActsLevel = 5

// byWhom adds to a message whose key it was.
func byWhom(message, name string) string {
	switch {
	case name == "":
		return message
	case message == "":
		return "by " + name
	}
	return message + " by " + name
}

// SightLevel is from which on a cluster has a trail and schedules.
const SightLevel = 3

var boundsByDefault = Bounds{64 << 20, DayMS}

// Bounds returns the bounds of the trail that are in force.
func (m *Model) Bounds() Bounds {
	if m.trailBounds == (Bounds{}) {
		return boundsByDefault
	}
	return m.trailBounds
}

// tell adds an event about the task, nil if it is about none, and no claim.
func (m *Model) tell(kind string, t *Task, message string) {
	m.add(Told{Kind: kind, Message: message}, t)
}

// tellWait tells that the task, which is not claimed, waits for its time.
func (m *Model) tellWait(t *Task) { m.add(Told{Kind: Scheduled, Until: t.RunAt}, t) }

// ofClaim returns the beginning of an event about the task's claim.
func ofClaim(t *Task) Told { return Told{Worker: t.Worker, Token: t.Token, Attempt: t.number} }

func (m *Model) add(e Told, t *Task) {
	if m.Level < SightLevel {
		return
	}
	e.Index, e.Sub, e.At = m.Index, m.sub, m.T
	if t != nil {
		e.ID, e.Of = t.ID, t.Kind
	}
	if e.Kind == "type_changed" {
		e.Of, _, _ = strings.Cut(e.Message, " ")
	}
	m.sub++
	m.Trail = append(m.Trail, e)
}

// tellEnd tells how a claim ended, and what came of the task.
func (m *Model) tellEnd(claim Told, t *Task, outcome, reason string) {
	say := func(kind, message string) {
		claim.Kind, claim.Message = kind, message
		m.add(claim, t)
	}
	switch outcome {
	case expired:
		say("lease_expired", "")
	case Completed, Failed, released, retried:
		say(outcome, reason)
	}
	switch {
	case t.Status == Pending && outcome != retried:
		say("requeued", "")
	case t.Status == Scheduled:
		claim.Until = t.RunAt
		say(Scheduled, "")
	case t.Status == Cancelled:
		say(Cancelled, "")
	case t.Status == Failed && outcome == expired:
		say(Failed, "lease expired")
	}
}

// setTrail bounds the trail.
func (m *Model) setTrail(b Bounds) Answer {
	if m.Bounds() != b {
		m.trailBounds = b
		m.LeastAge, m.MostAge = min(m.LeastAge, b.AgeMS), max(m.MostAge, b.AgeMS)
		m.tell("trail_changed", nil, fmt.Sprintf("%d bytes, %d ms", b.Bytes, b.AgeMS))
	}
	return Answer{}
}

// Since returns the events from the entry on.
func (m *Model) Since(index uint64) []Told {
	from, _ := slices.BinarySearchFunc(m.Trail, index, func(e Told, index uint64) int {
		if e.Index < index {
			return -1
		}
		return 1
	})
	return m.Trail[from:]
}

// SameWait reports whether the message tells until when a task waits.
func (w *moment) SameWait(message string) bool {
	text, ok := strings.CutPrefix(message, "until ")
	at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
	return ok && err == nil && w != nil && w.Is(at.UnixMilli())
}

// String tells the event in one line.
func (e *Told) String() string {
	s := fmt.Sprintf("%d.%d T=%d %s", e.Index, e.Sub, e.At, e.Kind)
	if e.ID != 0 {
		s += " task " + strconv.FormatUint(e.ID, 10)
	}
	if e.Token != 0 {
		s += fmt.Sprintf(" token %d of %s, attempt %d", e.Token, e.Worker, e.Attempt)
	}
	if e.Until != nil {
		return s + fmt.Sprintf(" until %+v", *e.Until)
	}
	return s + " " + strconv.Quote(e.Message)
}

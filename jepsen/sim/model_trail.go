package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// told is one event of the trail, in words of this package.
type told struct {
	index   uint64
	sub     uint32
	at      int64
	kind    string
	id      uint64 // 0: it is about no task
	of      string // task type
	worker  string
	token   uint64
	attempt int32
	message string
	until   *moment // scheduled: the message says until when
}

// bounds are what is kept of the trail.
type bounds struct{ bytes, ageMS int64 }

// actsLevel is from which on the trail tells who did what.
const actsLevel = 5

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

// sightLevel is from which on a cluster has a trail and schedules.
const sightLevel = 3

var boundsByDefault = bounds{64 << 20, dayMS}

func (m *model) bounds() bounds {
	if m.trailBounds == (bounds{}) {
		return boundsByDefault
	}
	return m.trailBounds
}

// tell adds an event about the task, nil if it is about none, and no claim.
func (m *model) tell(kind string, t *task, message string) {
	m.add(told{kind: kind, message: message}, t)
}

// tellWait tells that the task, which is not claimed, waits for its time.
func (m *model) tellWait(t *task) { m.add(told{kind: scheduled, until: t.runAt}, t) }

// ofClaim returns the beginning of an event about the task's claim.
func ofClaim(t *task) told { return told{worker: t.worker, token: t.token, attempt: t.number} }

func (m *model) add(e told, t *task) {
	if m.level < sightLevel {
		return
	}
	e.index, e.sub, e.at = m.index, m.sub, m.t
	if t != nil {
		e.id, e.of = t.id, t.kind
	}
	if e.kind == "type_changed" {
		e.of, _, _ = strings.Cut(e.message, " ")
	}
	m.sub++
	m.trail = append(m.trail, e)
}

// tellEnd tells how a claim ended, and what came of the task.
func (m *model) tellEnd(claim told, t *task, outcome, reason string) {
	say := func(kind, message string) {
		claim.kind, claim.message = kind, message
		m.add(claim, t)
	}
	switch outcome {
	case expired:
		say("lease_expired", "")
	case completed, failed, released, retried:
		say(outcome, reason)
	}
	switch {
	case t.status == pending && outcome != retried:
		say("requeued", "")
	case t.status == scheduled:
		claim.until = t.runAt
		say(scheduled, "")
	case t.status == cancelled:
		say(cancelled, "")
	case t.status == failed && outcome == expired:
		say(failed, "lease expired")
	}
}

// setTrail bounds the trail.
func (m *model) setTrail(b bounds) answer {
	if m.bounds() != b {
		m.trailBounds = b
		m.leastAge, m.mostAge = min(m.leastAge, b.ageMS), max(m.mostAge, b.ageMS)
		m.tell("trail_changed", nil, fmt.Sprintf("%d bytes, %d ms", b.bytes, b.ageMS))
	}
	return answer{}
}

// since returns the events from the entry on.
func (m *model) since(index uint64) []told {
	from, _ := slices.BinarySearchFunc(m.trail, index, func(e told, index uint64) int {
		if e.index < index {
			return -1
		}
		return 1
	})
	return m.trail[from:]
}

// sameWait reports whether the message tells until when a task waits.
func (w *moment) sameWait(message string) bool {
	text, ok := strings.CutPrefix(message, "until ")
	at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
	return ok && err == nil && w != nil && w.is(at.UnixMilli())
}

// String tells the event in one line.
func (e *told) String() string {
	s := fmt.Sprintf("%d.%d T=%d %s", e.index, e.sub, e.at, e.kind)
	if e.id != 0 {
		s += " task " + strconv.FormatUint(e.id, 10)
	}
	if e.token != 0 {
		s += fmt.Sprintf(" token %d of %s, attempt %d", e.token, e.worker, e.attempt)
	}
	if e.until != nil {
		return s + fmt.Sprintf(" until %+v", *e.until)
	}
	return s + " " + strconv.Quote(e.message)
}

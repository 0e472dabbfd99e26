package fsm

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// An event in a chunk of the trail. Everything is told against the chunk's base,
// so that one event can be read without those before it.
//
//	0        2                   3
//	+--------+-------------------+------------------------------------------+
//	| size   | kind, has task,   | index, sub, t                            |
//	| 2 bytes| has claim         | [task, before, len type, type]           |
//	|        |                   | [token, attempt, len worker, worker]     |
//	|        |                   | until, or the message                    |
//	+--------+-------------------+------------------------------------------+
//
// The size, little-endian, is of what follows it. Numbers are varints: index
// and t count from the base's, task and token are zigzag differences to the
// base's, and before is how many bytes back the task's event before is, 0 if
// there is none. Of an EventScheduled the rest is until when the task waits, a
// zigzag difference to the event's own t; of others it is the message.
const (
	eventSizeBytes = 2
	eventHasTask   = 0x40
	eventHasClaim  = 0x80
	eventKindMask  = 0x3f

	// eventRoom is what an event takes at most beside its texts.
	eventRoom = eventSizeBytes + 1 + 10*varintBytesMax
	// varintBytesMax is the size of the longest varint.
	varintBytesMax = 10
	// eventNameMax bounds a type's name and a worker's id in an event. Both are
	// shorter: 128 bytes at most.
	eventNameMax = 256
)

// eventBase is what the events of a chunk are told against.
type eventBase struct {
	EventPos        // of the first event
	t        int64  // of the first event
	task     uint64 // the next id and token when the chunk was begun
	token    uint64
}

// rawEvent is an event as it was read. The texts are parts of the chunk.
type rawEvent struct {
	EventPos
	kind     EventKind
	t        int64
	task     uint64
	before   uint64 // bytes back to the task's event before, 0 = none
	token    uint64
	attempt  int32
	until    int64
	taskType []byte
	worker   []byte
	message  []byte
	size     int // bytes that it takes
}

// roomFor returns a bound of what the event takes.
func roomFor(e *Event) int {
	return eventRoom + min(len(e.Type), eventNameMax) + min(len(e.WorkerID), eventNameMax) + min(len(e.Message), eventMessageMax)
}

// appendEvent appends the event; before and until are as in rawEvent.
func appendEvent(b []byte, base *eventBase, e *Event, before uint64, until int64) []byte {
	start := len(b)
	head := byte(e.Kind)
	if e.TaskID != 0 {
		head |= eventHasTask
	}
	hasClaim := e.Token != 0 || e.WorkerID != "" // a parent can be ended without a token
	if hasClaim {
		head |= eventHasClaim
	}
	b = append(b, 0, 0, head)
	b = protowire.AppendVarint(b, e.Index-base.Index)
	b = protowire.AppendVarint(b, uint64(e.Sub))
	b = protowire.AppendVarint(b, uint64(e.T-base.t))
	if e.TaskID != 0 {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(int64(e.TaskID-base.task)))
		b = protowire.AppendVarint(b, before)
		b = protowire.AppendString(b, cutText(e.Type, eventNameMax))
	}
	if hasClaim {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(int64(e.Token-base.token)))
		b = protowire.AppendVarint(b, uint64(e.Attempt))
		b = protowire.AppendString(b, cutText(e.WorkerID, eventNameMax))
	}
	if e.Kind == EventScheduled {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(until-e.T))
	} else {
		b = append(b, cutText(e.Message, eventMessageMax)...)
	}
	binary.LittleEndian.PutUint16(b[start:], uint16(len(b)-start-eventSizeBytes))
	return b
}

// cutText returns the text, cut to so many bytes at a whole character.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for at := most; at > most-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return text[:at]
		}
	}
	return text[:most]
}

// eventSize returns how many bytes the event at the start of b takes, 0 if
// there is none.
func eventSize(b []byte) int {
	if len(b) < eventSizeBytes {
		return 0
	}
	size := eventSizeBytes + int(binary.LittleEndian.Uint16(b))
	if size > len(b) {
		return 0
	}
	return size
}

// peekPlace returns the place of the event at the start of b, which was read
// before.
func peekPlace(b []byte, base *eventBase) EventPos {
	b = b[min(eventSizeBytes+1, len(b)):]
	index, n := binary.Uvarint(b)
	sub, _ := binary.Uvarint(b[max(n, 0):])
	return EventPos{Index: base.Index + index, Sub: uint32(sub)}
}

// readEvent reads the event at the start of b into e. It reports whether it is
// one.
func readEvent(b []byte, base *eventBase, e *rawEvent) bool {
	*e = rawEvent{size: eventSize(b)}
	if e.size <= eventSizeBytes {
		return false
	}
	head := b[eventSizeBytes]
	r := eventReader{rest: b[eventSizeBytes+1 : e.size]}
	e.kind = EventKind(head & eventKindMask)
	r.bad = e.kind.isAct() == (head&eventHasTask != 0)
	e.Index = base.Index + r.varint()
	e.Sub = uint32(r.varintMax(1<<32 - 1))
	e.t = base.t + int64(r.varint())
	if head&eventHasTask != 0 {
		e.task = base.task + uint64(r.zigzag())
		e.before = r.varint()
		e.taskType = r.text(eventNameMax)
		r.bad = r.bad || e.task == 0
	}
	if head&eventHasClaim != 0 {
		e.token = base.token + uint64(r.zigzag())
		e.attempt = int32(r.varintMax(1<<31 - 1))
		e.worker = r.text(eventNameMax)
		r.bad = r.bad || e.token == 0 && len(e.worker) == 0
	}
	if e.kind == EventScheduled {
		e.until = e.t + r.zigzag()
		r.bad = r.bad || len(r.rest) > 0
	} else {
		e.message = r.rest
		r.bad = r.bad || len(r.rest) > eventMessageMax
	}
	return !r.bad
}

// eventReader reads the parts of an event.
type eventReader struct {
	rest []byte
	bad  bool // something was no such part
}

func (r *eventReader) varint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := consumeVarint(r.rest)
	if n == 0 {
		r.rest, r.bad = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *eventReader) varintMax(most uint64) uint64 {
	v := r.varint()
	if v > most {
		r.bad = true
		return 0
	}
	return v
}

func (r *eventReader) zigzag() int64 { return protowire.DecodeZigZag(r.varint()) }

func (r *eventReader) text(most int) []byte {
	n := r.varint()
	if n > uint64(min(len(r.rest), most)) {
		r.rest, r.bad = nil, true
		return nil
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// event returns the event with texts of its own.
func (e *rawEvent) event() Event {
	out := Event{
		EventPos: e.EventPos,
		T:        e.t,
		Kind:     e.kind,
		TaskID:   e.task,
		Type:     string(e.taskType),
		WorkerID: string(e.worker),
		Token:    e.token,
		Attempt:  e.attempt,
		Message:  string(e.message),
	}
	switch e.kind {
	case EventScheduled:
		out.Message = "until " + calendarText(e.until)
	case EventTypeChanged:
		out.Type = string(e.changedType())
	}
	return out
}

// changedType returns the type of an EventTypeChanged: what its message begins
// with.
func (e *rawEvent) changedType() []byte {
	name, _, _ := bytes.Cut(e.message, []byte{' '})
	return name
}

// matches reports whether the query selects the event.
func (e *rawEvent) matches(q *EventQuery) bool {
	taskType := e.taskType
	if e.kind == EventTypeChanged {
		taskType = e.changedType()
	}
	return (q.TaskID == 0 || e.task == q.TaskID) &&
		(q.Kind == 0 || e.kind == q.Kind) &&
		(q.Type == "" || string(taskType) == q.Type) &&
		(q.WorkerID == "" || string(e.worker) == q.WorkerID)
}

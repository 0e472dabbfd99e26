package event

import (
	"bytes"
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/record"
)

// The format of an event in a chunk of the trail. Everything is relative to the chunk's
// base, so that one event can be read without those before it.
//
//	0        2                   3
//	+--------+-------------------+------------------------------------------+
//	| size   | kind, has task,   | index, sub, t                            |
//	| 2 bytes| has claim         | [task, before, len type, type]           |
//	|        |                   | [token, attempt, len worker, worker]     |
//	|        |                   | until, or the message                    |
//	+--------+-------------------+------------------------------------------+
//
// The little-endian size counts the bytes that follow it. Numbers are varints: index and t are
// relative to the base's, task and token are zigzag differences to the base's, and before
// is the distance in bytes to the task's previous event, or 0. A Scheduled ends with the
// time until which the task waits, as a zigzag difference to the event's t; others end with
// the message.
const (
	sizeBytes     = 2
	eventHasTask  = 0x40
	eventHasClaim = 0x80
	eventKindMask = 0x3f

	// EventRoom is the maximum size of an event without its texts.
	EventRoom = sizeBytes + 1 + 10*varintBytesMax
	// varintBytesMax is the size of the longest varint.
	varintBytesMax = 10
)

// Base holds the values to which the events of a chunk are relative.
type Base struct {
	Pos          // of the first event
	T     int64  // of the first event
	Task  uint64 // the next id and token when the chunk was started
	Token uint64
}

// rawEvent is a decoded event. Its texts share memory with the chunk.
type rawEvent struct {
	Pos
	kind     Kind
	t        int64
	task     uint64
	before   uint64 // bytes back to the task's previous event, 0 = none
	token    uint64
	attempt  int32
	until    int64
	taskType []byte
	worker   []byte
	message  []byte
	size     int // its encoded size
}

// roomFor returns an upper bound for the event's encoded size.
func roomFor(e *Event) int {
	return EventRoom + min(len(e.Type), NameMax) + min(len(e.WorkerID), NameMax) + min(len(e.Message), MessageMax)
}

// appendEvent appends the event; before and until are as in rawEvent.
func appendEvent(b []byte, base *Base, e *Event, before uint64, until int64) []byte {
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
	b = protowire.AppendVarint(b, uint64(e.T-base.T))
	if e.TaskID != 0 {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(int64(e.TaskID-base.Task)))
		b = protowire.AppendVarint(b, before)
		b = protowire.AppendString(b, Cut(e.Type, NameMax))
	}
	if hasClaim {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(int64(e.Token-base.Token)))
		b = protowire.AppendVarint(b, uint64(e.Attempt))
		b = protowire.AppendString(b, Cut(e.WorkerID, NameMax))
	}
	if e.Kind == Scheduled {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(until-e.T))
	} else {
		b = append(b, Cut(e.Message, MessageMax)...)
	}
	binary.LittleEndian.PutUint16(b[start:], uint16(len(b)-start-sizeBytes))
	return b
}

// eventSize returns the size of the event at the start of b, or 0 if b is too short.
func eventSize(b []byte) int {
	if len(b) < sizeBytes {
		return 0
	}
	size := sizeBytes + int(binary.LittleEndian.Uint16(b))
	if size > len(b) {
		return 0
	}
	return size
}

// peekPlace returns the place of the event at the start of b, which must be valid.
func peekPlace(b []byte, base *Base) Pos {
	b = b[min(sizeBytes+1, len(b)):]
	index, n := binary.Uvarint(b)
	sub, _ := binary.Uvarint(b[max(n, 0):])
	return Pos{Index: base.Index + index, Sub: uint32(sub)}
}

// peekTask returns the task that the event at the start of b, which must be valid, is about, or 0.
func peekTask(b []byte, base *Base) (id uint64) {
	if b[sizeBytes]&eventHasTask == 0 {
		return 0
	}
	r := eventReader{rest: b[sizeBytes+1:]}
	r.varint() // index
	r.varint() // sub
	r.varint() // t
	return base.Task + uint64(r.zigzag())
}

// readEvent decodes the event at the start of b into e. It reports whether it is valid.
func readEvent(b []byte, base *Base, e *rawEvent) bool {
	*e = rawEvent{size: eventSize(b)}
	if e.size <= sizeBytes {
		return false
	}
	head := b[sizeBytes]
	r := eventReader{rest: b[sizeBytes+1 : e.size]}
	e.kind = Kind(head & eventKindMask)
	r.bad = e.kind.IsAct() == (head&eventHasTask != 0)
	e.Index = base.Index + r.varint()
	e.Sub = uint32(r.varintMax(1<<32 - 1))
	e.t = base.T + int64(r.varint())
	if head&eventHasTask != 0 {
		e.task = base.Task + uint64(r.zigzag())
		e.before = r.varint()
		e.taskType = r.text(NameMax)
		r.bad = r.bad || e.task == 0
	}
	if head&eventHasClaim != 0 {
		e.token = base.Token + uint64(r.zigzag())
		e.attempt = int32(r.varintMax(1<<31 - 1))
		e.worker = r.text(NameMax)
		r.bad = r.bad || e.token == 0 && len(e.worker) == 0
	}
	if e.kind == Scheduled {
		e.until = e.t + r.zigzag()
		r.bad = r.bad || len(r.rest) > 0
	} else {
		e.message = r.rest
		r.bad = r.bad || len(r.rest) > MessageMax
	}
	return !r.bad
}

// eventReader decodes the parts of an event.
type eventReader struct {
	rest []byte
	bad  bool // a part was invalid
}

func (r *eventReader) varint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := record.Varint(r.rest)
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

// event returns the event with its own copies of texts.
func (e *rawEvent) event() Event {
	out := Event{
		Pos:      e.Pos,
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
	case Scheduled:
		out.Message = "until " + calendarText(e.until)
	case TypeChanged:
		out.Type = string(e.changedType())
	}
	return out
}

// changedType returns the type of a TypeChanged: the first word of its message.
func (e *rawEvent) changedType() []byte {
	name, _, _ := bytes.Cut(e.message, []byte{' '})
	return name
}

// matches reports whether the query selects the event.
func (e *rawEvent) matches(q *Query) bool {
	taskType := e.taskType
	if e.kind == TypeChanged {
		taskType = e.changedType()
	}
	return (q.TaskID == 0 || e.task == q.TaskID) &&
		q.Kinds.Has(e.kind) &&
		(q.Type == "" || string(taskType) == q.Type) &&
		(q.WorkerID == "" || string(e.worker) == q.WorkerID)
}

// calendarText returns the time t, in milliseconds since the Unix epoch, as RFC 3339 in UTC
// with milliseconds. Years before 0 and after 9999 have as many digits as needed.
func calendarText(t int64) string {
	const day = 24 * 60 * 60 * 1000
	days, ms := t/day, t%day
	if ms < 0 {
		days, ms = days-1, ms+day
	}
	year, month, date := civil(days)
	b := make([]byte, 0, 32)
	b = append(appendPadded(b, year, 4), '-')
	b = append(appendPadded(b, month, 2), '-')
	b = append(appendPadded(b, date, 2), 'T')
	b = append(appendPadded(b, ms/3_600_000, 2), ':')
	b = append(appendPadded(b, ms/60_000%60, 2), ':')
	b = append(appendPadded(b, ms/1000%60, 2), '.')
	return string(append(appendPadded(b, ms%1000, 3), 'Z'))
}

// civil returns the Gregorian date that is days after 1970-01-01. It counts years from
// March, so that the leap day comes last, within the period of 400 years after which the
// calendar repeats.
func civil(days int64) (year, month, date int64) {
	const era, century, leap, common = 146_097, 36_524, 1_461, 365
	days += 719_468 // now since 0000-03-01
	eras := days / era
	if days %= era; days < 0 {
		days, eras = days+era, eras-1
	}
	centuries := min(days/century, 3)
	days -= centuries * century
	leaps := days / leap
	days -= leaps * leap
	years := min(days/common, 3)
	days -= years * common
	year = eras*400 + centuries*100 + leaps*4 + years
	month = (5*days + 2) / 153 // 0 = March; every five months have 153 days
	date = days - (153*month+2)/5 + 1
	if month < 10 {
		return year, month + 3, date
	}
	return year + 1, month - 9, date
}

// appendPadded appends v with at least that many digits.
func appendPadded(b []byte, v int64, digits int) []byte {
	if v < 0 {
		b, v = append(b, '-'), -v
	}
	start := len(b)
	for n := v; n > 0 || len(b)-start < digits; n /= 10 {
		b = append(b, '0'+byte(n%10))
	}
	for i, j := start, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b
}

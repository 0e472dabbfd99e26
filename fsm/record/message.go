package record

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Message is a message inside another, between the call that begins it and EndMessage.
type Message struct {
	num         protowire.Number
	rest        []byte // what follows the message, when reading
	mark, start int    // where it begins, when writing: its tag, its fields
}

// Message begins field num, a message, if there is one to read or, when writing, if present.
// A message without fields is not written.
func (f *Fields) Message(num protowire.Number, present bool) (m Message, ok bool) {
	switch {
	case f.Num == num:
		return f.enter(f.single())
	case f.Reading || !present:
		return m, false
	}
	return f.begin(num), true
}

// EndMessage ends the message.
func (f *Fields) EndMessage(m Message) {
	if !f.Reading && len(f.Out) == m.start {
		f.Out = f.Out[:m.mark]
		return
	}
	f.endElement(m)
}

// begin begins writing a message.
func (f *Fields) begin(num protowire.Number) Message {
	m := Message{mark: len(f.Out)}
	f.Out, m.start = f.BeginElement(num)
	return m
}

// enter begins reading a message: the value of the current field.
func (f *Fields) enter(message []byte) (m Message, ok bool) {
	if f.Err != nil {
		f.Num = 0
		return m, false
	}
	m = Message{num: f.Num, rest: f.Rest}
	f.Rest, f.Num = message, 0
	f.next()
	return m, true
}

// endElement ends a message that is an element of a list. It is written even without fields.
func (f *Fields) endElement(m Message) {
	if !f.Reading {
		f.Out = EndLength(f.Out, m.start)
		return
	}
	if err := f.End(); err != nil {
		f.Err = fmt.Errorf("field %d: %w", m.num, err)
	}
	f.Rest, f.Num = m.rest, m.num
	f.next()
}

// Elements iterates over a list of messages:
//
//	for e := record.Each(); record.Next(&e, f, 1, &c.Items, max); {
//		c.Items[e.At].code(f)
//	}
type Elements struct {
	At int // index of the element
	in Message
}

// Each begins a list.
func Each() Elements { return Elements{At: -1} }

// Next ends the current element and begins the next one, if there is one. The list is field
// num, with at most most messages.
func Next[T any](e *Elements, f *Fields, num protowire.Number, list *[]T, most int) (ok bool) {
	if e.At >= 0 {
		f.endElement(e.in)
	}
	e.At++
	switch {
	case !f.Reading && e.At < len(*list):
		e.in = f.begin(num)
		return true
	case f.Num != num:
		return false
	case e.At >= most:
		f.Fail(fmt.Sprintf("more than %d", most))
		return false
	case *list == nil:
		*list = make([]T, 0, min(f.Run(), most))
	}
	if e.in, ok = f.enter(f.raw()); ok {
		var zero T
		*list = append(*list, zero)
	}
	return ok
}

// BeginLength reserves one byte for a length.
func BeginLength(b []byte) (_ []byte, start int) {
	b = append(b, 0)
	return b, len(b)
}

// EndLength writes the length of b[start:] before it. A length of more than one byte moves
// the contents, which is cheaper than computing every size in advance, and cannot get out of
// step with the writing.
func EndLength(b []byte, start int) []byte {
	n := len(b) - start
	if n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	var room [9]byte
	more := protowire.SizeVarint(uint64(n)) - 1
	b = append(b, room[:more]...)
	copy(b[start+more:], b[start:start+n])
	protowire.AppendVarint(b[:start-1], uint64(n))
	return b
}

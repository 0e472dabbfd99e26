package fsm

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The primitives below write and read messages in protobuf wire format, in a
// canonical form: one value has one encoding. Fields come in ascending order, a
// scalar at its zero value, an empty string and a message without fields are
// not written unless they are elements of a list, and a varint takes as few
// bytes as it can. The reader refuses everything else, so what was
// decoded encodes to the bytes that it came from.

// idMax is the bound of ids and tokens on the wire, inclusive. Ids and tokens
// that are given out are below it, so idMax itself names nothing.
const idMax = 1 << 53

// putUint appends the field num, of type uint32 or uint64.
func putUint(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, v)
}

// putInt appends the field num, of type int32 or int64.
func putInt(b []byte, num protowire.Number, v int64) []byte {
	return putUint(b, num, uint64(v))
}

// putSint appends the field num, of type sint32: small negative values, as
// DefaultAttempts, take one byte.
func putSint(b []byte, num protowire.Number, v int32) []byte {
	return putUint(b, num, protowire.EncodeZigZag(int64(v)))
}

// putSint64 appends the field num, of type sint64.
func putSint64(b []byte, num protowire.Number, v int64) []byte {
	return putUint(b, num, protowire.EncodeZigZag(v))
}

// putID appends the field num, an id or a token. What is out of range names
// nothing, and neither does idMax: written as that, it cannot make an entry
// that no node can read.
func putID(b []byte, num protowire.Number, id uint64) []byte {
	return putUint(b, num, min(id, idMax))
}

// putBool appends the field num, of type bool.
func putBool(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return putUint(b, num, 1)
}

// putString appends the field num, of type string.
func putString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return putElement(b, num, s)
}

// putBytes appends the field num, of type bytes.
func putBytes(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

// putElement appends one element of the field num, of type repeated string. An
// empty element is written, too.
func putElement(b []byte, num protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// putIDElement appends one element of the field num, a repeated id that is not
// packed.
func putIDElement(b []byte, num protowire.Number, id uint64) []byte {
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, min(id, idMax))
}

// beginMessage appends the tag of the field num, a message, and room for its
// length. The message's fields follow, then endLength(b, start).
func beginMessage(b []byte, num protowire.Number) (_ []byte, start int) {
	return beginLength(protowire.AppendTag(b, num, protowire.BytesType))
}

// endOptional is endLength for a message that is not repeated, which was begun
// when b was mark long: without fields it is not written at all.
func endOptional(b []byte, mark, start int) []byte {
	if len(b) == start {
		return b[:mark]
	}
	return endLength(b, start)
}

// beginLength leaves room for a length of one byte.
func beginLength(b []byte) (_ []byte, start int) {
	b = append(b, 0)
	return b, len(b)
}

// endLength writes the length of b[start:] in front of it. A length of more
// than one byte moves what it counts: cheaper than to compute every size
// before writing, and nothing that the two could disagree about.
func endLength(b []byte, start int) []byte {
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

// consumeVarint reads a varint at the start of b. n is its size, 0 if b does
// not start with a varint in its shortest form.
func consumeVarint(b []byte) (v uint64, n int) {
	v, n = protowire.ConsumeVarint(b)
	if n < 0 || n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// fieldReader walks the fields of one message. The first error ends the walk:
// next returns false and err says what is wrong.
//
//	for r.next() {
//		switch r.num {
//		case 1:
//			c.ID = r.id()
//		default:
//			r.unknown()
//		}
//	}
type fieldReader struct {
	rest  []byte           // behind the current field's tag or, once it is read, its value
	num   protowire.Number // of the current field
	typ   protowire.Type   // of the current field
	again bool             // the field before had the same number
	plain bool             // of a NewTask: one that has no steps, so that nothing nests
	err   error            // ErrCorrupt or ErrUnknownCommand, wrapped

	scratch *scratch // what lists and names are made of; nil: of memory of their own
}

// next moves on to the next field. The caller then reads its value.
func (r *fieldReader) next() bool {
	if r.err != nil || len(r.rest) == 0 {
		return false
	}
	tag, n := consumeVarint(r.rest)
	num, typ := protowire.DecodeTag(tag)
	switch {
	case n == 0:
		r.fail("bad tag after it")
	case !num.IsValid():
		r.fail("field number out of range after it")
	case num < r.num:
		r.fail(fmt.Sprintf("field %d after it", num))
	default:
		r.again = num == r.num
		r.num, r.typ, r.rest = num, typ, r.rest[n:]
	}
	return r.err == nil
}

// fail ends the walk at the current field with ErrCorrupt.
func (r *fieldReader) fail(reason string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: field %d: %s", ErrCorrupt, r.num, reason)
	}
}

// unknown ends the walk at a field that this version does not know.
func (r *fieldReader) unknown() {
	if r.err == nil {
		r.err = fmt.Errorf("%w: field %d is unknown", ErrUnknownCommand, r.num)
	}
}

// within ends the walk with the error of a message inside the current field.
func (r *fieldReader) within(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("field %d: %w", r.num, err)
	}
}

// none reads a message that has no fields.
func (r *fieldReader) none() {
	if r.next() {
		r.unknown()
	}
}

// once refuses a second value of a field that is not repeated.
func (r *fieldReader) once() {
	if r.again {
		r.fail("twice")
	}
}

// uint reads the field, of type uint64, that is at most limit.
func (r *fieldReader) uint(limit uint64) uint64 {
	r.once()
	if r.typ != protowire.VarintType {
		r.fail("not a varint")
		return 0
	}
	v, n := consumeVarint(r.rest)
	switch {
	case n == 0:
		r.fail("bad varint")
	case v == 0:
		r.fail("zero is not written")
	case v > limit:
		r.fail(fmt.Sprintf("%d is above %d", v, limit))
	}
	r.rest = r.rest[n:]
	return v
}

// uint32 reads the field, of type uint32.
func (r *fieldReader) uint32() uint32 { return uint32(r.uint(math.MaxUint32)) }

// id reads the field, an id or a token.
func (r *fieldReader) id() uint64 { return r.uint(idMax) }

// idElement reads the field, one element of repeated ids that are not packed.
// Unlike a field of its own, it may be 0.
func (r *fieldReader) idElement() uint64 {
	if r.typ != protowire.VarintType {
		r.fail("not a varint")
		return 0
	}
	v, n := consumeVarint(r.rest)
	switch {
	case n == 0:
		r.fail("bad varint")
	case v > idMax:
		r.fail(fmt.Sprintf("%d is above %d", v, uint64(idMax)))
	}
	r.rest = r.rest[n:]
	return v
}

// bool reads the field, of type bool.
func (r *fieldReader) bool() bool { return r.uint(1) == 1 }

// enum reads the field, of an enumeration whose last known value is last.
func (r *fieldReader) enum(last uint64) uint64 {
	v := r.uint(math.MaxInt32)
	if v > last && r.err == nil {
		r.err = fmt.Errorf("%w: field %d: value %d", ErrUnknownCommand, r.num, v)
	}
	return v
}

// int64 reads the field, of type int64.
func (r *fieldReader) int64() int64 { return int64(r.uint(math.MaxUint64)) }

// int32 reads the field, of type int32: a negative value is sign-extended.
func (r *fieldReader) int32() int32 {
	v := r.int64()
	if v != int64(int32(v)) {
		r.fail(fmt.Sprintf("%d is no int32", v))
	}
	return int32(v)
}

// sint32 reads the field, of type sint32.
func (r *fieldReader) sint32() int32 {
	return int32(protowire.DecodeZigZag(r.uint(math.MaxUint32)))
}

// sint64 reads the field, of type sint64.
func (r *fieldReader) sint64() int64 {
	return protowire.DecodeZigZag(r.uint(math.MaxUint64))
}

// raw reads the bytes of a field with a length, without copying them.
func (r *fieldReader) raw() []byte {
	if r.typ != protowire.BytesType {
		r.fail("it has no length")
		return nil
	}
	size, n := consumeVarint(r.rest)
	switch {
	case n == 0:
		r.fail("bad length")
		return nil
	case size > uint64(len(r.rest)-n):
		r.fail(fmt.Sprintf("length %d of %d bytes", size, len(r.rest)-n))
		return nil
	}
	v := r.rest[n : n+int(size)]
	r.rest = r.rest[n+int(size):]
	return v
}

// single reads the bytes of a field that is not repeated and not empty: a
// string, bytes or a message.
func (r *fieldReader) single() []byte {
	r.once()
	v := r.raw()
	if len(v) == 0 {
		r.fail("empty is not written")
	}
	return v
}

// string reads the field, of type string, as a copy.
func (r *fieldReader) string() string { return string(r.single()) }

// name is string for a name that many commands have.
func (r *fieldReader) name() string { return r.nameOf(r.single()) }

// nameOf returns b as a string.
func (r *fieldReader) nameOf(b []byte) string {
	if r.scratch == nil {
		return string(b)
	}
	return r.scratch.names.of(b)
}

// bytes reads the field, of type bytes, as a copy.
func (r *fieldReader) bytes() []byte { return append([]byte(nil), r.single()...) }

// run counts the current field and those of the same number that follow it, so
// that a list is allocated once.
func (r *fieldReader) run() int {
	ahead := *r
	for count := 1; ; count++ {
		ahead.raw()
		if !ahead.next() || ahead.num != r.num {
			return count
		}
	}
}

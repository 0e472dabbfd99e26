package wire

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	// ErrUnknown is that of a message with what this binary does not know: a field,
	// or a value of an enumeration.
	ErrUnknown = errors.New("the data was written by a newer version of claimq")
	// ErrCorrupt is that of bytes which are not what was written.
	ErrCorrupt = errors.New("the data is corrupt")
)

// Reader walks the fields of one message. The first error ends the walk:
// Next returns false and Err says what is wrong.
//
//	for r.Next() {
//		switch r.Num {
//		case 1:
//			c.ID = r.ID()
//		default:
//			r.Unknown()
//		}
//	}
type Reader struct {
	Rest  []byte           // behind the current field's tag or, once it is read, its value
	Num   protowire.Number // of the current field
	typ   protowire.Type   // of the current field
	again bool             // the field before had the same number
	Err   error            // ErrCorrupt or ErrUnknown, wrapped

	Names *Names // what names are made of; nil: of memory of their own
}

// Next moves on to the next field. The caller then reads its value.
func (r *Reader) Next() bool {
	if r.Err != nil || len(r.Rest) == 0 {
		return false
	}
	tag, n := Varint(r.Rest)
	num, typ := protowire.DecodeTag(tag)
	switch {
	case n == 0:
		r.Fail("bad tag after it")
	case !num.IsValid():
		r.Fail("field number out of range after it")
	case num < r.Num:
		r.Fail(fmt.Sprintf("field %d after it", num))
	default:
		r.again = num == r.Num
		r.Num, r.typ, r.Rest = num, typ, r.Rest[n:]
	}
	return r.Err == nil
}

// Fail ends the walk at the current field with errCorrupt.
func (r *Reader) Fail(reason string) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%w: field %d: %s", ErrCorrupt, r.Num, reason)
	}
}

// Unknown ends the walk at a field that this version does not know.
func (r *Reader) Unknown() {
	if r.Err == nil {
		r.Err = fmt.Errorf("%w: field %d is unknown", ErrUnknown, r.Num)
	}
}

// Within ends the walk with the error of a message inside the current field.
func (r *Reader) Within(err error) {
	if r.Err == nil && err != nil {
		r.Err = fmt.Errorf("field %d: %w", r.Num, err)
	}
}

// None reads a message that has no fields.
func (r *Reader) None() {
	if r.Next() {
		r.Unknown()
	}
}

// once refuses a second value of a field that is not repeated.
func (r *Reader) once() {
	if r.again {
		r.Fail("twice")
	}
}

// Uint reads the field, of type uint64, that is at most limit.
func (r *Reader) Uint(limit uint64) uint64 {
	r.once()
	if r.typ != protowire.VarintType {
		r.Fail("not a varint")
		return 0
	}
	v, n := Varint(r.Rest)
	switch {
	case n == 0:
		r.Fail("bad varint")
	case v == 0:
		r.Fail("zero is not written")
	case v > limit:
		r.Fail(fmt.Sprintf("%d is above %d", v, limit))
	}
	r.Rest = r.Rest[n:]
	return v
}

// Uint32 reads the field, of type uint32.
func (r *Reader) Uint32() uint32 { return uint32(r.Uint(math.MaxUint32)) }

// ID reads the field, an id or a token.
func (r *Reader) ID() uint64 { return r.Uint(IDMax) }

// IDElement reads the field, one element of repeated ids that are not packed.
// Unlike a field of its own, it may be 0.
func (r *Reader) IDElement() uint64 {
	if r.typ != protowire.VarintType {
		r.Fail("not a varint")
		return 0
	}
	v, n := Varint(r.Rest)
	switch {
	case n == 0:
		r.Fail("bad varint")
	case v > IDMax:
		r.Fail(fmt.Sprintf("%d is above %d", v, uint64(IDMax)))
	}
	r.Rest = r.Rest[n:]
	return v
}

// Bool reads the field, of type bool.
func (r *Reader) Bool() bool { return r.Uint(1) == 1 }

// Enum reads the field, of an enumeration whose last known value is last.
func (r *Reader) Enum(last uint64) uint64 {
	v := r.Uint(math.MaxInt32)
	if v > last && r.Err == nil {
		r.Err = fmt.Errorf("%w: field %d: value %d", ErrUnknown, r.Num, v)
	}
	return v
}

// Int64 reads the field, of type int64.
func (r *Reader) Int64() int64 { return int64(r.Uint(math.MaxUint64)) }

// Int32 reads the field, of type int32: a negative value is sign-extended.
func (r *Reader) Int32() int32 {
	v := r.Int64()
	if v != int64(int32(v)) {
		r.Fail(fmt.Sprintf("%d is no int32", v))
	}
	return int32(v)
}

// Sint32 reads the field, of type sint32.
func (r *Reader) Sint32() int32 {
	return int32(protowire.DecodeZigZag(r.Uint(math.MaxUint32)))
}

// Sint64 reads the field, of type sint64.
func (r *Reader) Sint64() int64 {
	return protowire.DecodeZigZag(r.Uint(math.MaxUint64))
}

// HasLength reports whether the field is a string, bytes or a message.
func (r *Reader) HasLength() bool { return r.typ == protowire.BytesType }

// Raw reads the bytes of a field with a length, without copying them.
func (r *Reader) Raw() []byte {
	if r.typ != protowire.BytesType {
		r.Fail("it has no length")
		return nil
	}
	size, n := Varint(r.Rest)
	switch {
	case n == 0:
		r.Fail("bad length")
		return nil
	case size > uint64(len(r.Rest)-n):
		r.Fail(fmt.Sprintf("length %d of %d bytes", size, len(r.Rest)-n))
		return nil
	}
	v := r.Rest[n : n+int(size)]
	r.Rest = r.Rest[n+int(size):]
	return v
}

// Single reads the bytes of a field that is not repeated and not empty: a
// string, bytes or a message.
func (r *Reader) Single() []byte {
	r.once()
	v := r.Raw()
	if len(v) == 0 {
		r.Fail("empty is not written")
	}
	return v
}

// Text reads the field, of type string, as a copy.
func (r *Reader) Text() string { return string(r.Single()) }

// Name is string for a name that many commands have.
func (r *Reader) Name() string { return r.nameOf(r.Single()) }

// nameOf returns b as a string.
func (r *Reader) nameOf(b []byte) string {
	if r.Names == nil {
		return string(b)
	}
	return r.Names.Of(b)
}

// Bytes reads the field, of type bytes, as a copy.
func (r *Reader) Bytes() []byte { return append([]byte(nil), r.Single()...) }

// Run counts the current field and those of the same number that follow it, so
// that a list is allocated once.
func (r *Reader) Run() int {
	ahead := *r
	for count := 1; ; count++ {
		ahead.Raw()
		if !ahead.Next() || ahead.Num != r.Num {
			return count
		}
	}
}

// Strings reads the field, a list of names, and all of the same number that follow
// it. It appends them to list.
func (r *Reader) Strings(list []string) []string {
	if n := r.Run(); n > cap(list) {
		list = make([]string, 0, n)
	}
	for {
		list = append(list, r.nameOf(r.Raw()))
		ahead := *r
		if !ahead.Next() || ahead.Num != r.Num {
			return list
		}
		*r = ahead
	}
}

// Bound fails if there are as many elements as there may be, and here is another.
func (r *Reader) Bound(have, most int) {
	if have >= most {
		r.Fail(fmt.Sprintf("more than %d", most))
	}
}

// Varint reads a varint at the start of b. n is its size, 0 if b does
// not start with a varint in its shortest form.
func Varint(b []byte) (v uint64, n int) {
	v, n = protowire.ConsumeVarint(b)
	if n < 0 || n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

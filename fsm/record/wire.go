package record

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	// ErrUnknown is returned for a message with something that this binary does not know: a
	// field, or a value of an enumeration.
	ErrUnknown = errors.New("the data was written by a newer version of claimq")
	// ErrDevelopment is returned for data with a version below Format.
	ErrDevelopment = errors.New("it was made by a development build before 0.1.0, which this version does not read")
	// ErrCorrupt is returned for damaged bytes.
	ErrCorrupt = errors.New("the data is corrupt")
)

// Format is the version of log entries, snapshots, backups and data folders. It has been this
// since 0.1.0: later changes have a feature level. Development builds before that wrote lower
// ones, so that their data is refused by name, and never taken for damaged.
const Format = 14

// CheckFormat returns ErrDevelopment or ErrUnknown if what, an entry for example, has another
// version than Format.
func CheckFormat(what string, version byte) error {
	switch {
	case version == Format:
		return nil
	case version > 0 && version < Format:
		return fmt.Errorf("%w: %s of format %d, this one has %d", ErrDevelopment, what, version, Format)
	}
	return fmt.Errorf("%w: %s of format %d, this one has %d", ErrUnknown, what, version, Format)
}

// IDMax bounds ids and tokens on the wire, inclusive. Assigned ids and tokens are below it,
// so IDMax itself never exists.
const IDMax = 1 << 53

// Fields reads or writes the fields of one message, with one call for each field, so that
// reading and writing cannot differ.
//
//	func (l *Label) code(f *record.Fields) {
//		f.Text(1, &l.Name)
//		f.Text(2, &l.Value)
//	}
//
// The calls must be in ascending order of the fields. Values must be zero before they are
// read, and are not changed when they are written. The first error ends the reading; End
// returns it. (Methods are split so that the check for an absent field, the usual case, is
// inlined.)
type Fields struct {
	Out []byte // the bytes written

	Num     protowire.Number // of the next field; 0 at the end, and when writing
	typ     protowire.Type   // of that field
	again   bool             // the previous field had the same number
	Reading bool
	Rest    []byte // after that field's tag or, once it is read, its value
	Err     error  // ErrCorrupt or ErrUnknown, wrapped

	cache  *NameCache // shares names of commands; nil shares none
	names  *Names     // shares names of records; nil shares none
	room   *TaskRoom  // memory for new tasks; nil allocates
	shared bool       // params and payloads of tasks share memory with the message
}

// To returns Fields that append to b.
func To(b []byte) Fields { return Fields{Out: b} }

// From returns Fields that read the message. They allocate everything but strings in names,
// which may be nil.
func From(message []byte, names *Names) Fields {
	f := Fields{Reading: true, Rest: message, names: names}
	f.next()
	return f
}

// fromCached returns Fields that read the message and share names by the cache, which may be
// nil.
func fromCached(message []byte, names *NameCache) Fields {
	f := Fields{Reading: true, Rest: message, cache: names}
	f.next()
	return f
}

// End ends the reading and returns Err. It is an error if fields were not read.
func (f *Fields) End() error {
	switch {
	case f.Num == 0 || f.Err != nil:
	case f.again:
		f.Fail("twice")
	default:
		f.Err = fmt.Errorf("%w: field %d is unknown", ErrUnknown, f.Num)
	}
	return f.Err
}

// Fail ends the reading at the current field with ErrCorrupt.
func (f *Fields) Fail(reason string) {
	f.Refuse(fmt.Errorf("%w: field %d: %s", ErrCorrupt, f.Num, reason))
}

// Refuse ends the reading with the error, if there is one.
func (f *Fields) Refuse(err error) {
	if f.Err == nil {
		f.Err = err
	}
}

// next moves on to the next field.
func (f *Fields) next() {
	if f.Err != nil || len(f.Rest) == 0 {
		f.Num = 0
		return
	}
	tag, n := Varint(f.Rest)
	num, typ := protowire.DecodeTag(tag)
	switch {
	case n == 0:
		f.Fail("bad tag after it")
	case !num.IsValid():
		f.Fail("field number out of range after it")
	case num < f.Num:
		f.Fail(fmt.Sprintf("field %d after it", num))
	}
	if f.Err != nil {
		num = 0
	}
	f.again = num == f.Num
	f.Num, f.typ, f.Rest = num, typ, f.Rest[n:]
}

// varint writes field num, which must not be 0, or reads one of at most limit. Callers
// check inline whether there is anything to do, because mostly there is not.
func (f *Fields) varint(num protowire.Number, v *uint64, limit uint64) {
	if !f.Reading {
		f.Out = appendVarint(appendTag(f.Out, num, protowire.VarintType), min(*v, limit))
		return
	}
	if f.Num != num {
		return
	}
	if *v = f.number(limit); *v == 0 {
		f.Fail("zero is not written")
	}
	f.next()
}

// number reads the current field, a number of at most limit.
func (f *Fields) number(limit uint64) uint64 {
	if f.typ != protowire.VarintType {
		f.Fail("not a varint")
		return 0
	}
	v, n := Varint(f.Rest)
	switch {
	case n == 0:
		f.Fail("bad varint")
	case v > limit:
		f.Fail(fmt.Sprintf("%d is above %d", v, limit))
	}
	f.Rest = f.Rest[n:]
	return v
}

// Uint reads or writes field num, a uint64.
func (f *Fields) Uint(num protowire.Number, v *uint64) {
	if *v != 0 || f.Num == num {
		f.varint(num, v, math.MaxUint64)
	}
}

// Uint32 reads or writes field num, a uint32.
func (f *Fields) Uint32(num protowire.Number, v *uint32) {
	wide := uint64(*v)
	if wide == 0 && f.Num != num {
		return
	}
	if f.varint(num, &wide, math.MaxUint32); f.Reading {
		*v = uint32(wide)
	}
}

// ID reads or writes field num, an id or a token. Values out of range never exist. They are
// written as IDMax, which does not exist either, so that they cannot make an entry that no node
// can read.
func (f *Fields) ID(num protowire.Number, v *uint64) {
	if *v != 0 || f.Num == num {
		f.varint(num, v, IDMax)
	}
}

// Int reads or writes field num, an int64.
func (f *Fields) Int(num protowire.Number, v *int64) {
	if *v != 0 || f.Num == num {
		f.int(num, v)
	}
}

//go:noinline
func (f *Fields) int(num protowire.Number, v *int64) {
	wide := uint64(*v)
	if f.varint(num, &wide, math.MaxUint64); f.Reading {
		*v = int64(wide)
	}
}

// IDs reads or writes field num, repeated ids that are not packed. Unlike other fields, an element
// may be 0.
func (f *Fields) IDs(num protowire.Number, list *[]uint64) {
	if !f.Reading {
		for _, id := range *list {
			f.PutElementID(num, id)
		}
	}
	for f.Num == num {
		*list = append(*list, f.ElementID())
	}
}

// PutElementID writes one element of field num, repeated ids.
func (f *Fields) PutElementID(num protowire.Number, id uint64) {
	f.Out = appendVarint(appendTag(f.Out, num, protowire.VarintType), min(id, IDMax))
}

// ElementID reads the current field, one element of repeated ids.
func (f *Fields) ElementID() uint64 {
	id := f.number(IDMax)
	f.next()
	return id
}

// Bool reads or writes field num, a bool.
func (f *Fields) Bool(num protowire.Number, v *bool) {
	if *v || f.Num == num {
		f.flag(num, v)
	}
}

//go:noinline
func (f *Fields) flag(num protowire.Number, v *bool) {
	if f.Num == num {
		*v = true
	}
	one := uint64(1)
	f.varint(num, &one, 1)
}

// Enum reads or writes field num, an enumeration whose last known value is last.
func (f *Fields) Enum(num protowire.Number, v *uint8, last uint8) {
	wide := uint64(*v)
	if wide == 0 && f.Num != num {
		return
	}
	if f.varint(num, &wide, math.MaxInt32); f.Reading {
		if *v = uint8(wide); wide > uint64(last) {
			f.Refuse(fmt.Errorf("%w: field %d: value %d", ErrUnknown, num, wide))
		}
	}
}

// Int32 reads or writes field num, an int32. Negative values are sign-extended.
func (f *Fields) Int32(num protowire.Number, v *int32) {
	wide := int64(*v)
	if f.Int(num, &wide); f.Reading {
		if *v = int32(wide); int64(*v) != wide {
			f.Fail(fmt.Sprintf("%d is no int32", wide))
		}
	}
}

// Sint reads or writes field num, a sint32: small negative values, such as DefaultAttempts, take
// one byte.
func (f *Fields) Sint(num protowire.Number, v *int32) {
	if *v != 0 || f.Num == num {
		wide := protowire.EncodeZigZag(int64(*v))
		if f.varint(num, &wide, math.MaxUint32); f.Reading {
			*v = int32(protowire.DecodeZigZag(wide))
		}
	}
}

// Sint64 reads or writes field num, a sint64.
func (f *Fields) Sint64(num protowire.Number, v *int64) {
	wide := protowire.EncodeZigZag(*v)
	if f.Uint(num, &wide); f.Reading {
		*v = protowire.DecodeZigZag(wide)
	}
}

// Text reads or writes field num, a string.
func (f *Fields) Text(num protowire.Number, v *string) {
	if *v != "" || f.Num == num {
		f.text(num, v, nil)
	}
}

// Name is Text for a name that many commands share; see NameCache.
func (f *Fields) Name(num protowire.Number, v *string) {
	if *v != "" || f.Num == num {
		f.text(num, v, f.cache)
	}
}

// NameAfter is Name in a list. A name that equals *before, the one before it, is not written; so
// an empty one is, unless *before is empty. It sets *before to the name.
func (f *Fields) NameAfter(num protowire.Number, v, before *string) {
	switch {
	case f.Num == num:
		raw := f.raw()
		if string(raw) == *before {
			f.Fail("a name that is the one before is not written")
		}
		*v = f.nameOf(raw)
		f.next()
	case f.Reading:
		*v = *before
	case *v != *before:
		f.Out = protowire.AppendString(appendTag(f.Out, num, protowire.BytesType), *v)
	}
	*before = *v
}

func (f *Fields) text(num protowire.Number, v *string, names *NameCache) {
	raw, read := Part(f, num, *v)
	switch {
	case !read:
	case names != nil:
		*v = names.Of(raw)
	default:
		*v = string(raw)
	}
}

// Bytes reads or writes field num, of type bytes.
func (f *Fields) Bytes(num protowire.Number, v *[]byte) {
	if len(*v) > 0 || f.Num == num {
		f.bytes(num, v)
	}
}

//go:noinline
func (f *Fields) bytes(num protowire.Number, v *[]byte) {
	if raw, read := Part(f, num, *v); read {
		*v = append([]byte(nil), raw...)
	}
}

// Part writes field num, a string or bytes, if v is not empty, or reads it without copying.
func Part[V string | []byte](f *Fields, num protowire.Number, v V) (_ []byte, read bool) {
	if !f.Reading {
		if len(v) > 0 {
			f.Out = appendVarint(appendTag(f.Out, num, protowire.BytesType), uint64(len(v)))
			f.Out = append(f.Out, v...)
		}
		return nil, false
	}
	if f.Num != num {
		return nil, false
	}
	raw := f.single()
	f.next()
	return raw, true
}

// raw reads the current field, which must be a string, bytes or a message, without copying.
func (f *Fields) raw() []byte {
	if f.typ != protowire.BytesType {
		f.Fail("it has no length")
		return nil
	}
	size, n := Varint(f.Rest)
	switch {
	case n == 0:
		f.Fail("bad length")
		return nil
	case size > uint64(len(f.Rest)-n):
		f.Fail(fmt.Sprintf("length %d of %d bytes", size, len(f.Rest)-n))
		return nil
	}
	v := f.Rest[n : n+int(size)]
	f.Rest = f.Rest[n+int(size):]
	return v
}

// single is raw for a field that is not repeated, which must not be empty.
func (f *Fields) single() []byte {
	v := f.raw()
	if len(v) == 0 {
		f.Fail("empty is not written")
	}
	return v
}

// nameOf returns b as a string, a shared one if there is a cache.
func (f *Fields) nameOf(b []byte) string {
	if f.cache == nil {
		return string(b)
	}
	return f.cache.Of(b)
}

// Run counts the current field and the following ones with the same number, so that a list
// is allocated once.
func (f *Fields) Run() int {
	ahead := *f
	for count := 1; ; count++ {
		ahead.raw()
		if ahead.next(); ahead.Num != f.Num {
			return count
		}
	}
}

// Strings reads or writes field num, repeated names. Empty ones are written, too.
func (f *Fields) Strings(num protowire.Number, list *[]string) {
	if !f.Reading {
		for _, s := range *list {
			f.Out = protowire.AppendString(appendTag(f.Out, num, protowire.BytesType), s)
		}
		return
	}
	if f.Num == num {
		*list = f.ReadStrings(*list)
		f.next()
	}
}

// ReadStrings reads the current field, a name, and the following ones with the same number.
// It appends them to list.
func (f *Fields) ReadStrings(list []string) []string {
	if n := f.Run(); n > cap(list) {
		list = make([]string, 0, n)
	}
	for {
		list = append(list, f.nameOf(f.raw()))
		ahead := *f
		if ahead.next(); ahead.Num != f.Num || f.Err != nil {
			return list
		}
		*f = ahead
	}
}

// BeginElement writes the tag of an element of field num, repeated bytes. The caller
// appends the bytes and calls EndLength.
func (f *Fields) BeginElement(num protowire.Number) (b []byte, start int) {
	return BeginLength(appendTag(f.Out, num, protowire.BytesType))
}

// Element reads the current field, an element of repeated bytes, without copying.
func (f *Fields) Element() []byte {
	b := f.raw()
	f.next()
	return b
}

// HasLength reports whether the current field is a string, bytes or a message.
func (f *Fields) HasLength() bool { return f.typ == protowire.BytesType }

// Skip moves to the field after n bytes, the rest of the current one.
func (f *Fields) Skip(n int) {
	f.Rest = f.Rest[n:]
	f.next()
}

// Varint reads a varint at the start of b. n is its size, or 0 if b does not start with a
// varint in its shortest form.
func Varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 { // most
		return uint64(b[0]), 1
	}
	return longVarint(b)
}

func longVarint(b []byte) (v uint64, n int) {
	v, n = protowire.ConsumeVarint(b)
	if n < 0 || n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// appendTag appends the tag of a field. Most numbers take one byte.
func appendTag(b []byte, num protowire.Number, typ protowire.Type) []byte {
	if num < 16 {
		return append(b, byte(num)<<3|byte(typ))
	}
	return protowire.AppendTag(b, num, typ)
}

// appendVarint appends a number. Most take one byte.
func appendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return protowire.AppendVarint(b, v)
}
